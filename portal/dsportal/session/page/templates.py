"""The templates, as a user finds them: listed with title and purpose.

``GET /portal/templates`` lists the notebooks below the link with the templates. Paths are those of
Jupyter's contents: below the home, with ``/``.
"""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.page.templates_file import Companion, companions_in, groups_in

log = logging.getLogger(__name__)

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
    """Under which it is listed, see `templates_file`; what the catalogue gives always has one."""


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
        found = map(self._template, sorted(notebooks(folder)))
        positioned = [
            (groups.position(PurePosixPath(one.path).relative_to(self.link)), one)
            for one in found
            if one is not None
        ]
        positioned.sort(key=lambda each: each[0])
        return [replace(one, group=position.title or one.folder) for position, one in positioned]

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

    def companions(self, path: str) -> list[Companion]:
        """Read what is copied with a template; what is no file among them is told and left out."""
        notebook = PurePosixPath(path).relative_to(self.link)
        present = []
        for one in companions_in(self._home / self.link, notebook):
            if self.has(self.path_of(one)):
                present.append(one)
            else:
                log.warning("%s is not copied with %s: there is no such file", one.file, notebook)
        return present

    def path_of(self, companion: Companion) -> str:
        """Return where it is among the templates."""
        return f"{self.link}/{companion.file}"

    def _template(self, file: Path) -> Template | None:
        try:
            status = file.stat()
            version = (status.st_mtime_ns, status.st_size)
            known = self._read.get(file)
            if known is None or known[0] != version:
                path = PurePosixPath(file.relative_to(self._home))
                known = self._read[file] = (version, described(path, file.read_bytes()))
        except OSError as error:
            log.warning("A template is left out: %s", error)
            return None
        return known[1]


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
    except (ValueError, LookupError, TypeError, RecursionError):
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


class TemplatesHandler(APIHandler):
    """GET handler of the list of templates."""

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


def routes(base_url: str, catalogue: Catalogue) -> list[tuple[str, type[APIHandler], Any]]:
    """Give the server's routes."""
    listed = url_path_join(base_url, "portal/templates")
    return [(listed, TemplatesHandler, {"catalogue": catalogue})]
