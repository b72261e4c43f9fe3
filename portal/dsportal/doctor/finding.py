"""Findings: the result of a check, and how it is shown."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class State(StrEnum):
    """State of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    LEFT_OUT = "left out"
    """Not asked, because only root may."""


@dataclass(frozen=True)
class Finding:
    """Result of a check, with the next step where something is wrong."""

    state: State
    found: str
    next_step: str = ""


@dataclass(frozen=True)
class Line:
    """A line of the report: a check and its result."""

    check: str
    finding: Finding


def ok(found: str) -> Finding:
    """Say that a part is as it should be."""
    return Finding(State.OK, found)


def warning(found: str, next_step: str) -> Finding:
    """Say that a part works, and will not for long or not for all."""
    return Finding(State.WARNING, found, next_step)


def failed(found: str, next_step: str) -> Finding:
    """Say that a part does not work."""
    return Finding(State.FAILED, found, next_step)


def worst(findings: Sequence[Finding]) -> Finding:
    """Join what was found of one part: the worst state, everything that belongs to it."""
    order = [State.OK, State.LEFT_OUT, State.WARNING, State.FAILED]
    state = max((finding.state for finding in findings), key=order.index)
    alike = [finding for finding in findings if finding.state is state]
    steps = dict.fromkeys(finding.next_step for finding in alike if finding.next_step)
    return Finding(state, "; ".join(finding.found for finding in alike), "; ".join(steps))


def text(lines: Iterable[Line]) -> str:
    """Write one line for each check."""
    return "".join(f"{_printable(_words(line))}\n" for line in lines)


def _words(line: Line) -> str:
    finding = line.finding
    step = f" -> {finding.next_step}" if finding.next_step else ""
    return f"{finding.state:<8}  {line.check}: {finding.found}{step}"


def _printable(words: str) -> str:
    """Keep a line a line, whatever a program or a file's name put into it."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def as_json(lines: Iterable[Line]) -> str:
    """Write the same for programs."""
    return json.dumps([{"check": line.check} | asdict(line.finding) for line in lines], indent=1)
