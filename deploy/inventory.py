"""The inventories: which there are, and whether one was left as the example has it.

Standard library only, as `bootstrap`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "ansible/inventories"
EXAMPLE = "example"
# Those that are there to be copied.
EXAMPLES = {EXAMPLE, "attach"}
# Addresses and domains that exist for examples only (RFC 5737, RFC 2606).
PLACEHOLDER = re.compile(r"\b192\.0\.2\.\d|\bexample\.(?:org|com)\b|\bdc=example,dc=(?:org|com)\b")


class InventoryError(Exception):
    """There is none of that name, or it is not complete; the message says what to do."""


def names() -> list[str]:
    """Return the names one may deploy; the examples are there to be copied."""
    return sorted({path.name for path in FOLDER.iterdir()} - EXAMPLES)


def find(given: str) -> Path:
    """Return the folder of the inventory of this name, or at this path."""
    for folder in (FOLDER / given, Path(given).resolve()):
        if (folder / "hosts.yml").is_file():
            return folder
    raise InventoryError(
        f"no inventory {given!r}: name one of {', '.join(names())}, or a folder with a hosts.yml, "
        f"such as your copy of {FOLDER / EXAMPLE}"
    )


def check(folder: Path) -> None:
    """Refuse an inventory in which values of the example are left."""
    left = list(placeholders(folder))
    if left:
        raise InventoryError(
            "these values are the example's; set yours, or take them out:\n" + "\n".join(left)
        )


def placeholders(folder: Path) -> Iterator[str]:
    """Find lines with addresses and names that exist for examples only: `FILE:LINE: TEXT`."""
    for path in sorted(folder.rglob("*.yml")):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            value = re.sub(r"(^|\s)#.*", "", line)
            if PLACEHOLDER.search(value):
                yield f"  {path}:{number}: {value.strip()}"
