"""The papers' own figures, which reports print beside one's own.

Documents of 2017 to 2020, named in papers.json, measured clusters of NVIDIA V100 GPUs on a
scale-out NAS. All their figures stand in that file, each with its document and table; here are
those that reports ask for. They are what those machines did then: no promise of what others do.
Where a field is empty, our notes of the document do not say it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CONTENT: dict[str, Any] = json.loads(Path(__file__).with_name("papers.json").read_text())

DOCUMENTS: dict[str, str] = _CONTENT["documents"]


@dataclass(frozen=True)
class Figure:
    """A number of a table, a picture or a procedure."""

    document: str
    table: str
    row: str
    value: float
    unit: str
    framework: str = ""
    version: str = ""
    """Of the network: ResNet v1 and v1.5 differ in where they halve the picture."""
    card: str = ""
    gpus: int = 0
    nodes: int = 0
    batch: int = 0
    """Of each GPU."""
    precision: str = ""
    note: str = ""

    @property
    def who(self) -> str:
        """Name what was measured, without the number of GPUs."""
        software = " ".join(part for part in (self.framework, self.version) if part)
        return ", ".join(part for part in (software, self.card, self.note) if part)

    @property
    def setup(self) -> str:
        """Name what was measured, without the framework, of which tables have a column."""
        return ", ".join(part for part in (self.version, self.card, self.note) if part)


@dataclass(frozen=True)
class PublishedTable:
    """A table, a picture or a procedure of a document, and what reproduces it here."""

    document: str
    table: str
    title: str
    notebook: str
    reproduced: str
    """``whole``; for want of that hardware ``small``, or ``unrun``: not at all."""
    remark: str
    figures: tuple[Figure, ...]
    pages: str = ""
    """Of the document, where these were read themselves, not our notes of them."""


def _tables() -> Iterator[PublishedTable]:
    for one in _CONTENT["tables"]:
        common = one.pop("common", {}) | {"document": one["document"], "table": one["table"]}
        rows = tuple(Figure(**common | row) for row in one.pop("rows"))
        yield PublishedTable(**{"remark": ""} | one, figures=rows)


TABLES = tuple(_tables())


def rows(document: str, table: str, unit: str = "") -> tuple[Figure, ...]:
    """Return a table's figures, where needed those of one unit."""
    (found,) = (one for one in TABLES if (one.document, one.table) == (document, table))
    return tuple(one for one in found.figures if unit in ("", one.unit))


def figures(document: str, table: str, unit: str = "") -> dict[str, float]:
    """Return a table's values by their rows, where needed those of one unit."""
    return {one.row: one.value for one in rows(document, table, unit)}


TRAININGS = tuple(
    figure
    for table in TABLES
    if table.table == "training"
    for figure in table.figures
    if figure.unit == "images/s"
)
"""Images per second of trainings, in mixed precision, from the NAS."""


def trainings(model: str) -> dict[str, dict[int, int]]:
    """Return a model's images/s by the number of GPUs, for each set-up that was measured.

    >>> trainings("vgg16")
    {'V100-PCIe': {8: 2895}}
    """
    found: dict[str, dict[int, int]] = {}
    for figure in TRAININGS:
        if figure.row == model:
            found.setdefault(figure.who, {})[figure.gpus] = int(figure.value)
    return found


def of_network(model: str) -> list[Figure]:
    """Return the trainings of a network of the suite, which tells ResNet-50 v1 from the others.

    >>> [figure.value for figure in of_network("resnet50_v1")]
    [819, 6142, 7333]
    """
    row, _, version = model.partition("_")
    return [
        one for one in TRAININGS if one.row == row and (one.version == "v1") == (version == "v1")
    ]


SPEED_UPS = tuple(
    figure for table in TABLES if table.table == "speed-up" for figure in table.figures
)
"""How many times the throughput of one GPU."""

_LINEAR = figures("blog", "linear scaling")
LINEAR = (int(_LINEAR["from"]), int(_LINEAR["to"]))
"""Between these numbers of GPUs the throughput grew with their number."""

