"""The templates, as a user finds them: listed with title and purpose, copied into the home.

``GET /portal/templates`` lists the notebooks below the link with the templates.
``POST /portal/templates/copy`` with ``{"path": P, "folder": F}`` copies one file of them into F, or
into the home itself where F cannot be written, and answers with the copy's path. No file is
overwritten. Paths are those of Jupyter's contents: below the home, with ``/``.
"""

import json
import logging
import os
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async, url_path_join
from tornado import web

from dsportal.session.files.names import is_name

log = logging.getLogger(__name__)

ORDER = "templates.toml"
_A_COPY = 'The body must be {"path": PATH, "folder": PATH}, both texts, and nothing else.'
_MAX_ABOUT = 200


@dataclass(frozen=True)
class Template:
    """A notebook that may be copied."""

    path: str
    folder: str
    """Of the templates': a framework, as a rule."""
    title: str
    """Its first heading, or its name."""
    about: str
    """The first paragraph below that; empty where there is none."""
    kernel: str
    """The name of the kernel that is shown for it; empty where it names none."""
    group: str = ""
    """Under which it is listed, see `Groups`; what the catalogue gives always has one."""


class Catalogue:
    """The notebooks in a folder of the home. A file is read again only once it has changed."""

    def __init__(self, home: Path, link: str) -> None:
        """Take the home and the link's name; empty for no templates."""
        self._home, self.link = home, link
        self._read: dict[Path, tuple[tuple[int, int], Template]] = {}

    def templates(self) -> list[Template]:
        """Read the list, in the order of groups, folders and names."""
        if not self.link:
            return []
        folder = self._home / self.link
        groups = groups_in(folder)
        found = [self._template(file) for file in sorted(notebooks(folder))]
        placed = [
            (groups.place(PurePosixPath(one.path).relative_to(self.link)), one) for one in found
        ]
        placed.sort(key=lambda each: each[0])
        return [replace(one, group=place.title or one.folder) for place, one in placed]

    def has(self, path: str) -> bool:
        """Say whether a path of contents is that of a file among the templates.

        A link that leads out of them does not count.
        """
        folder, file = self._home / self.link, self._home / path
        return (
            bool(self.link)
            and file.resolve().is_relative_to(folder.resolve())
            and PurePosixPath(path).parts[:1] == (self.link,)
            and os.path.isfile(file)
        )

    def _template(self, file: Path) -> Template:
        status = file.stat()
        version = (status.st_mtime_ns, status.st_size)
        known = self._read.get(file)
        if known is None or known[0] != version:
            path = PurePosixPath(file.relative_to(self._home))
            known = self._read[file] = (version, described(path, file.read_bytes()))
        return known[1]


class Place(NamedTuple):
    """Where in the list a template is."""

    group: int
    entry: int
    title: str
    """Empty where no group names it."""


@dataclass(frozen=True)
class Groups:
    """The order of the list: titles, each with folders and files below the templates'."""

    listed: tuple[tuple[str, tuple[PurePosixPath, ...]], ...] = ()

    def place(self, template: PurePosixPath) -> Place:
        """Find the first group that names a template or a folder of it."""
        for number, (title, entries) in enumerate(self.listed):
            for entry, path in enumerate(entries):
                if template.is_relative_to(path):
                    return Place(number, entry, title)
        return Place(len(self.listed), 0, "")


def groups_in(folder: Path) -> Groups:
    """Read the folder's own order, `ORDER`; one that is not there or broken orders nothing."""
    try:
        told = tomllib.loads((folder / ORDER).read_text(encoding="utf-8"))
        return Groups(
            tuple(
                (str(group["title"]), tuple(PurePosixPath(path) for path in group["templates"]))
                for group in told["groups"]
            )
        )
    except FileNotFoundError:
        return Groups()
    except (OSError, ValueError, LookupError, TypeError) as error:
        log.warning("The order of the templates cannot be read: %s: %s", folder / ORDER, error)
        return Groups()


