"""From what was seen of a job to how long each phase of its start or its end took.

Moments are seconds of the wall clock, since the hub's and the session's logs are read beside them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

SETTLED, IMPORTED = "tls.crt", "kernel_configuration.py"
"""Files that ``dsportal.session`` writes just before its imports, and after them."""
_ENDING = frozenset({"RUNNING", "COMPLETING"})


@dataclass(frozen=True)
class JobSample:
    """What there was at a moment."""

    at: float
    state: str
    """Of the job, as ``squeue`` writes it; empty where there is none."""
    running: frozenset[str] = frozenset()
    """The programs of interest of which there was a process."""

    @property
    def is_over(self) -> bool:
        """Whether the job's GPUs are others' to have."""
        return self.state not in _ENDING


def first(samples: Iterable[JobSample], holds: Callable[[JobSample], bool]) -> float | None:
    """Return when it held first; ``None`` if it was never seen to."""
    return next((sample.at for sample in samples if holds(sample)), None)


def began(samples: Iterable[JobSample], program: str) -> float | None:
    """Return when a program was seen first; ``None`` for one that was never seen."""
    return first(samples, lambda sample: program in sample.running)


def ended(samples: Sequence[JobSample], program: str) -> float | None:
    """Return when a program was gone; ``None`` if it was never seen, or is still there."""
    seen = [number for number, sample in enumerate(samples) if program in sample.running]
    return samples[seen[-1] + 1].at if seen and samples[seen[-1] + 1 :] else None


def logged(said: str, words: str = "") -> float | None:
    """Return when a hub or a session wrote the first line with these words; ``None``: it has not.

    >>> line = "[I 2026-11-29 11:24:31.445 JupyterHub app:3913] Hub API listening on https://head"
    >>> logged(line, "listening") == datetime(2026, 11, 29, 11, 24, 31, 445000).timestamp()
    True
    """
    for line in said.splitlines():
        if words in line and (moment := _moment(line)) is not None:
            return moment
    return None


def _moment(line: str) -> float | None:
    # Python's own format has a comma and the bracket after it: [I 2026-11-30 16:06:56,385] ...
    written = " ".join(line.split()[1:3]).rstrip("]")
    try:
        return datetime.fromisoformat(written).astimezone().timestamp()
    except ValueError:
        return None


def durations(moments: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return how long each phase took: the seconds until its moment, from the one before it.

    Two that a look or a log has in the other order were at once. ``None`` where the end of a phase
    or its begin is not known.

    >>> durations({"asked": 1.0, "submitted": 1.5, "running": 1.25, "listens": 2.0})
    {'submitted': 0.5, 'running': 0.0, 'listens': 0.5}
    >>> durations({"asked": 1.0, "submitted": None, "running": 1.25, "listens": 2.0})
    {'submitted': None, 'running': None, 'listens': 0.75}
    """
    latest = -float("inf")
    in_order: list[tuple[str, float | None]] = []
    for name, moment in moments.items():
        latest = latest if moment is None else max(latest, moment)
        in_order.append((name, None if moment is None else latest))
    return {
        name: None if begin is None or end is None else end - begin
        for (_, begin), (name, end) in pairwise(in_order)
    }


def by_phase(runs: Iterable[Mapping[str, float | None]]) -> dict[str, list[float]]:
    """Put together what several runs took in each phase, where that is known.

    >>> by_phase([{"submitted": None, "running": 0.5}, {"submitted": 0.25, "running": 1.0}])
    {'submitted': [0.25], 'running': [0.5, 1.0]}
    """
    series: dict[str, list[float]] = {}
    for run in runs:
        for phase, seconds in run.items():
            series.setdefault(phase, []).extend([] if seconds is None else [seconds])
    return {phase: seconds for phase, seconds in series.items() if seconds}


@dataclass(frozen=True)
class StartSeen:
    """What was seen of a session's start."""

    asked: float
    told: float
    """When who asked knew that it is ready."""
    answered: float
    """When who asked had its first answer."""
    samples: Sequence[JobSample]
    hub_log: str
    session_log: str
    files: Mapping[str, float]
    """When `SETTLED` and `IMPORTED` were written in the session's own folder."""


def start_phases(seen: StartSeen) -> dict[str, float | None]:
    """Return how long each phase of a session's start took."""
    return durations(
        {
            "asked": seen.asked,
            "launcher_began": began(seen.samples, "launcher"),
            "sbatch_began": began(seen.samples, "sbatch"),
            "submitted": logged(seen.hub_log, "is the session of"),
            "running": first(seen.samples, lambda sample: sample.state == "RUNNING"),
            "session_began": began(seen.samples, "session"),
            "settled": seen.files.get(SETTLED),
            "imported": seen.files.get(IMPORTED),
            "first_line": logged(seen.session_log),
            "listens": logged(seen.session_log, " is running at"),
            "reported": logged(seen.hub_log, "/gpu-session/port"),
            "ready": logged(seen.hub_log, "seconds to start"),
            "told": seen.told,
            "answers": seen.answered,
        }
    )


def stop_phases(
    samples: Sequence[JobSample], asked: float, ordering: Sequence[str], running: Sequence[str]
) -> dict[str, float | None]:
    """Return how long each phase of a job's end took.

    ``ordering`` are the programs that give the order, ``running`` those that end by it, one after
    the other.
    """
    return durations(
        {
            "asked": asked,
            **{f"{program}_began": began(samples, program) for program in ordering},
            "ordered": first(samples, lambda sample: sample.state != "RUNNING"),
            **{f"{program}_ended": ended(samples, program) for program in running},
            "epilog_began": began(samples, "epilog"),
            "epilog_ended": ended(samples, "epilog"),
            "free": first(samples, lambda sample: sample.is_over),
        }
    )
