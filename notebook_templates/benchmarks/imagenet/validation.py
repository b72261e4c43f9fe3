"""ImageNet's validation images and their labels, in the forms in which they are handed on.

- folders of classes: ``n01440764/*.JPEG`` and 999 more;
- all images in one folder, as the archive ILSVRC2012_img_val.tar holds them, with one of these:

  - the devkit's folder, with ``data/ILSVRC2012_validation_ground_truth.txt`` and ``data/meta.mat``;
  - Kaggle's ``LOC_val_solution.csv``, which names classes as their folders are called;
  - ``val.txt``, as Caffe has it: a file's name and a number from 0 to 999 in each line.

Networks number the classes by their folders' names, in alphabetical order. The devkit numbers them
in another order, from 1, which its ``meta.mat`` tells.
"""

import sys
from pathlib import Path

import scipy.io

# folders.py is among the templates for data, beside this folder.
sys.path += [str(Path(__file__).resolve().parents[2] / "data")]
import folders

CLASSES = 1000
DEVKIT, TRUTH, META = (
    "ILSVRC2012_devkit_t12", "ILSVRC2012_validation_ground_truth.txt", "meta.mat",
)  # fmt: skip
LISTS = ("LOC_val_solution.csv", "val.txt", DEVKIT)
"""What is looked for beside the images where nothing is named."""

Labelled = tuple[Path, int]  # a picture's file and the number of its class


class ImagenetError(ValueError):
    """The images or their labels cannot be used; the message says why."""


def found(folder: Path, labels: Path | None = None) -> list[Labelled]:
    """Find all images and their labels, in the order of the files' names.

    ``labels``: the list or the devkit's folder; ``None``: looked for in ``folder`` and above it.
    """
    if not folder.is_dir():
        raise ImagenetError(f"imagenet is {str(folder)!r}; there is no such folder")
    folder = folder / "val" if (folder / "val").is_dir() else folder
    if names := folders.class_names(folder):
        if labels:
            raise ImagenetError(f"{folder} has class folders: labels must be empty")
        return _in_classes(folder, names)
    pictures = folders.pictures_in(folder)
    if not pictures:
        raise ImagenetError(f"{folder} has neither folders of classes nor images")
    labels = labels or _list_in(folder) or _list_in(folder.parent)
    if labels is None:
        raise ImagenetError(
            f"{folder} has images without class folders, and no list of labels lies beside them: "
            f"{', '.join(LISTS)}"
        )
    numbers = read_labels(labels)
    if lacking := [path.name for path in pictures if path.stem not in numbers]:
        raise ImagenetError(f"{labels} has no label for {lacking[0]} ({len(lacking)} without)")
    return [(path, numbers[path.stem]) for path in pictures]


def read_labels(path: Path) -> dict[str, int]:
    """Read a list of labels, or the devkit's; returns the class's number by the image's stem."""
    try:
        if path.is_dir():
            return _of_devkit(path / "data" if (path / "data").is_dir() else path)
        lines = [line for line in path.read_text().splitlines() if line.strip()]
    except OSError as error:
        raise ImagenetError(f"labels cannot be read: {error}") from error
    if lines and lines[0].startswith("ImageId"):
        return _of_kaggle(path, lines[1:])
    return _of_lines(path, lines)


def _list_in(folder: Path) -> Path | None:
    return next((folder / name for name in LISTS if (folder / name).exists()), None)


def _in_classes(folder: Path, names: list[str]) -> list[Labelled]:
    if len(names) != CLASSES:
        raise ImagenetError(
            f"{folder} has {len(names):,} folders of classes; the networks know ImageNet's 1,000"
        )
    pictures = [
        (path, number)
        for number, name in enumerate(names)
        for path in folders.pictures_in(folder / name)
    ]
    if not pictures:
        raise ImagenetError(f"{folder} has no images in its folders {', '.join(names[:3])} ...")
    return pictures


def _of_kaggle(path: Path, lines: list[str]) -> dict[str, int]:
    """Read lines such as ``ILSVRC2012_val_00048981,n03995372 85 1 499 272``."""
    told = dict(line.split(",", 1) for line in lines)
    names = {stem: words.split()[0] for stem, words in told.items()}
    return _numbered(path, names)


def _numbered(path: Path, names: dict[str, str]) -> dict[str, int]:
    """Give the classes numbers, in the order of their names."""
    classes = sorted(set(names.values()))
    if len(classes) != CLASSES:
        raise ImagenetError(f"{path} names {len(classes):,} classes; ImageNet has 1,000")
    numbers = {name: number for number, name in enumerate(classes)}
    return {stem: numbers[name] for stem, name in names.items()}


def _of_lines(path: Path, lines: list[str]) -> dict[str, int]:
    """Read lines such as ``ILSVRC2012_val_00000001.JPEG 65``."""
    if lines and lines[0].strip().isdecimal():
        raise ImagenetError(
            f"{path} has numbers alone, as the devkit has, whose classes are in another order: "
            f"labels is to be the devkit's folder, with {TRUTH} and {META}"
        )
    pairs = [line.split() for line in lines]
    if any(len(pair) != 2 or not pair[1].isdecimal() for pair in pairs):
        raise ImagenetError(f"{path} is to have a file's name and its class's number in each line")
    numbers = {Path(name).stem: int(number) for name, number in pairs}
    if not numbers or max(numbers.values()) >= CLASSES:
        most = max(numbers.values(), default=0)
        raise ImagenetError(f"{path} has classes up to {most:,}; they count from 0 to 999")
    return numbers


def _of_devkit(folder: Path) -> dict[str, int]:
    lines = (folder / TRUTH).read_text().split()
    classes = {
        int(one["ILSVRC2012_ID"]): str(one["WNID"])
        for one in scipy.io.loadmat(str(folder / META), squeeze_me=True)["synsets"]
        # Others are groups of classes.
        if int(one["num_children"]) == 0
    }
    try:
        names = {
            f"ILSVRC2012_val_{number:08d}": classes[int(line)]
            for number, line in enumerate(lines, 1)
        }
    except (KeyError, ValueError) as error:
        raise ImagenetError(
            f"{folder / TRUTH} has a class that {META} does not: {error}"
        ) from error
    numbers = {name: number for number, name in enumerate(sorted(classes.values()))}
    if len(numbers) != CLASSES:
        raise ImagenetError(f"{folder / META} has {len(numbers):,} classes; ImageNet has 1,000")
    return {stem: numbers[name] for stem, name in names.items()}
