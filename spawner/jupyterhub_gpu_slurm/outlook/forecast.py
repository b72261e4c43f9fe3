"""A forecast of when a session would start, as Slurm estimates it (``sbatch --test-only``)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from jupyterhub_gpu_slurm.errors import CommandFailed, UnreadableOutput
from jupyterhub_gpu_slurm.slurm import launcher_answers

_AT_ONCE = timedelta(seconds=15)
"""Slurm's forecast of an immediate start lies a second or two ahead."""

# sbatch's words when the question did not get through (slurm_errno.c, Slurm 22.05): no answer.
_NO_ANSWER = re.compile(
    r"contact slurm controller|authentication error|Munge|timed? ?out|connection|backup controller"
    r"|temporarily un|Zero Bytes were|Unexpected message|Message (send|receive) failure|shutdown"
    r"|nodes are busy",
    re.I,
)
# And when no node can take the job: so small, or drained, down or reserved for others.
_NO_NODE = ("node configuration is not available", "node not available")
SILENT = "Slurm gave no forecast; this form keeps asking."
_OUT_OF_SERVICE = (
    "The nodes that are large enough are out of service or reserved now; "
    "a session would wait until one is back."
)

# What it says of a job that can run, but not now: in a reservation that begins later
# (job_test_resv() in reservation.c), or beyond a limit such as QOSMaxSubmitJobPerUserLimit.
_NOT_NOW = (
    (
        re.compile("Invalid time specified|Requested reservation not usable now"),
        "The reservation has not begun yet, or has no nodes; a session would wait for it",
    ),
    (
        re.compile(r"\w*SubmitJob\w*", re.ASCII),
        "You, or your account, have as many jobs as Slurm allows at once: wait, or stop one",
    ),
)

# What sbatch says of a job that can never run (slurm_errno.c, Slurm 22.05), and what it means here.
_NEVER = (
    *((words, "no node of the partition has enough GPUs, cores and memory") for words in _NO_NODE),
    ("More processors", "no node of the partition has enough cores"),
    ("Memory specification", "no node of the partition has enough memory"),
    ("node count", "no node of the partition can run it"),
    ("accounting/QOS", "the limits of your account or quality of service (QOS) do not allow it"),
    ("Assoc", "the limits of your Slurm account do not allow it"),
    ("time limit", "the partition does not allow so much time"),
    ("group not permitted", "the partition is not open to you"),
    ("account", "your Slurm account does not allow it"),
    ("QOS", "your quality of service (QOS) does not allow it"),
    ("qos", "your quality of service (QOS) does not allow it"),
    ("partition", "the partition does not accept the job"),
    ("GRES", "the partition has no such GPUs"),
    ("gres", "the partition has no such GPUs"),
)


@dataclass(frozen=True)
class Forecast:
    """An answer for the form."""

    state: Literal["now", "later", "never", "unknown"]
    start: datetime | None = None
    """With ``later``."""
    why: str = ""
    """With ``never`` and ``unknown``: a sentence."""

    def as_json(self) -> dict[str, str | None]:
        """Return what the form's script reads."""
        start = None if self.start is None else self.start.isoformat()
        return {"state": self.state, "start": start, "why": self.why}


def read(answer: Mapping[str, Any], now: datetime, *, is_large_enough: bool = False) -> Forecast:
    """Read the launcher's answer.

    ``is_large_enough`` says whether the partition has a node for it, in service or not; Slurm's
    words are the same for both. Raises `UnreadableOutput` for what the launcher never says, and
    `CommandFailed` where it says that Slurm gave no answer.
    """
    words = answer.get("never")
    if isinstance(words, str):
        return _without_start(words, is_large_enough)
    try:
        start = datetime.fromisoformat(answer["start"]).replace(tzinfo=UTC)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableOutput(
            "Slurm's forecast could not be read.", detail=f"launcher: {answer}"
        ) from error
    return Forecast("now") if start - now <= _AT_ONCE else Forecast("later", start)


def _without_start(words: str, is_large_enough: bool) -> Forecast:
    verdict = launcher_answers.verdict(words)
    if _NO_ANSWER.search(verdict):
        raise CommandFailed(SILENT, detail=f"sbatch: {launcher_answers.one_line(words)}")
    if is_large_enough and any(part in verdict for part in _NO_NODE):
        return Forecast("unknown", why=_OUT_OF_SERVICE)
    for pattern, plain in _NOT_NOW:
        if pattern.fullmatch(verdict):
            return Forecast("unknown", why=f"{plain} ({verdict}).")
    for part, plain in _NEVER:
        if part in verdict:
            return Forecast("never", why=f"{plain[0].upper()}{plain[1:]} ({verdict}).")
    return Forecast("never", why=f"Slurm says: {verdict}.")
