"""Order and companions of the templates, from the ``templates.toml`` in their folder.

::

    [[groups]]
    title = "Start here"
    templates = ["pytorch/mnist.ipynb"]

    [companions]
    "distributed/resnet.ipynb" = { program = "distributed/train_resnet.py" }
    "sweeps/sweep.ipynb" = { objective = "sweeps/objective.py:objective" }

``groups`` is the order of the list. ``companions`` are the files that are copied with a notebook,
each under the parameter of the notebook that names it. Paths are below the folder.
"""

import logging
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

log = logging.getLogger(__name__)

NAME = "templates.toml"
_BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError)


class TemplatePosition(NamedTuple):
    """Position of a template in the list."""

    group: int
    entry: int
    title: str
    """Empty where no group names it."""


@dataclass(frozen=True)
class Groups:
    """The order of the list: titles, each with folders and files below the templates'."""

    listed: tuple[tuple[str, tuple[PurePosixPath, ...]], ...] = ()

    def position(self, template: PurePosixPath) -> TemplatePosition:
        """Find the first group that names a template or a folder of it."""
        for number, (title, entries) in enumerate(self.listed):
            for entry, path in enumerate(entries):
                if template.is_relative_to(path):
                    return TemplatePosition(number, entry, title)
        return TemplatePosition(len(self.listed), 0, "")


@dataclass(frozen=True)
class Companion:
    """A file that is copied with a notebook, for the user to change."""

    parameter: str
    """The notebook's, which names the file."""
    file: PurePosixPath
    function: str = ""
    """The one in the file that the parameter names, too."""

    def named(self, name: str) -> str:
        """Return the parameter's value for a copy of this name.

        >>> Companion("objective", PurePosixPath("a/b.py"), "f").named("b_1.py")
        'b_1.py:f'
        """
        return f"{name}:{self.function}" if self.function else name


def groups_in(folder: Path) -> Groups:
    """Read the folder's own order; one that is not there or broken orders nothing."""
    try:
        return Groups(
            tuple(
                (str(group["title"]), tuple(PurePosixPath(path) for path in group["templates"]))
                for group in _read(folder).get("groups", ())
            )
        )
    except _BROKEN as error:
        log.warning("The order of the templates cannot be read: %s: %s", folder / NAME, error)
        return Groups()


def companions_in(folder: Path, notebook: PurePosixPath) -> tuple[Companion, ...]:
    """Read what is copied with a notebook; nothing where that is not said, or broken."""
    try:
        parameters = _read(folder).get("companions", {}).get(str(notebook), {})
        return tuple(_companions(parameters))
    except _BROKEN as error:
        log.warning("What is copied with templates cannot be read: %s: %s", folder / NAME, error)
        return ()


def _companions(parameters: dict[str, str]) -> Iterator[Companion]:
    for parameter, value in parameters.items():
        file, _, function = value.partition(":")
        yield Companion(parameter, PurePosixPath(file), function)


def _read(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
