"""Subprocesses that are watched while they run."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from dsportal.images.errors import ImageError

Watch = Callable[[], None]
_LAST = 4000


class Failed(Exception):
    """A program has ended badly; the message is what it said last."""


def run(
    argv: Sequence[str],
    *,
    hours: float,
    environment: Mapping[str, str],
    folder: Path | None = None,
    pass_fds: Sequence[int] = (),
    watch: Watch = lambda: None,
) -> bytes:
    """Run one and return what it printed; ``watch`` is called every half second meanwhile.

    Raises `Failed`, and `ImageError` where it does not run or takes too long.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        try:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"} | dict(environment),
                cwd=folder or "/",
                pass_fds=pass_fds,
                # With what it starts itself, to be ended as one.
                start_new_session=True,
            )
        except OSError as error:
            raise ImageError(f"{argv[0]}: {error.strerror}; an administrator must look") from error
        with child:
            try:
                _wait(child, argv[0], time.monotonic() + hours * 3600, watch)
            finally:
                _end(child)
        if child.returncode == 0:
            said.seek(0)
            return said.read()
        complained.seek(max(0, complained.seek(0, os.SEEK_END) - _LAST))
        raise Failed(_plain(complained.read().decode("utf-8", "replace")))


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _wait(child: subprocess.Popen[bytes], name: str, deadline: float, watch: Watch) -> None:
    while time.monotonic() < deadline:
        try:
            child.wait(0.5)
        except subprocess.TimeoutExpired:
            watch()
        else:
            return
    raise ImageError(f"{name} did not end in time; run the command again to go on")


def _plain(text: str) -> str:
    """Leave out what would steer a terminal: a registry chose some of the words."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def end_like_ctrl_c() -> None:
    """Let the end of a terminal or a job end what runs for us too."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
