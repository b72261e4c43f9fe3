"""Input of the sizing: one schema for the command, the page's form and its address."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


class SizingError(ValueError):
    """Invalid input; ``faults`` has a sentence for each field, by its name."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(" ".join(f"{name}: {fault}" for name, fault in faults.items()))
        self.faults = dict(faults)


@dataclass(frozen=True)
class Choice:
    """Field with a fixed list of choices."""

    label: str
    choices: Mapping[str, str]
    """Word -> what it means."""
    default: str
    unit: str = ""
    note: str = ""

    def read(self, text: str) -> str:
        """Read a word."""
        if text not in self.choices:
            raise ValueError(f"{text[:40]!r} must be one of {', '.join(self.choices)}.")
        return text


@dataclass(frozen=True)
class Number:
    """A number from ``least`` to ``most``; without a default it may stay open."""

    label: str
    unit: str
    least: float
    most: int
    default: str = ""
    is_whole: bool = False
    note: str = ""

    def read(self, text: str) -> int | Fraction | None:
        """Read a number as it is written: without an exponent, a sign or a thousands mark."""
        if not text:
            return None
        kind = "whole number" if self.is_whole else "number"
        pattern = r"[0-9]{1,9}" if self.is_whole else r"[0-9]{1,9}(\.[0-9]{1,9})?"
        if not re.fullmatch(pattern, text) or not self.least <= Fraction(text) <= self.most:
            raise ValueError(f"{text[:40]!r} must be a {kind} from {self.least:g} to {self.most}.")
        return int(text) if self.is_whole else Fraction(text)


FIELDS: Mapping[str, Choice | Number] = {
    "gpus": Number("GPUs", "in all hosts together", 1, 100_000, "80", is_whole=True),
    "gpus_per_host": Number("GPUs per host", "", 1, 64, "8", is_whole=True),
    "card": Choice("Card", {"V100": "V100", "A100": "A100", "other": "another card"}, "V100"),
    "model": Choice(
        "Model and work",
        {
            "resnet50-training": "ResNet-50, training",
            "inception4-training": "Inception v4, training",
            "inference": "inference",
            "other": "another model",
        },
        "resnet50-training",
    ),
    "images": Choice(
        "Images", {"small": "small, 115 KB each", "large": "large, 1.3 MB each"}, "small"
    ),
    "storage": Choice(
        "Storage nodes",
        {"F800": "F800, all flash", "H500": "H500, disks and flash", "other": "another kind"},
        "F800",
    ),
    "link_gbps": Number("Link of a host", "Gb/s", 0.1, 1600, "40"),
    "storage_link_gbps": Number(
        "Link of a storage node", "Gb/s", 0.1, 1600, note="as a host's if left out"
    ),
    "storage_nodes": Number(
        "Number of storage nodes you have",
        "",
        1,
        10_000,
        is_whole=True,
        note="to see how much they feed",
    ),
    "images_per_second": Number(
        "Speed of one GPU", "images/s", 0.001, 1_000_000, note="instead of the papers' rate"
    ),
    "mb_per_image": Number(
        "Mean size of an image", "MB", 0.0001, 100_000, note="instead of the size above"
    ),
    "node_mb_per_second": Number(
        "One storage node gives", "MB/s", 1, 1_000_000, note="instead of the papers'"
    ),
    "mount_mb_per_second": Number(
        "One mount reads", "MB/s", 1, 1_000_000, note="instead of 2,500 MB/s"
    ),
}
MEASURED = (
    "images_per_second",
    "mb_per_image",
    "node_mb_per_second",
    "mount_mb_per_second",
)
"""One's own figures, in the place of the papers'."""


@dataclass(frozen=True)
class Question:
    """GPUs to feed, and the storage to feed them from; `FIELDS` describes each field."""

    gpus: int
    gpus_per_host: int
    card: str
    model: str
    images: str
    storage: str
    link_gbps: Fraction
    storage_link_gbps: Fraction | None = None
    """``None``: as a host's."""
    storage_nodes: int | None = None
    """``None``: it is asked how many are needed."""
    images_per_second: Fraction | None = None
    mb_per_image: Fraction | None = None
    node_mb_per_second: Fraction | None = None
    mount_mb_per_second: Fraction | None = None


def question(given: Mapping[str, str]) -> Question:
    """Read what was given; what is empty or left out has its default.

    Raises `SizingError` with all that is wrong.
    """
    faults = {name: "There is no such field." for name in given if name not in FIELDS}
    values: dict[str, Any] = {}
    for name, about in FIELDS.items():
        try:
            values[name] = about.read(given.get(name, "").strip() or about.default)
        except ValueError as error:
            faults[name] = str(error)
    if values.get("mb_per_image") and values.get("images_per_second", "wrong") is None:
        faults["images_per_second"] = "It is needed together with the size of an image."
    if faults:
        raise SizingError(faults)
    return Question(**values)
