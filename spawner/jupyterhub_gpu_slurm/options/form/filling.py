"""The values that the options form is filled in with: what was asked for, as far as allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.choices import LABELS
from jupyterhub_gpu_slurm.options.policy import Defaults, Limits, PartitionLimit

LEAST = timedelta(hours=0.1)
"""The shortest time that the form takes."""


@dataclass(frozen=True)
class Filling:
    """The values of the form's fields. Empty: any type, no image."""

    partition: str
    gpus: int
    gpu_type: str
    time: timedelta
    image: str
    not_taken: tuple[str, ...] = ()
    """A sentence for each value that was asked for and cannot be had: what it was, what stands."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Of the other choices, those that are not left open: key -> name."""

    @property
    def fields(self) -> dict[str, str]:
        """The values by the names of the form's fields; a choice that is missing is left open."""
        return {
            "gpus": f"{self.gpus}",
            "partition": self.partition,
            "gpu_type": self.gpu_type,
            "hours": words.hours(self.time),
            "image": self.image,
            **self.chosen,
        }


def fill_in(asked: Mapping[str, str], limits: Limits, defaults: Defaults) -> Filling:
    """Take what a link or the last choice asks for; the rest is left at its default."""
    gpus = _whole_number(asked.get("gpus", ""))
    limit, closed = _partition(asked.get("partition", ""), asked.get("gpu_type", ""), gpus, limits)
    gpu_type, untyped = _gpu_type(asked.get("gpu_type", ""), limit)
    most = min(limit.max_gpus, dict(limit.max_of_type).get(gpu_type, limit.max_gpus))
    taken = min(defaults.gpus, most) if gpus is None or gpus > most else gpus
    too_many = ""
    if gpus is None and asked.get("gpus"):
        too_many = words.gpus_not_understood(asked["gpus"], taken)
    elif gpus is not None and gpus > most:
        too_many = words.gpus_not_taken(gpus, limit.name, most, taken)
    time, too_long = _time(asked.get("hours", ""), limit, defaults)
    image, not_offered = asked.get("image", ""), ""
    if image and image not in limits.images:
        image, not_offered = "", words.image_not_taken(image)
    chosen, not_chosen = _choices(asked, limits)
    sentences = (closed, untyped, too_many, too_long, not_offered, *not_chosen)
    not_taken = tuple(filter(None, sentences))
    return Filling(limit.name, taken, gpu_type, time, image, not_taken, chosen)


def _partition(
    asked: str, gpu_type: str, gpus: int | None, limits: Limits
) -> tuple[PartitionLimit, str]:
    """Choose what was asked for, else the first with that type and number, else the default."""

    def has(limit: PartitionLimit, number: int) -> bool:
        most = dict(limit.max_of_type).get(gpu_type, 0) if gpu_type else limit.max_gpus
        return min(most, limit.max_gpus) >= max(number, 1 if gpu_type else 0)

    named = next((limit for limit in limits.partitions if limit.name == asked), None)
    if named is not None:
        return named, ""
    fits = [limit for limit in limits.partitions if has(limit, gpus or 0)]
    typed = [limit for limit in limits.partitions if has(limit, 0)]
    found = (fits or typed or list(limits.partitions))[0]
    return found, words.partition_not_taken(asked, found.name) if asked else ""


def _gpu_type(asked: str, limit: PartitionLimit) -> tuple[str, str]:
    if not asked or asked in dict(limit.max_of_type):
        return asked, ""
    return "", words.type_not_taken(asked, limit.name)


def _choices(asked: Mapping[str, str], limits: Limits) -> tuple[dict[str, str], list[str]]:
    fields = {choice.key: choice for choice in limits.choices.fields}
    wanted = {key: name for key in LABELS if (name := asked.get(key))}
    taken = {
        key: name for key, name in wanted.items() if key in fields and name in fields[key].names
    }
    sentences = [
        words.not_chosen(LABELS[key], name, fields[key].unchosen if key in fields else "")
        for key, name in wanted.items()
        if key not in taken
    ]
    return taken, sentences


def _time(asked: str, limit: PartitionLimit, defaults: Defaults) -> tuple[timedelta, str]:
    try:
        wanted = timedelta(hours=float(asked)) if asked else defaults.time
    except (ValueError, OverflowError):
        wanted = timedelta(0)
    # The form takes no less; a session before may have been started by the API for a minute.
    time = max(wanted if wanted > timedelta(0) else defaults.time, LEAST)
    most = limit.max_time
    if most is not None and time > most:
        return most, words.time_not_taken(time, limit.name, most) if asked else ""
    return time, words.time_not_understood(asked, time) if asked and time != wanted else ""


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None
