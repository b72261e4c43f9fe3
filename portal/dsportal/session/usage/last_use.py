"""The time of a session's last use: the decision, apart from the measurements.

In *use* is a session whose kernel executes a cell, whose GPUs work, whose processes compute, whose
terminal takes input or shows a program's output, or whose page changes something. An open page is
no use: JupyterLab asks for kernels and folders every few seconds, and keeps its connections alive,
as long as the tab is there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

COMPUTING_CORES = 0.05
"""A kernel that waits for its next cell, and a shell that waits for its next line, stay below a
hundredth of a core."""
WORKING_GPU_PERCENT = 1
STANDSTILL_SECONDS = 300.0
"""Longer than from one look to the next."""

ProcessKey = tuple[int, int]
"""Number and start: a number may be given again."""


@dataclass(frozen=True)
class Process:
    """A process of the session's job."""

    key: ProcessKey
    parent: int
    cpu_seconds: float
    """Its own, and that of its ended children."""
    terminal: "Terminal | None" = None
    """Of the first process in a terminal, mostly its shell."""
    read_bytes: int = 0
    """What it, and its ended children, had storage read. Not what came from Linux's cache."""
    written_bytes: int = 0
    """What they gave to storage to be written, at once or later."""
    resident_bytes: int = 0
    is_the_portals: bool = False
    """The session's server, or what it runs for itself."""


@dataclass(frozen=True)
class Terminal:
    """A terminal's last input and output, in seconds since 1970; Linux rounds them down to 8 s."""

    typed_at: float
    """When a program read what was typed."""
    written_at: float
    is_at_prompt: bool
    """Whether the shell itself waits, not a program that it runs."""

    @property
    def used_at(self) -> float:
        """When it was used. A prompt that is drawn anew is nobody's use."""
        return self.typed_at if self.is_at_prompt else max(self.typed_at, self.written_at)


@dataclass(frozen=True)
class UseSample:
    """The session at one moment. Moments are seconds since 1970."""

    at: float
    has_busy_kernel: bool = False
    kernel_used_at: float = 0.0
    """The last word of a kernel about something that it was asked to do."""
    page_used_at: float = 0.0
    """The last change that a page made, or the last sign of the user's hand."""
    processes: Mapping[ProcessKey, Process] = field(default_factory=dict)
    """Those of the job, without the server itself."""
    processes_at: float = 0.0
    """When they were looked at."""
    gpu_percents: Sequence[int | None] = ()


def last_use(look: UseSample, before: UseSample | None, last: float) -> float:
    """Return when the session was last used, which was ``last`` until the look before.

    Nobody could use one that was suspended with its job; a clock that was set forward looks alike.
    """
    stood_still = before is not None and look.at - before.at > STANDSTILL_SECONDS
    if (
        stood_still
        or look.has_busy_kernel
        or computing_cores(look, before) >= COMPUTING_CORES
        or are_working(look.gpu_percents)
    ):
        return look.at
    terminals = [one.terminal.used_at for one in look.processes.values() if one.terminal]
    # A moment in the future comes from a clock that was set back.
    return min(look.at, max(last, look.kernel_used_at, look.page_used_at, *terminals, 0.0))


def computing_cores(look: UseSample, before: UseSample | None) -> float:
    """Return how many cores the processes kept busy since the look before, on the average."""
    if before is None or look.processes_at <= before.processes_at:
        return 0.0
    seconds = increase(look.processes, before.processes, lambda process: process.cpu_seconds)
    return seconds / (look.processes_at - before.processes_at)


def increase(
    processes: Mapping[ProcessKey, Process],
    before: Mapping[ProcessKey, Process],
    count: Callable[[Process], float],
) -> float:
    """Return by how much a counter of all the processes has grown.

    Linux adds the counters of a process that ends to those of its parent (wait(2)).
    """
    grown = 0.0
    for key, process in processes.items():
        known = before.get(key)
        grown += count(process) - (count(known) if known else 0)
    present = {key[0] for key in processes if key in before}
    for key, process in before.items():
        # What it had counted is in its parent's figure now, and is not new.
        if key not in processes and process.parent in present:
            grown -= count(process)
    return grown


def are_working(gpu_percents: Sequence[int | None]) -> bool:
    """Say whether GPUs work. ``None`` is a GPU that does not tell, such as a slice (MIG)."""
    return any(percent is not None and percent >= WORKING_GPU_PERCENT for percent in gpu_percents)
