"""The papers' own figures, which reports print beside one's own.

Four of them, of 2018 to 2020, measured clusters of NVIDIA V100 GPUs on a scale-out NAS: an
architecture guide for a deep-learning cluster with a portal (nodes of 4 V100-SXM2), two papers on
the NAS with servers of 10 V100-PCIe and with DGX servers, and a blog with 72 GPUs. They are what
those machines did then: no promise of what others do.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Training:
    """Images per second of a training, in mixed precision, from the NAS."""

    model: str
    card: str
    gpus: int
    images_per_second: int
    framework: str = ""
    """Empty where our notes of the papers do not say it."""
    note: str = ""

    @property
    def who(self) -> str:
        """Name what was measured, without the number of GPUs."""
        return ", ".join(part for part in (self.framework, self.card, self.note) if part)


def _series(
    model: str, card: str, speeds: dict[int, int], framework: str = "", note: str = ""
) -> list[Training]:
    return [Training(model, card, gpus, speed, framework, note) for gpus, speed in speeds.items()]


_PCIE, _SXM2 = "V100-PCIe", "V100-SXM2"

TRAININGS = (
    *_series("resnet50", _PCIE, {1: 819, 8: 6142, 10: 7333}, "TensorFlow"),
    *_series("resnet50", _PCIE, {1: 1318, 8: 9155, 10: 11151}, "MXNet"),
    *_series("resnet50", _PCIE, {1: 740, 8: 5844, 10: 7251}, "PyTorch"),
    *_series("resnet50", _SXM2, {4: 2657, 8: 4560}, "TensorFlow", "as it came"),
    # The data set's private threads raised to four.
    *_series("resnet50", _SXM2, {4: 2940, 8: 5590}, "TensorFlow"),
    *_series("googlenet", _PCIE, {1: 1658, 8: 12937, 10: 16076}),
    *_series("inception3", _PCIE, {1: 520, 8: 4035, 10: 4939}),
    *_series("resnet152", _PCIE, {8: 2611}),
    *_series("vgg16", _PCIE, {8: 2895}),
)


@dataclass(frozen=True)
class SpeedUp:
    """The best that was seen over one GPU, or over the smallest number."""

    gpus: int
    times: float
    over: int = 1


SPEED_UPS = (SpeedUp(8, 7.8), SpeedUp(32, 29.4))
LINEAR = (8, 72)
"""Between these numbers of GPUs the throughput grew with their number."""

MIXED_OVER_FP32 = (0.65, 0.91)
"""How much more images/s in mixed precision than in fp32: from, to."""

MOST_VARIATION = 0.02
"""Between a training's iterations."""

LEAST_GPU_USE = 0.97
"""In all their trainings."""


@dataclass(frozen=True)
class PaperReading:
    """What the storage was read at while a model was trained on one node of 4 GPUs."""

    model: str
    images_per_second: int
    megabits_per_second: int


MB_PER_IMAGE = 0.113
READINGS = (
    PaperReading("alexnet", 7095, 6370),
    PaperReading("resnet50", 2940, 2680),
    PaperReading("vgg16", 1590, 1440),
)

STORAGE_MB_PER_SECOND = {1: 4959, 4: 18924}
"""fio's reads from the NAS, by the number of clients that read at once."""

TFRECORD_OVER_JPEG = {"vgg16": (1.23, 1.40), "alexnet": (5.0, 5.0)}
"""How much faster a training was with TFRecord files than with JPEG files: from, to."""

MOST_CONTAINER_LOSS = 0.019
"""Of the bare run's throughput."""

CACHE_HIT_RATES = {"768 GB of a host's memory": 0.035, "1 TB of the NAS's cache": 0.045}
"""Expected for 22.2 TB of data."""


def trainings(model: str) -> dict[str, dict[int, int]]:
    """Return a model's images/s by the number of GPUs, for each set-up that was measured.

    >>> trainings("vgg16")
    {'V100-PCIe': {8: 2895}}
    """
    found: dict[str, dict[int, int]] = {}
    for row in TRAININGS:
        if row.model == model:
            found.setdefault(row.who, {})[row.gpus] = row.images_per_second
    return found


# Inference: int8 beside fp32, calibrated on 50 batches of 25 images; top-1 and top-5, in points.
INT8_TIMES_FP32 = 3
INT8_POINTS = (-0.18, -0.02)
