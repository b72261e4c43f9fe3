"""A process that stays alive and warm, and works only when asked: some steps, then it waits."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from benchmarks.cluster.paired import Burst

_SECONDS = 300
_LAST_SECONDS = 30

BURSTS = """
import json, os, sys, time
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what else prints, prints elsewhere

def bursts():
    for line in sys.stdin:
        yield from range(2)  # back from the wait, and from what others have left in the caches
        wall, processor = time.perf_counter(), time.process_time()
        yield from range(int(line))
        took = time.perf_counter() - wall, time.process_time() - processor
        print(json.dumps(took), file=answers, flush=True)
    os._exit(0)
"""
"""The beginning of its program, which does a step for each value of ``bursts()``."""


class WaitingProcess:
    """A program that begins with `BURSTS`, and the line to it."""

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start it; what it prints besides goes to a file in ``folder``."""
        self._said = folder / "said.txt"
        self._socket, its = socket.socketpair()
        self._socket.settimeout(_SECONDS)
        self._line = self._socket.makefile("rw")
        with its, self._said.open("w") as said:
            self._process = subprocess.Popen(
                argv,
                cwd=folder,
                env=environment,
                stdin=its.fileno(),
                stdout=its.fileno(),
                stderr=said,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """Give it to a ``with``, which ends it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let it end by itself; kill what has not, and what it has started."""
        self._line.close()
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def burst(self, steps: int) -> Burst:
        """Have it do so many steps; RuntimeError with its last words where it does not."""
        try:
            print(steps, file=self._line, flush=True)
            answer = self._line.readline()
        except (ConnectionError, TimeoutError):
            answer = ""
        if not answer:
            raise RuntimeError(f"it did not answer; it has said: {self._said.read_text()[-4000:]}")
        return Burst(*json.loads(answer))