def notebooks(folder: Path) -> Iterator[Path]:
    """Find the notebooks below a folder that are not hidden; no link is followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.endswith(".ipynb") and not name.startswith("."):
                yield Path(place, name)


def described(path: PurePosixPath, content: bytes) -> Template:
    """Read what a notebook says of itself; one that is broken has its name and nothing else."""
    title, about, kernel = "", "", ""
    try:
        notebook = json.loads(content)
        text = "".join(notebook["cells"][0]["source"])
        title, about = heading_and_paragraph(text)
        kernel = str(notebook["metadata"]["kernelspec"]["display_name"])
    except (ValueError, LookupError, TypeError):
        pass
    return Template(
        path=str(path),
        folder=str(PurePosixPath(*path.parts[1:-1])) if len(path.parts) > 2 else "",
        title=title or path.stem,
        about=about,
        kernel=kernel,
    )


def heading_and_paragraph(markdown: str) -> tuple[str, str]:
    r"""Return a text's heading and the paragraph below it, without Markdown's marks.

    >>> heading_and_paragraph("# Digits\n\nTrains a *small*\nnetwork.\n\nMore.")
    ('Digits', 'Trains a small network.')
    """
    parts = [part.strip() for part in markdown.split("\n\n") if part.strip()]
    title = ""
    if parts and parts[0].startswith("#"):
        first, _, rest = parts.pop(0).partition("\n")
        title = first.lstrip("#").strip()
        parts[:0] = [rest] if rest.strip() else []
    about = " ".join(parts[0].split()) if parts else ""
    for mark in ("`", "*"):
        about = about.replace(mark, "")
    if len(about) > _MAX_ABOUT:
        about = about[: _MAX_ABOUT - 1].rsplit(" ", 1)[0] + "\u2026"
    return title, about


def name_of_copy(path: str) -> str:
    """Name a copy. Notebooks of several frameworks have one name: theirs begins with the folder's.

    >>> name_of_copy("templates/pytorch/mnist.ipynb"), name_of_copy("templates/slurm/sample.job")
    ('pytorch-mnist.ipynb', 'sample.job')
    >>> name_of_copy("templates/inference/inference.ipynb")
    'inference.ipynb'
    """
    file = PurePosixPath(path)
    is_named_so = len(file.parts) < 3 or file.stem.startswith(file.parent.name)
    if file.suffix != ".ipynb" or is_named_so:
        return file.name
    return f"{file.parent.name}-{file.name}"


def copy_from(body: bytes) -> tuple[str, str]:
    """Read what the page asks for: path and folder; raises `ValueError` with a sentence."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(_A_COPY) from error
    if not isinstance(message, dict) or set(message) != {"path", "folder"}:
        raise ValueError(_A_COPY)
    path, folder = message["path"], message["folder"]
    if not isinstance(path, str) or not isinstance(folder, str):
        raise ValueError(_A_COPY)
    if ".." in PurePosixPath(path).parts or not is_name(path) or not is_name(folder):
        raise ValueError(f"{path!r} is not a path below the home")
    return path.strip("/"), folder.strip("/")


class TemplatesHandler(APIHandler):
    """Lists the templates."""

    def initialize(self, catalogue: Catalogue) -> None:
        """Take the session's catalogue."""
        self.catalogue = catalogue

    @web.authenticated
    async def get(self) -> None:
        """Give the link's name and all templates."""
        contents: Any = self.contents_manager
        found = await contents.in_time(
            self.catalogue.templates, contents.place(self.catalogue.link)
        )
        listed = [asdict(template) for template in found]
        self.finish(json.dumps({"link": self.catalogue.link, "templates": listed}))


class CopyHandler(APIHandler):
    """Copies a template."""

    def initialize(self, catalogue: Catalogue) -> None:
        """Take the session's catalogue."""
        self.catalogue = catalogue

    @web.authenticated
    async def post(self) -> None:
        """Copy one, through Jupyter's contents, and give the copy's path."""
        try:
            path, folder = copy_from(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        contents: Any = self.contents_manager
        if not await contents.in_time(partial(self.catalogue.has, path), contents.place(path)):
            raise web.HTTPError(404, f"{path} is no file among the templates")
        if not await self._can_be_written(folder):
            folder = ""
        name = await ensure_async(contents.increment_filename(name_of_copy(path), folder, "-"))
        copy = await ensure_async(contents.copy(path, f"{folder}/{name}".strip("/")))
        self.set_status(201)
        self.finish(json.dumps({"path": copy["path"]}))

    async def _can_be_written(self, folder: str) -> bool:
        contents: Any = self.contents_manager
        if not await ensure_async(contents.dir_exists(folder)):
            return False
        model = await ensure_async(contents.get(folder, content=False))
        return bool(model["writable"])


def routes(base_url: str, catalogue: Catalogue) -> list[tuple[str, type[APIHandler], Any]]:
    """Give the server's routes."""
    given = {"catalogue": catalogue}
    return [
        (url_path_join(base_url, "portal/templates"), TemplatesHandler, given),
        (url_path_join(base_url, "portal/templates/copy"), CopyHandler, given),
    ]
