"""The options form's HTML, rendered from a user's limits and the cluster's free resources.

JupyterHub's page brings the ``<form>`` element and the Start button. The form works without
JavaScript; the script narrows the choices to what the chosen partition has, and keeps what is free
and the forecast up to date.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.choices import ChoiceField
from jupyterhub_gpu_slurm.options.form.filling import LEAST, fill_in
from jupyterhub_gpu_slurm.options.policy import Defaults, Limits, PartitionLimit
from jupyterhub_gpu_slurm.options.profile import Profile
from jupyterhub_gpu_slurm.outlook.availability import Availability, by_nodes, label
from jupyterhub_gpu_slurm.resources import ResourceShape

_MIB_PER_GIB = 1024
_ALL_UP_TO = 8
_NOT_COUNTED = frozenset({"reservation", "constraint"})

_TEMPLATES = Environment(
    loader=PackageLoader("jupyterhub_gpu_slurm.options.form", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class Live:
    """Data that changes while the form is open, and the address to fetch it from."""

    partitions: tuple[Availability, ...] = ()
    api_url: str = ""
    """``{what}`` in it stands for ``forecast`` or ``availability``."""
    interval: float = 10.0
    """Seconds between two looks at what is free."""


@dataclass(frozen=True)
class GpuChoice:
    """Choice of a number of GPUs, with the resources that come with it."""

    gpus: int
    cores: int
    memory: str
    is_chosen: bool
    is_free: bool | None
    """Whether the chosen partition has room for it now; ``None`` where that is not known."""

    @property
    def label(self) -> str:
        """The choice in words."""
        return "No GPU" if self.gpus == 0 else f"{self.gpus} GPU{'s' if self.gpus > 1 else ''}"


@dataclass(frozen=True)
class PartitionChoice:
    """Choice of a partition, for the form and its script."""

    name: str
    max_gpus: int
    max_hours: float | None
    is_chosen: bool
    types: dict[str, int]
    """The types of GPU that can be named, and the most of each."""


@dataclass(frozen=True)
class GpuType:
    """Type of GPU, and the partitions that have it."""

    name: str
    label: str
    partitions: tuple[str, ...]
    is_chosen: bool


@dataclass(frozen=True)
class ImageChoice:
    """Choice of an image for the session."""

    name: str
    title: str
    is_chosen: bool


@dataclass(frozen=True)
class ProfileChoice:
    """Choice of a named size, with the form's values for it."""

    profile: Profile
    gpus: int
    fields: Mapping[str, str]


@dataclass(frozen=True)
class OtherChoice:
    """Choice of account, QOS, reservation or feature, with the chosen value."""

    choice: ChoiceField
    chosen: str


NOT_LIVE = Live()


def render(
    limits: Limits,
    shape: ResourceShape,
    defaults: Defaults,
    chosen: Mapping[str, str],
    note: str = "",
    *,
    live: Live = NOT_LIVE,
    profiles: Sequence[Profile] = (),
) -> str:
    """Return the form. ``chosen`` pre-fills it; what cannot be had is named above it.

    Of the ``profiles``, those that the user can have now are offered.
    """
    if not limits.partitions:
        return render_unavailable(words.NO_PARTITION, is_fault=False)
    filling = fill_in(chosen, limits, defaults)
    partition, gpus, gpu_type = filling.partition, filling.gpus, filling.gpu_type
    rows = [_row(limit, partition) for limit in limits.partitions]
    of_type = next((gpu_type for row in rows if row.is_chosen and gpu_type in row.types), None)
    named = _profiles(profiles, limits, defaults)
    counts = _counts(rows, {gpus, *(one.gpus for one in named)})
    is_counted = limits.allowance.reservation is None
    # Of nodes with a feature, and of a reservation's, it is not known what is free.
    has = live.partitions if is_counted and not _NOT_COUNTED & filling.chosen.keys() else ()
    free = next((one for one in has if one.partition == partition), None)
    return _TEMPLATES.get_template("form.html.j2").render(
        sizes=[_size(count, gpus, shape, free, of_type) for count in counts],
        hours=words.hours(filling.time),
        least=words.hours(LEAST),
        rows=rows,
        types=_types(limits, gpu_type),
        images=[
            ImageChoice(name, title, name == filling.image) for name, title in limits.images.items()
        ],
        profiles=named,
        others=[
            OtherChoice(choice, filling.chosen.get(choice.key, ""))
            for choice in limits.choices.fields
        ],
        live=live,
        free=by_nodes(live.partitions),
        data={
            "partitions": [
                {"name": row.name, "max_gpus": row.max_gpus, "max_hours": row.max_hours}
                | {"types": row.types}
                for row in rows
            ],
            "available": [asdict(one) for one in live.partitions],
            "is_counted": is_counted,
            "api_url": live.api_url,
            "interval": live.interval,
            "profiles": [one.fields for one in named],
            "qos": limits.choices.qos_of_accounts,
        },
        note=note,
        not_taken=filling.not_taken,
    )


