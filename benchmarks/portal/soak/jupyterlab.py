"""A session with JupyterLab as its user has it open: a kernel that counts, and TensorBoards."""

import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.portal.soak.findings import Findings
from tests.training import curves
from tests.visitor import Visitor
from tests.waiting import until

BOARDS = 2
"""Folders of curves whose TensorBoards are open in each of these sessions."""
LABS, TENSORBOARDS = "JupyterLabs", "TensorBoards"
"""What may be open side by side: see `Findings.most_at_once`."""
_RUNS = ["run"]
_COUNT = "counter = globals().get('counter', 0) + 1; print(counter)"


class OpenJupyterLab:
    """What one visit has open; it must never begin anew, nor lose what it shows."""

    def __init__(self, user: Visitor, findings: Findings) -> None:
        self._user = user
        self._findings = findings
        self._kernel_id = ""
        self._count = 0
        self._board_ids: list[str] = []
        findings.opened(LABS)

    def look(self) -> None:
        """Let the kernel count on by one, and look at each TensorBoard."""
        self._count_on()
        if len(self._board_ids) < BOARDS:
            self._board_ids.append(self._opened(len(self._board_ids) + 1))
            self._findings.opened(TENSORBOARDS)
        for board_id in self._board_ids:
            runs = self._runs_of(board_id)
            self._findings.count("looks at TensorBoards")
            if runs != _RUNS:
                self._findings.add("TensorBoard lost", f"{self._user.name}: {runs}")

    def leave(self) -> None:
        """Note that nobody looks at any of it from now on."""
        self._findings.closed(LABS)
        for _ in self._board_ids:
            self._findings.closed(TENSORBOARDS)

    def _count_on(self) -> None:
        self._kernel_id = self._kernel_id or self._user.open_kernel()
        said = self._user.run_in(self._kernel_id, _COUNT).strip()
        self._findings.count("looks at counters")
        # An answer that was lost counted all the same.
        if not said.isdecimal() or int(said) <= self._count:
            reset = f"{self._user.name}: {said!r} after {self._count}"
            self._findings.add("counter reset", reset)
        else:
            self._count = int(said)

    def _opened(self, number: int) -> str:
        """Open the TensorBoard of a folder with one run; return its name in the session."""
        home, folder = Path(pwd.getpwnam(self._user.name).pw_dir), f"curves-{number}"
        run = home / folder / _RUNS[0]
        if not run.exists():
            curves.write(self._user.instance, self._user.name, run)
        answer = self._user.session("GET", "/tensorboard/", params={"folder": folder})
        if not answer.has_redirect_location:
            raise RuntimeError(f"no TensorBoard: {answer.status_code}")
        board_id: str = answer.headers["Location"].rstrip("/").rpartition("/")[2]
        until(lambda: self._runs_of(board_id) == _RUNS, seconds=30, what="the run is read")
        return board_id

    def _runs_of(self, board_id: str) -> object:
        answer = self._user.session("GET", f"/tensorboard/{board_id}/data/runs")
        answer.raise_for_status()
        return answer.json()


@contextmanager
def opened(user: Visitor, findings: Findings) -> Iterator[OpenJupyterLab]:
    """Have a session's JupyterLab open until the end of the block."""
    lab = OpenJupyterLab(user, findings)
    try:
        yield lab
    finally:
        lab.leave()
