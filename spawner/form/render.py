"""From a user's limits to the options form's HTML.

JupyterHub's page brings the ``<form>`` element and the Start button. The form works without
JavaScript; the script only greys out what the chosen partition does not have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from jinja2 import Environment, PackageLoader, StrictUndefined

from spawner.policy import Defaults, Limits, hours
from spawner.resources import ResourceShape

_MB_PER_GB = 1024

_TEMPLATES = Environment(
    loader=PackageLoader("spawner.form", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Size:
    """One choice of a number of GPUs, and what comes with it."""

    gpus: int
    cores: int
    memory: str
    is_chosen: bool

    @property
    def label(self) -> str:
        """The choice in words."""
        return "No GPU" if self.gpus == 0 else f"{self.gpus} GPU{'s' if self.gpus > 1 else ''}"


@dataclass(frozen=True)
class Row:
    """One partition, for the form and its script."""

    name: str
    max_gpus: int
    max_hours: float | None
    is_chosen: bool


def render(
    limits: Limits,
    shape: ResourceShape,
    defaults: Defaults,
    chosen: Mapping[str, str],
    note: str = "",
) -> str:
    """Return the form. ``chosen`` pre-fills it; what does not fit is left at its default."""
    if not limits.partitions:
        return render_unavailable("No partition of the cluster is open to you now.")
    names = [limit.name for limit in limits.partitions]
    partition = chosen.get("partition", "")
    if partition not in names:
        partition = names[0]
    gpus = _whole_number(chosen.get("gpus", ""))
    if gpus is None or gpus > limits.max_gpus:
        gpus = min(defaults.gpus, limits.max_gpus)
    rows = [
        Row(
            limit.name,
            limit.max_gpus,
            None if limit.max_time is None else limit.max_time / timedelta(hours=1),
            limit.name == partition,
        )
        for limit in limits.partitions
    ]
    return _TEMPLATES.get_template("form.html.j2").render(
        sizes=[_size(count, gpus, shape) for count in range(limits.max_gpus + 1)],
        hours=_hours(chosen.get("hours", ""), defaults, limits, partition),
        rows=rows,
        data=[asdict(row) for row in rows],
        note=note,
    )


def render_unavailable(reason: str) -> str:
    """Return what stands in the form's place when nothing can be started."""
    return _TEMPLATES.get_template("unavailable.html.j2").render(reason=reason)


def render_failure(words: str, log_lines: Sequence[str]) -> str:
    """Return what the page of a failed start says: why, and the end of the job's log."""
    return _TEMPLATES.get_template("failure.html.j2").render(words=words, log_lines=log_lines)


def _size(count: int, chosen: int, shape: ResourceShape) -> Size:
    needs = shape.resources(count)
    return Size(count, needs.cores, f"{needs.memory_mb / _MB_PER_GB:g} GB", count == chosen)


def _hours(text: str, defaults: Defaults, limits: Limits, partition: str) -> str:
    limit = next(limit for limit in limits.partitions if limit.name == partition).max_time
    try:
        time = timedelta(hours=float(text))
    except (ValueError, OverflowError):
        time = defaults.time
    if time <= timedelta(0):
        time = defaults.time
    return hours(time if limit is None else min(time, limit))


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None
