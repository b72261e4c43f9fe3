"""Figures of the reference papers on storage for image models. MB are 10^6 bytes, as theirs are.

The figures are the reference papers', of 2018 to 2020. The A100's is read here as ResNet-50's on
small images.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

IMAGE_MB = {"small": Fraction("0.115"), "large": Fraction("1.3")}
"""ImageNet as it is; and with three times the height and width."""

MOUNT_MB_PER_SECOND = Fraction(2500)
"""What one NFS mount reads: half of a link of 40 Gb/s."""


@dataclass(frozen=True)
class Rate:
    """A kind of work: what one GPU reads, and how many GPUs one storage node feeds."""

    card: str
    model: str
    images: str
    mb_per_second: int | None
    """``None``: the papers' rate is not known to us."""
    gpus_per_node: Mapping[str, int]
    """By the kind of storage node."""


RATES = (
    Rate("V100", "resnet50-training", "small", 90, {"F800": 27, "H500": 7}),
    Rate("V100", "inference", "small", 160, {"F800": 20, "H500": 5}),
    Rate("V100", "inception4-training", "large", 300, {"F800": 9, "H500": 2}),
    Rate("A100", "resnet50-training", "small", None, {"F800": 8}),
)


def rate(card: str, model: str, images: str) -> Rate | None:
    """Find the papers' figures for a kind of work."""
    found = [one for one in RATES if (one.card, one.model, one.images) == (card, model, images)]
    return found[0] if found else None


def node_mb_per_second(storage: str, model: str, images: str) -> Fraction | None:
    """Say what a storage node gives: the GPUs that it feeds times what each reads.

    For work that the papers did not measure it is the lowest of what they did; ``None`` for
    storage that is not theirs.
    """
    known = {
        (one.model, one.images): Fraction(one.gpus_per_node[storage] * one.mb_per_second)
        for one in RATES
        if one.mb_per_second is not None and storage in one.gpus_per_node
    }
    return known.get((model, images), min(known.values(), default=None))
