"""How long from the click on a folder's TensorBoard to its first chart, beside a shell's.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.tensorboard_open [--runs 10]

Both are measured in one Chromium on the test instance, in turn, with the same curve of 100 points,
until the curve's colour is on the picture of the page. *ours*: from the click on the button in
JupyterLab's file browser; a new TensorBoard each time, behind the hub's proxy and the session's
login. *shell*: from the start of ``tensorboard --logdir`` of the same environment on a TCP port,
opened in the browser as soon as it answers; nobody has to read its address. The kernel tells when
its process was started, and the browser's own times when the page had come, when the last of its
scripts, and when the first answer with data (``points``). Of the page, the browser also tells what
it fetches and for how long it computes.

The last line is one JSON object: seconds (medians, minima, maxima) of each phase from the click or
the start on, the page's medians, and the ratio of the wholes.
"""

import argparse
import base64
import json
import pwd
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import BrowserContext, Error, Page, Request, sync_playwright

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import sampler
from benchmarks.portal.harness.page_account import PageAccount, medians
from benchmarks.portal.session_start import answers, ratio, summary
from tests import instance
from tests.browser.chromium import launch
from tests.browser.lab import item, open_item, open_lab
from tests.browser.test_journey import COUNT_PIXELS, RUN_COLOUR
from tests.instance import USERS, Instance
from tests.network.sockets import free_port
from tests.training import curves
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER = USERS[0]
FOLDER = "tensorboard-open"
CHART = "scalar-card line-chart canvas"


PHASES = ("process", "page", "scripts", "points", "chart")


@dataclass
class Arrivals:
    """When what a page asks for has come, by the browser's own clock."""

    times: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, context: BrowserContext) -> "Arrivals":
        """Note them from now on, for all pages."""
        arrivals = cls()
        context.on("requestfinished", arrivals._note)
        return arrivals

    def _note(self, request: Request) -> None:
        kind = "points" if "/data/plugin/" in request.url else request.resource_type
        ended = (request.timing["startTime"] + request.timing["responseEnd"]) / 1000
        self.times.setdefault(kind, []).append(ended)

    def phases(self, began: float) -> dict[str, float]:
        """Return the seconds since a moment of `time.time`; forget all."""
        found = {
            "page": min(self.times["document"]),
            "scripts": max(self.times["script"]),
            "points": min(self.times["points"]),
        }
        self.times.clear()
        return {phase: moment - began for phase, moment in found.items()}


@dataclass(frozen=True)
class Eye:
    """Sees when a chart is drawn."""

    counter: Page
    """An empty page: TensorBoard's own forbids to fetch a picture."""

    @classmethod
    def of(cls, context: BrowserContext) -> "Eye":
        """Open it behind the pages that are looked at."""
        return cls(context.new_page())

    def wait_for_chart(self, board: Page, pixels: int = 100) -> None:
        """Wait until so much of the curve can be seen."""
        board.locator(CHART).first.wait_for(timeout=60_000)
        until(lambda: self._sees(board, pixels), seconds=60, every=0, what="a chart is drawn")

    def _sees(self, board: Page, pixels: int) -> bool:
        try:
            picture = board.locator(CHART).first.screenshot()
        except Error:
            return False  # drawn anew just now
        url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        return int(self.counter.evaluate(COUNT_PIXELS, [url, RUN_COLOUR])) >= pixels


@dataclass(frozen=True)
class Opening:
    """What one opening took."""

    seconds: dict[str, float]
    """Of each phase, from the click or the start on."""
    page: dict[str, float]
    """What the page fetched and computed."""


def process_start(words: str) -> float:
    """Return when the process of the user with these words was made, in seconds since 1970."""
    return sampler.started_at(sampler.Program(words, pwd.getpwnam(USER).pw_uid))


def time_ours(visitor: Visitor, lab: Page, eye: Eye, arrivals: Arrivals) -> Opening:
    """Click; return the seconds of each phase, and the page's account.

    The TensorBoard is stopped afterwards.
    """
    button = lab.get_by_role("button", name=f"Open TensorBoard for ~/{FOLDER}/curve")
    button.wait_for()
    arrivals.times.clear()
    started = time.time()
    with lab.expect_popup() as popup:
        button.click()
    account = PageAccount(popup.value)
    account.begins()
    eye.wait_for_chart(popup.value)
    seconds = {"chart": time.time() - started, **arrivals.phases(started)}
    opening = Opening(
        {"process": process_start("/tensorboard/serv") - started, **seconds}, account.figures()
    )
    popup.value.close()
    for board in visitor.session("GET", "/portal/tensorboard").json()["boards"]:
        visitor.session("DELETE", f"/portal/tensorboard/{board['id']}").raise_for_status()
    return opening


