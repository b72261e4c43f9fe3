"""All checks side by side, each in a process of its own and for a limited time.

A question to a file system that hangs cannot be taken back, not even by ending its thread. So each
check is a child; one that does not answer in time is killed, or left behind where even that hangs.
"""

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from dsportal.doctor.finding import Finding, Line, State, failed

_END_SECONDS = 1.0
_LONGEST = 2000
"""Letters of an answer: all of it must fit into a pipe that nobody reads yet."""


@dataclass(frozen=True)
class Check:
    """A check, its time limit, and the advice when it does not answer."""

    name: str
    ask: Callable[[], Finding]
    if_silent: str
    """What to do when no answer comes in time."""
    seconds: float = 10.0
    needs_root: bool = False


@dataclass(frozen=True)
class _Child:
    pid: int
    answers: int
    deadline: float


def run(checks: Sequence[Check], *, is_root: bool) -> list[Line]:
    """Ask everything at once; give the answers in the order of the questions."""
    children = [_started(check) if is_root or not check.needs_root else None for check in checks]
    findings = [
        _finding(check, child) if child else Finding(State.LEFT_OUT, "only root may ask")
        for check, child in zip(checks, children, strict=True)
    ]
    return [Line(check.name, finding) for check, finding in zip(checks, findings, strict=True)]


def _started(check: Check) -> _Child:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(check, writing)
    os.close(writing)
    return _Child(pid, reading, time.monotonic() + check.seconds)


def _answer(check: Check, writing: int) -> None:
    """Be the child: ask, tell the parent, end without what the parent would do at its end."""
    try:
        # A group of its own, to be ended with the programs that it runs.
        os.setsid()
        try:
            finding = check.ask()
        except Exception as error:  # noqa: BLE001  # one check's mistake is not the others'
            finding = failed(
                f"{type(error).__name__}: {error}", "this is a bug in the check: report it"
            )
        short = replace(finding, found=finding.found[:_LONGEST])
        os.write(writing, json.dumps(asdict(short)).encode())
    finally:
        os._exit(0)


def _finding(check: Check, child: _Child) -> Finding:
    try:
        told = _told(child)
    finally:
        os.close(child.answers)
        _end(child)
    if told is None:
        return failed(f"no answer in {check.seconds:g} s", check.if_silent)
    if not told:
        return failed("the check ended without an answer", "ask again; see the kernel's log")
    content = json.loads(told)
    return Finding(State(content["state"]), content["found"], content["next_step"])


def _told(child: _Child) -> bytes | None:
    """Read until the child has closed its end; None when it does not in time."""
    told = b""
    while True:
        left = max(0.0, child.deadline - time.monotonic())
        if not select.select([child.answers], [], [], left)[0]:
            return None
        part = os.read(child.answers, 65536)
        if not part:
            return told
        told += part


def _end(child: _Child) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    # What hangs in the kernel is left behind: its end may never come.
    deadline = time.monotonic() + _END_SECONDS
    while os.waitpid(child.pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.005)
