"""Inference over many files: which files there are, who does which, and what has been found.

A run's folder has ``files.json``, the names of all files below the folder of data, and ``parts``:
each part holds the results of some files, as JSON Lines, and is there whole or not at all. A file
with a result is done. Nothing else is remembered, so that a run can be cancelled at any moment and
resumed by any number of tasks.
"""

import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from model_folders import Kind

sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
from record import write_whole

FILES, PARTS = "files.json", "parts"
SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "text": (".txt",),
}


class DataFolderError(ValueError):
    """There are no files to work on; the message says where they were looked for."""


def files_below(folder: Path, kind: Kind) -> list[str]:
    """Return the names of all images or texts below a folder; raises `DataFolderError`."""
    names = []
    for place, below, files in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        there = Path(place).relative_to(folder)
        names += [str(there / name) for name in files if name.lower().endswith(SUFFIXES[kind])]
    if not names:
        raise DataFolderError(f"{folder} has no files that end in {', '.join(SUFFIXES[kind])}")
    return sorted(names)


def listed(folder: Path) -> list[str]:
    """Return a run's files, as they were listed last; none before that."""
    file = folder / FILES
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


def list_files(folder: Path, data: Path, kind: Kind) -> list[str]:
    """Write down a run's files; new ones come behind those that were listed before."""
    folder.mkdir(parents=True, exist_ok=True)
    files = with_new(listed(folder), files_below(data, kind))
    content = json.dumps(files).encode()
    write_whole(folder / FILES, lambda stream: stream.write(content))
    return files


def with_new(known: Sequence[str], there: Sequence[str]) -> list[str]:
    """Add what is new behind what is known: a file keeps its place in the list."""
    before = set(known)
    return [*known, *(name for name in there if name not in before)]


def shard(files: Sequence[str], done: Collection[str], task: int, tasks: int) -> list[int]:
    """Return the indices of the files that are left for a task, of ``tasks`` that count from 0."""
    return [index for index in range(task, len(files), tasks) if files[index] not in done]


def groups(indices: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Divide indices into groups, each of which becomes a part."""
    for begin in range(0, len(indices), size):
        yield indices[begin : begin + size]


def part_of(group: Sequence[int]) -> str:
    """Name a group's part: no two have the same first file, because no file is done twice."""
    return f"{group[0]:08}.jsonl"


class FileResults:
    """What a run has found so far; a part is read once."""

    def __init__(self, folder: Path) -> None:
        self._parts = folder / PARTS
        self._read: dict[str, list[dict[str, Any]]] = {}

    def lines(self) -> list[dict[str, Any]]:
        """Return the results of all files that are done, in the order of the list of files."""
        for part in self._parts.glob("*.jsonl"):
            if part.name not in self._read:
                text = part.read_text(encoding="utf-8")
                self._read[part.name] = [json.loads(line) for line in text.splitlines()]
        return [line for name in sorted(self._read) for line in self._read[name]]

    def done(self) -> set[str]:
        """Return the names of the files that have a result."""
        return {line["file"] for line in self.lines()}