def time_a_shells(
    portal: Instance, folder: Path, context: BrowserContext, eye: Eye, arrivals: Arrivals
) -> Opening:
    """Start one by hand; return the seconds of each phase, and the page's account."""
    program = Path(portal.settings["session"]["tensorboard_python"]).with_name("tensorboard")
    port = free_port()
    argv = ["/usr/sbin/runuser", "-u", USER, "--", str(program)]
    argv += [f"--logdir={folder}", "--host=127.0.0.1", f"--port={port}"]
    # It leaves a folder that all may write to in the temporary one.
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": str(folder.parent)}
    arrivals.times.clear()
    started = time.time()
    process = subprocess.Popen(
        argv, env=environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    page = context.new_page()
    try:
        url = f"http://127.0.0.1:{port}/"
        until(lambda: answers(url), seconds=60, every=0.01, what="TensorBoard answers")
        account = PageAccount(page)
        account.begins()
        page.goto(url)
        eye.wait_for_chart(page)
        seconds = {"chart": time.time() - started, **arrivals.phases(started)}
        return Opening(
            {"process": process_start("/bin/tensorboard") - started, **seconds}, account.figures()
        )
    finally:
        page.close()
        process.terminate()
        process.wait(30)


@contextmanager
def session(portal: Instance) -> Iterator[tuple[Visitor, Path]]:
    """Give a user with a session and a folder with a curve."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    curves.write(portal, USER, home / FOLDER / "curve")
    try:
        with session_of(portal, USER) as visitor:
            yield visitor, home / FOLDER / "curve"
    finally:
        portal.slurm("/bin/rm", "-rf", str(home / FOLDER), user=USER)


def measure(portal: Instance, context: BrowserContext, runs: int) -> dict[str, list[Opening]]:
    """Open each in turn; the first of each warms up."""
    openings: dict[str, list[Opening]] = {"ours": [], "shell": []}
    with session(portal) as (visitor, folder):
        eye = Eye.of(context)
        lab = context.new_page()
        open_lab(lab, portal, USER)
        open_item(lab, FOLDER)
        item(lab, "curve").click()
        arrivals = Arrivals.of(context)
        ways: dict[str, Callable[[], Opening]] = {
            "ours": lambda: time_ours(visitor, lab, eye, arrivals),
            "shell": lambda: time_a_shells(portal, folder, context, eye, arrivals),
        }
        for run in range(runs + 1):
            once = {what: way() for what, way in ways.items()}
            words = "  ".join(f"{what} {one.seconds['chart']:.2f} s" for what, one in once.items())
            print(f"{'warm-up' if run == 0 else f'run {run:2}'}  {words}", flush=True)
            for what, opening in once.items() if run else ():
                openings[what].append(opening)
    return openings


def series(openings: Sequence[Opening], phase: str) -> list[float]:
    """Return the seconds of one phase."""
    return [opening.seconds[phase] for opening in openings]


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="TensorBoards of each kind")
    runs = parser.parse_args().runs
    with instance.running() as portal, sync_playwright() as playwright:
        browser = launch(playwright)
        openings = measure(portal, browser.new_context(), runs)
        browser.close()
    wholes = {what: series(ones, "chart") for what, ones in openings.items()}
    result = {
        "benchmark": "tensorboard_open",
        "runs": runs,
        "seconds": {what: summary(whole) for what, whole in wholes.items()},
        "phases": {
            what: {phase: summary(series(ones, phase)) for phase in PHASES}
            for what, ones in openings.items()
        },
        "page": {what: medians([one.page for one in ones]) for what, ones in openings.items()},
        "ours_over_shell": ratio(wholes["ours"], wholes["shell"]),
        **circumstances(commit()),
    }
    print(f"ours median {statistics.median(wholes['ours']):.2f} s, to reach 1")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
