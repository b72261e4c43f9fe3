"""A file server that hangs, for real: a mount whose program is stopped.

``bindfs`` (FUSE) serves a folder. While it is stopped, whoever touches the mount waits.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until


@dataclass(frozen=True)
class Server:
    """What serves the mount."""

    process: subprocess.Popen[bytes]

    def freeze(self) -> None:
        """Answer nothing any more."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Answer again, also what was asked meanwhile."""
        self.process.send_signal(signal.SIGCONT)


def is_mounted(folder: Path) -> bool:
    """Say whether something is mounted there, without touching it."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return any(line.split()[4] == str(folder) for line in mounts)


@contextmanager
def served(source: Path, folder: Path) -> Iterator[Server]:
    """Mount a folder over another; it is gone at the end, whatever happened."""
    argv = ["/usr/bin/bindfs", "-f", "-o", "nonempty", str(source), str(folder)]
    process = subprocess.Popen(argv)
    server = Server(process)
    try:
        until(lambda: is_mounted(folder), seconds=20, what=f"{folder} is mounted")
        yield server
    finally:
        server.thaw()
        # Lazily: somebody may still be in there.
        subprocess.run(["/usr/bin/umount", "--lazy", str(folder)], check=False, timeout=30)
        process.terminate()
        process.wait(timeout=30)
        assert not is_mounted(folder)
