"""What holds a training up, told from how busy its parts were."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from measurement.papers import LEAST_GPU_USE

WELL_USED = LEAST_GPU_USE
"""The GPUs of the papers' server of ten computed in so much of the time or more, in every training;
those of their node of four in a little less (`papers.GPU_USE_OF_FOUR`)."""
_BUSY_CORES = 0.9
_BUSY_LINK = 0.8
# Less of a step's time than this is not worth a word.
_NOTABLE = 0.03


@dataclass(frozen=True)
class Busy:
    """Means over a measurement, each a share of 1. ``None``: not measured, or there is none."""

    gpu: float | None
    cores: float
    data_wait: float | None = None
    """Of a step's time: the network has no images yet. Measured in the training's loop."""
    all_reduce: float | None = None
    """Of a step's time: gradients are on their way, and nothing is computed."""
    link: float | None = None
    """Of what the network card can carry."""


def verdict(busy: Busy) -> str:
    """Say whether the GPUs were used well, and if not, what they most likely waited for."""
    if busy.gpu is None:
        return _without_gpus(busy)
    used = f"GPUs were computing {busy.gpu:.0%} of the time"
    if busy.gpu >= WELL_USED:
        return f"{used}: nothing held them up."
    return f"{used}, below {WELL_USED:.0%}. {_reason(busy)}"


def _without_gpus(busy: Busy) -> str:
    if (busy.data_wait or 0) >= _NOTABLE:
        return f"No GPU. {_reason(busy)}"
    return f"No GPU: the cores did the computing, and were busy {busy.cores:.0%} of the time."


def _reason(busy: Busy) -> str:
    waits = {"data": busy.data_wait or 0.0, "gradients": busy.all_reduce or 0.0}
    largest = max(waits, key=lambda name: waits[name])
    if waits[largest] < _NOTABLE:
        known = "data" if busy.all_reduce is None else "data or gradients"
        return (
            f"No time was lost on {known}: steps are too short for the GPUs. "
            "Try a larger batch, compiling, or half precision."
        )
    if largest == "gradients":
        return (
            f"{waits[largest]:.0%} of a step is the exchange of gradients: check the "
            "interconnect, or use a larger batch."
        )
    return f"{waits[largest]:.0%} of a step is waiting for data: {_of_data(busy)}"


def _of_data(busy: Busy) -> str:
    if busy.cores >= _BUSY_CORES:
        return f"the cores that decode are busy ({busy.cores:.0%}); more cores, or smaller images."
    if busy.link is not None and busy.link >= _BUSY_LINK:
        return f"the network link is full ({busy.link:.0%}); more links or mounts."
    return "the storage is slow, or there are too few readers; measure it with `storage`."


def busy(
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    data_wait: float | None = None,
    all_reduce: float | None = None,
    link_mb_per_second: float | None = None,
) -> Busy | None:
    """Take the means over all samples of all nodes; ``None`` where there are no samples.

    ``link_mb_per_second``: what a node's link can carry one way, where that is known.
    """
    lines = [line for node in samples.values() for line in node]
    if not lines:
        return None
    gpus = [share for line in lines for share in line["gpu_shares"]]
    received = _mean([line["received_mb_per_second"] for line in lines])
    return Busy(
        gpu=_mean(gpus) if gpus else None,
        cores=_mean([line["cpu_share"] for line in lines]),
        data_wait=data_wait,
        all_reduce=all_reduce,
        link=received / link_mb_per_second if link_mb_per_second else None,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
