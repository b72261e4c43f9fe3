"""Pictures that cannot be read: named, and left out where the user says so.

All are looked at once, before the training, so that every process and every later run of the same
folder leaves out the same: which images a step sees stays exact.
"""

import json
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jpegs
from digits import DataError
from folders import Labelled

TRAIN, TEST = "broken-train.json", "broken-val.json"
PATIENCE_SECONDS = 6 * 3600
LOOK_SECONDS = 0.5


def fault(path: str) -> str | None:
    """Say what is wrong with a file; ``None``: it is a whole picture."""
    try:
        jpegs.size_of(Path(path).read_bytes())
    except (OSError, jpegs.PictureError) as error:
        return str(error)
    return None


def faults(paths: Iterable[str]) -> dict[str, str]:
    """Read files, many at once, and say what is wrong with those that are no whole pictures."""
    listed = list(paths)
    # Pillow lets go of Python's lock while it decodes.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 2) as pool:
        found = zip(listed, pool.map(fault, listed), strict=True)
        return {path: said for path, said in found if said}


def named(paths: Iterable[str], otherwise: object) -> DataError:
    """Return the error that names the first broken file, or else says what was met."""
    for path in paths:
        if said := fault(path):
            return DataError(f"{path} cannot be read: {said}")
    return DataError(f"images cannot be read: {otherwise}")


def whole(
    files: Sequence[Labelled], listed: Path, is_first: bool, patience: float = PATIENCE_SECONDS
) -> list[Labelled]:
    """Return the files without those that are broken; the first process looks, the others wait.

    ``listed``: the file that says which are broken, kept for the next run.
    """
    if is_first and not listed.exists():
        building = listed.with_name(f".{listed.name}.{os.getpid()}")
        building.write_text(json.dumps(faults(path for path, _ in files), indent=1))
        building.replace(listed)
    until = time.monotonic() + patience
    while not listed.exists():
        if time.monotonic() > until:
            raise DataError(f"the first process did not write {listed}")
        time.sleep(LOOK_SECONDS)
    without = {_in_its_class(path) for path in json.loads(listed.read_text())}
    kept = [one for one in files if _in_its_class(one[0]) not in without]
    if not kept:
        raise DataError(f"none of the pictures can be read: {listed} says why")
    return kept


def _in_its_class(path: str) -> tuple[str, ...]:
    # Processes may read the same storage through other mounts.
    return tuple(path.rsplit("/", 2)[1:])


def _pictures(number: int) -> str:
    return "1 broken picture is" if number == 1 else f"{number} broken pictures are"


def left_out(folder: Path | None) -> list[str]:
    """Say how many pictures are left out, by the lists in a folder; nothing without one."""
    lists = [folder / name for name in (TRAIN, TEST)] if folder else []
    return [
        f"{_pictures(len(found))} left out: {file} says which"
        for file in lists
        if file.exists() and (found := json.loads(file.read_text()))
    ]
