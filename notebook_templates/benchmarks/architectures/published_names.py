"""The names that published weights have for the parts of these networks.

torchvision's for all but Inception v4, timm's for that. A part is a layer with weights; what is
learned of it (``weight``, ``running_mean``) is called the same everywhere.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from architectures import googlenet, models

# The package networks is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parents[2] / "distributed")]
from networks import stages

Pair = tuple[str, str]  # a part's name here, and in published files

HEADS_BETWEEN = ("aux1.", "aux2.", "AuxLogits.")
"""How those begin that are for training alone."""

LARGE_LAYERS = {
    "alexnet": {15: 1, 18: 4, 21: 6},
    "vgg16": {33: 0, 36: 3, 39: 6},
    "vgg19": {39: 0, 42: 3, 45: 6},
}
"""Places of the three at the end, here and in published files' ``classifier``."""

V3_STEM = {
    "0": "Conv2d_1a_3x3",
    "1": "Conv2d_2a_3x3",
    "2": "Conv2d_2b_3x3",
    "4": "Conv2d_3b_1x1",
    "5": "Conv2d_4a_3x3",
}
V3_STAGES = ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a", "7b", "7c")


def pairs(model: str) -> dict[str, str]:
    """Return a network's parts by their names here, with their published names."""
    if model in models.RESNETS:
        return dict(_of_resnet(models.RESNETS[model]))
    match model:
        case "googlenet":
            return dict([*_normalised(_of_googlenet()), ("head.3", "fc")])
        case "inception3":
            return dict([*_normalised(_of_inception_v3()), ("head.3", "fc")])
        case "inception4":
            return dict([*_normalised(_of_inception_v4()), ("head.3", "last_linear")])
    large = LARGE_LAYERS[model]
    # More places than there are convolutions: what has no weights is not asked for.
    convolutions = ((str(place), f"features.{place}") for place in range(min(large)))
    return dict([*convolutions, *((str(n), f"classifier.{m}") for n, m in large.items())])


def _of_resnet(model: str) -> Iterator[Pair]:
    yield from (("stem.0", "conv1"), ("stem.1", "bn1"), ("head", "fc"))
    counts = [count for count, _ in stages.stages_of(model)]
    published = [
        f"layer{stage}.{block}" for stage, count in enumerate(counts, 1) for block in range(count)
    ]
    for number, there in enumerate(published):
        here = f"blocks.{number}"
        for part in (1, 2, 3):
            yield f"{here}.conv{part}", f"{there}.conv{part}"
            yield f"{here}.norm{part}", f"{there}.bn{part}"
        for part in (0, 1):
            yield f"{here}.shortcut.{part}", f"{there}.downsample.{part}"


def _normalised(convolutions: Iterable[Pair]) -> Iterator[Pair]:
    """Give a convolution's and its normalisation's names, of both together."""
    for here, there in convolutions:
        yield f"{here}.0", f"{there}.conv"
        yield f"{here}.1", f"{there}.bn"


def _of_googlenet() -> Iterator[Pair]:
    yield from (("stages.0.0", "conv1"), ("stages.0.2.0", "conv2"), ("stages.0.2.1", "conv3"))
    for stage, name in enumerate(googlenet.MODULES, 1):
        here = f"stages.{stage}.0" if name in googlenet.POOLS else f"stages.{stage}"
        there = f"inception{name}"
        yield f"{here}.paths.0.0", f"{there}.branch1"
        for branch in (2, 3):
            for layer in (0, 1):
                yield f"{here}.paths.{branch - 1}.{layer}", f"{there}.branch{branch}.{layer}"
        yield f"{here}.paths.3.1", f"{there}.branch4.1"


def _of_inception_v3() -> Iterator[Pair]:
    yield from ((f"stages.0.{place}", name) for place, name in V3_STEM.items())
    for stage, name in enumerate(V3_STAGES, 1):
        for place, branch in _V3_BRANCHES[name].items():
            yield f"stages.{stage}.paths.{place}", f"Mixed_{name}.branch{branch}"


def _numbered(path: int, name: str, many: int) -> dict[str, str]:
    return {f"{path}.{layer}": f"{name}_{layer + 1}" for layer in range(many)}


_ENDS = {"0.0": "1x1", "3.1": "_pool"}
_OF_35 = {**_ENDS, **_numbered(1, "5x5", 2), **_numbered(2, "3x3dbl", 3)}
_TO_17 = {"0": "3x3", **_numbered(1, "3x3dbl", 3)}
_OF_17 = {**_ENDS, **_numbered(1, "7x7", 3), **_numbered(2, "7x7dbl", 5)}
_TO_8 = {**_numbered(0, "3x3", 2), **_numbered(1, "7x7x3", 4)}
_OF_8 = {
    **_ENDS,
    **_numbered(1, "3x3", 1),
    "1.1.paths.0": "3x3_2a",
    "1.1.paths.1": "3x3_2b",
    **_numbered(2, "3x3dbl", 2),
    "2.2.paths.0": "3x3dbl_3a",
    "2.2.paths.1": "3x3dbl_3b",
}
_V3_BRANCHES = {
    **dict.fromkeys(("5b", "5c", "5d"), _OF_35),
    "6a": _TO_17,
    **dict.fromkeys(("6b", "6c", "6d", "6e"), _OF_17),
    "7a": _TO_8,
    **dict.fromkeys(("7b", "7c"), _OF_8),
}


def _branches(*layers: int) -> dict[str, str]:
    """Name branches of so many convolutions each; 0: of one that is the whole branch."""
    return {
        f"{branch}{layer}": f"branch{branch}{layer}"
        for branch, many in enumerate(layers)
        for layer in ([f".{n}" for n in range(many)] if many else [""])
    }


_POOLED = {"3.1": "branch3.1"}
_V4_OF_8 = {
    "0": "branch0",
    "1.0": "branch1_0",
    "1.1.paths.0": "branch1_1a",
    "1.1.paths.1": "branch1_1b",
    **{f"2.{layer}": f"branch2_{layer}" for layer in range(3)},
    "2.3.paths.0": "branch2_3a",
    "2.3.paths.1": "branch2_3b",
    **_POOLED,
}
_V4_BRANCHES = (
    {"1": "conv"},
    _branches(2, 4),
    {"0": "conv"},
    *[{**_branches(0, 2, 3), **_POOLED}] * 4,
    _branches(0, 3),
    *[{**_branches(0, 3, 5), **_POOLED}] * 7,
    _branches(2, 4),
    *[_V4_OF_8] * 3,
)
"""Of each stage after the three plain convolutions at the beginning."""


def _of_inception_v4() -> Iterator[Pair]:
    yield from ((f"stages.{place}", f"features.{place}") for place in range(3))
    for stage, branches in enumerate(_V4_BRANCHES, 3):
        for place, name in branches.items():
            yield f"stages.{stage}.paths.{place}", f"features.{stage}.{name}"
