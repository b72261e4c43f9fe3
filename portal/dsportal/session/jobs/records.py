"""Job records: values only; moments are seconds since 1970."""

import re
from dataclasses import dataclass

# A job; a task of an array, or several that wait (7_[3-5%2], 7_[0-9:3]), for which squeue may have
# no room (22.05: 7_[1,3,12; SLURM_BITSTR_LEN in squeue(1): 7_[1,3,...%2]); a part of a
# heterogeneous job (7+1).
_TASKS = r"_\[[\d,:-]{1,200}(?:\.\.\.)?(?:%\d{1,9})?\]?"
_JOB_ID = re.compile(rf"[1-9]\d{{0,9}}(?:_\d{{1,9}}|{_TASKS}|\+\d{{1,4}})?", re.ASCII)
_EXIT = re.compile(r"(\d{1,9})(?::(\d{1,3}))?", re.ASCII)
# squeue(1), "JOB STATE CODES": those that a job does not leave by itself.
_FINAL = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
LOST = "LOST"
"""Our own word for a job that is over, while Slurm no longer knows how it ended."""


@dataclass(frozen=True)
class UserJob:
    """A job of the session's user. ``None``: not known."""

    id: str
    state: str
    """Slurm's word, or `LOST`."""
    name: str | None = None
    reason: str | None = None
    """Why it waits: the service's sentence, or Slurm's word."""
    partition: str | None = None
    gpus: int | None = None
    nodes: tuple[str, ...] = ()
    is_session: bool = False
    submitted: float | None = None
    started: float | None = None
    expected_start: float | None = None
    ends: float | None = None
    """When its time is up, or when it ended."""
    exit_code: int | None = None
    signal: int | None = None
    """What ended it, where a signal did."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in _FINAL or self.state == LOST

    @property
    def is_group(self) -> bool:
        """Whether it stands for tasks of an array that wait: its name changes as they start."""
        return "[" in self.id


@dataclass(frozen=True)
class FreeGpus:
    """Free GPUs of one type in partitions that share their nodes."""

    partitions: tuple[str, ...]
    type: str | None
    free: int
    total: int


def is_job_id(text: str) -> bool:
    """Say whether a text is the number of a job, as squeue prints it, and nothing else.

    >>> [is_job_id(text) for text in ("7", "7_3", "7_[3-5%2]", "7+1", "-u", "7 8", "0")]
    [True, True, True, True, False, False, False]
    """
    return _JOB_ID.fullmatch(text) is not None


def exit_of(status: str) -> tuple[int | None, int | None]:
    """Read what squeue prints of a job's end as exit code and signal; neither where it is no end.

    Slurm 22.05 prints the status of wait(2), 24.11 code and signal.

    >>> exit_of("0"), exit_of("768"), exit_of("9")
    ((0, None), (3, None), (None, 9))
    >>> exit_of("0:0"), exit_of("3:0"), exit_of("0:9"), exit_of("")
    ((0, None), (3, None), (None, 9), (None, None))
    """
    match = _EXIT.fullmatch(status)
    if match is None:
        return None, None
    first, second = int(match[1]), match[2]
    code, signal = (first >> 8, first & 0x7F) if second is None else (first, int(second))
    return (None, signal) if signal else (code, None)