def render_unavailable(reason: str, *, is_fault: bool = True) -> str:
    """Return what stands in the form's place when nothing can be started.

    Where that is a rule and no fault of the portal's, the reason says what to do.
    """
    return _TEMPLATES.get_template("unavailable.html.j2").render(reason=reason, is_fault=is_fault)


def render_failure(why: str, log_lines: Sequence[str]) -> str:
    """Return what the page of a failed start says: why, and the end of the job's log."""
    return _TEMPLATES.get_template("failure.html.j2").render(why=why, log_lines=log_lines)


def _row(limit: PartitionLimit, chosen: str) -> PartitionChoice:
    return PartitionChoice(
        limit.name,
        limit.max_gpus,
        None if limit.max_time is None else float(words.hours(limit.max_time)),
        limit.name == chosen,
        {name: min(most, limit.max_gpus) for name, most in limit.max_of_type},
    )


def _counts(rows: Sequence[PartitionChoice], named: Set[int]) -> list[int]:
    """Return the numbers of GPUs to choose from: all small ones, of large ones some.

    ``named`` are among them in any case. A node that is cut into MIG slices may have more than
    fifty.
    """
    most = max(row.max_gpus for row in rows)
    counts = {*range(min(most, _ALL_UP_TO) + 1), *named}
    for row in rows:
        counts.update((row.max_gpus, *row.types.values()))
    step = _ALL_UP_TO
    while step < most:
        counts.update(range(step, min(2 * step, most), step // 4))
        step *= 2
    return sorted(counts)


def _types(limits: Limits, chosen: str) -> list[GpuType]:
    """Return the types to choose from; none where no partition has two of them."""
    if all(len(limit.max_of_type) < 2 for limit in limits.partitions):
        return []
    found: dict[str, list[str]] = {}
    for limit in limits.partitions:
        for name, _ in limit.max_of_type:
            found.setdefault(name, []).append(limit.name)
    return [
        GpuType(name, label(name), tuple(partitions), name == chosen)
        for name, partitions in sorted(found.items())
    ]


def _profiles(
    profiles: Sequence[Profile], limits: Limits, defaults: Defaults
) -> list[ProfileChoice]:
    found = [(profile, fill_in(profile.asked, limits, defaults)) for profile in profiles]
    return [
        ProfileChoice(profile, filling.gpus, filling.fields)
        for profile, filling in found
        if not filling.not_taken
    ]


def _size(
    count: int, chosen: int, shape: ResourceShape, has: Availability | None, gpu_type: str | None
) -> GpuChoice:
    needs = shape.resources(count)
    memory = f"{needs.memory_mb / _MIB_PER_GIB:g} GiB"
    is_free = None if has is None else has.is_free(count, gpu_type)
    return GpuChoice(count, needs.cores, memory, count == chosen, is_free)
