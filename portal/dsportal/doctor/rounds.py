"""All checks side by side, each in a process of its own and for a limited time.

A question to a file system that hangs cannot be taken back, not even by ending its thread. So each
check is a child; one that does not answer in time is killed, or left behind where even that hangs.
Of one check there is one such child at most, however many rounds there are.
"""

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Sequence, Set
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


def run(
    checks: Sequence[Check], *, is_root: bool, hanging: dict[int, str] | None = None
) -> list[Line]:
    """Ask everything at once; give the answers in the order of the questions.

    ``hanging``: the children of earlier rounds that were left behind, each with its check's name;
    it is kept up to date. What one of them still waits for is not asked again.
    """
    hanging = {} if hanging is None else hanging
    for pid in [pid for pid in hanging if _has_ended(pid)]:
        del hanging[pid]
    waited_for = frozenset(hanging.values())
    begun = [_not_asked(check, is_root, waited_for) or _started(check) for check in checks]
    findings = [
        one if isinstance(one, Finding) else _finding(check, one, hanging)
        for check, one in zip(checks, begun, strict=True)
    ]
    return [Line(check.name, finding) for check, finding in zip(checks, findings, strict=True)]


def _not_asked(check: Check, is_root: bool, waited_for: Set[str]) -> Finding | None:
    if check.needs_root and not is_root:
        return Finding(State.LEFT_OUT, "only root may ask")
    if check.name in waited_for:
        return failed("still no answer to an earlier round", check.if_silent)
    return None


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


def _finding(check: Check, child: _Child, hanging: dict[int, str]) -> Finding:
    try:
        told = _told(child)
    finally:
        os.close(child.answers)
        if not _end(child):
            hanging[child.pid] = check.name
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


def _end(child: _Child) -> bool:
    """Kill a child and its programs; say whether it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    # What hangs in the kernel is left behind: its end may never come.
    deadline = time.monotonic() + _END_SECONDS
    while not (has_ended := _has_ended(child.pid)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return has_ended


def _has_ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] != 0
