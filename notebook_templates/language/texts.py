"""Texts to train on: what every machine has, or files of one's own."""

import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LICENCES, PYTHON = "licences", "python"
_LICENCES = Path("/usr/share/common-licenses")
SUFFIXES = (".txt", ".md", ".py", ".jsonl")


class TextError(ValueError):
    """There is nothing to train on; the message says where it was looked for."""


def texts(data: str, python_files: int = 150) -> list[str]:
    """Read texts: "licences", "python" (sources of its library), a file, or a folder of files.

    Of a ``.jsonl``, the field ``text`` of each line is one text.
    """
    if data == LICENCES:
        found = [file.read_text(errors="replace") for file in _plain(_LICENCES)]
    elif data == PYTHON:
        library = Path(sysconfig.get_path("stdlib"))
        files = sorted(library.glob("*.py"))[:python_files]
        found = [file.read_text(errors="replace") for file in files]
    else:
        place = Path(data).expanduser()
        files = [place] if place.is_file() else files_below(place)
        found = [text for file in files if file.suffix in SUFFIXES for text in _of(file)]
    found = [text for text in found if text.strip()]
    if not found:
        raise TextError(f"data is {data!r}; there are no {', '.join(SUFFIXES)} with text in it")
    return found


def files_below(folder: Path) -> list[Path]:
    """Return all files of a folder, in a fixed order, but hidden ones.

    Jupyter keeps a copy of each text that it saves in ``.ipynb_checkpoints``.
    """
    found = {file: file.relative_to(folder).parts for file in folder.rglob("*") if file.is_file()}
    return sorted(
        file for file, parts in found.items() if not any(part.startswith(".") for part in parts)
    )


def _plain(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [file for file in sorted(folder.iterdir()) if file.is_file() and not file.is_symlink()]


def objects_of(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give each object of a file of JSON Lines, with the number of its line.

    Raises `TextError`, with the file and the line, where a line is something else.
    """
    # Not splitlines: a JSON text may have U+2028, which that takes for the end of a line.
    lines = _decoded(file).split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            raise TextError(f"{file}, line {number}: this is not JSON ({error.msg})") from error
        if not isinstance(found, dict):
            raise TextError(f"{file}, line {number}: this is not a JSON object with fields")
        yield number, found


def _decoded(file: Path) -> str:
    try:
        # Windows' programs begin a file with a byte order mark.
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(
            f"{file} is not UTF-8 text (byte {error.start + 1}). Convert it first, such as with: "
            "iconv -f ISO-8859-1 -t UTF-8"
        ) from error


def _of(file: Path) -> Iterator[str]:
    if file.suffix != ".jsonl":
        yield _decoded(file)
        return
    for number, found in objects_of(file):
        if not isinstance(found.get("text"), str):
            raise TextError(f'{file}, line {number}: there is no field "text" with a text')
        yield found["text"]