_MIXED = figures("guide", "gain of 16 bits")
MIXED_OVER_FP32 = (_MIXED["from"], _MIXED["to"])
"""How much more images/s in mixed precision than in fp32: from, to."""

MOST_VARIATION = figures("ten-gpu", "protocol")["most variation between iterations"]
"""Between a training's iterations."""

LEAST_GPU_USE = figures("ten-gpu", "GPU use")["all"]
"""In all trainings on the server of ten GPUs."""
GPU_USE_OF_FOUR = figures("guide", "GPU use")["resnet50"]
"""In ResNet-50's training on a node of 4 GPUs."""


@dataclass(frozen=True)
class PaperReading:
    """What the storage was read at while a model was trained on one node of 4 GPUs."""

    model: str
    images_per_second: int
    megabits_per_second: int
    mb_a_disk_read: float
    k_disk_reads_per_second: int
    """As printed; far more than follow from the two above."""


MB_PER_IMAGE = figures("guide", "reads in training", "MB")["an image"]
_READINGS = {
    unit: figures("guide", "reads in training", unit)
    for unit in ("images/s", "Mb/s", "MB a disk operation", "K disk reads/s")
}
READINGS = tuple(
    PaperReading(
        model,
        int(speed),
        int(_READINGS["Mb/s"][model]),
        _READINGS["MB a disk operation"][model],
        int(_READINGS["K disk reads/s"][model]),
    )
    for model, speed in _READINGS["images/s"].items()
)

STORAGE_MB_PER_SECOND = {
    int(row.split()[0]): int(speed) for row, speed in figures("dgx", "fio").items()
}
"""fio's reads from the NAS, by the number of clients that read at once."""

_FORMATS = figures("ten-gpu", "TFRecord over JPEG")
TFRECORD_OVER_JPEG = {
    "vgg16": (_FORMATS["vgg16, from"], _FORMATS["vgg16, to"]),
    "alexnet": (_FORMATS["alexnet"], _FORMATS["alexnet"]),
}
"""How much faster a training was with TFRecord files than with JPEG files: from, to."""

MOST_CONTAINER_LOSS = figures("ten-gpu", "containers")["most"]
"""Of the bare run's throughput; a container was as often the faster one."""

CACHE_HIT_RATES = figures("dgx", "cache hit rate", "share")
"""Expected for 22.2 TB of data."""

V100_OVER_P100 = rows("guide", "generations")
"""By how much more four V100 did than four P100 in ResNet-50's training."""
V100_TIMES_P100_IN_INFERENCE = figures("v100-blog", "generations in 2017", "times")["inference"]
_NVLINK = figures("guide", "NVLink", "share")
NVLINK_OVER_PCIE = (_NVLINK["from"], _NVLINK["to"])
"""By how much more GPUs did that NVLink joins, not PCIe: from, to."""
PEER_ACCESS_TIMES = {one.framework: one.value for one in rows("guide", "NVLink", "times")}
"""How much faster peer-to-peer access alone was by NVLink in such a training, by framework."""

PEER_GB_PER_SECOND = figures("guide", "peer to peer")["bandwidth"]
"""A large copy between two GPUs that NVLink joins."""
_LATENCY = figures("guide", "peer to peer", "us")
PEER_MICROSECONDS = (_LATENCY["latency, from"], _LATENCY["latency, to"])
"""A small copy between them: from, to."""
HOST_MICROSECONDS = _LATENCY["latency without peer-to-peer"]
"""The same through the host's memory."""

# Inference: int8 beside fp32, calibrated on 50 batches of 25 validation images.
_SPEED = figures("guide", "inference speed", "times")
INT8_TIMES_FP32 = (_SPEED["below the limit, from"], _SPEED["below the limit, to"])
"""Below the batch that follows."""
INT8_LIMIT = int(figures("guide", "inference speed")["the limit"])
INT8_TIMES_FP32_ABOVE = _SPEED["above the limit"]
_LOST = figures("guide", "inference precision", "points")
INT8_POINTS = (-_LOST["most"], -_LOST["least"])
