"""Templates become the user's own files: a notebook, and the program behind it.

``POST /portal/templates/copy`` with ``{"path": P, "folder": F}`` copies one file of the templates
into F, or into the home itself where F cannot be written. With a notebook, its companions (see
`templates_file`) are copied into the same folder, and the notebook's parameters name these copies:
it runs them, as the user changes them. The answer is ``{"path": P, "companions": [P, ...]}``.
No file is overwritten. Paths are those of Jupyter's contents: below the home, with ``/``.
"""

import json
import logging
import re
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async, url_path_join
from tornado import web

from dsportal.session.files.names import is_name
from dsportal.session.page.templates import Catalogue

log = logging.getLogger(__name__)

_A_COPY = 'The body must be {"path": PATH, "folder": PATH}, both texts, and nothing else.'


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


def set_parameter(notebook: dict[str, Any], name: str, text: str) -> bool:
    """Set a text among a notebook's parameters; say whether there is one of this name."""
    assigned = re.compile(rf'^({re.escape(name)} = )"[^"\n]*"', re.MULTILINE)
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            cell["source"], count = assigned.subn(
                lambda found: found[1] + json.dumps(text), cell["source"], count=1
            )
            if count:
                return True
    return False


class CopyHandler(APIHandler):
    """POST handler that copies a template."""

    def initialize(self, catalogue: Catalogue) -> None:
        """Take the session's catalogue."""
        self.catalogue = catalogue

    @web.authenticated
    async def post(self) -> None:
        """Copy one, through Jupyter's contents, and give the paths of the copies."""
        try:
            path, folder = copy_from(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        contents: Any = self.contents_manager
        place = contents.place(path)
        if not await contents.in_time(partial(self.catalogue.has, path), place):
            raise web.HTTPError(404, f"{path} is not a file in the templates' folder")
        if not await self._can_be_written(folder):
            folder = ""
        model = await ensure_async(contents.get(path))
        is_notebook = model["type"] == "notebook"
        companions = await self._companions(path, model["content"], folder) if is_notebook else []
        name = await self._free_name(name_of_copy(path), folder)
        written = {key: model[key] for key in ("type", "format", "content")}
        copy = await ensure_async(contents.save(written, f"{folder}/{name}".strip("/")))
        self.set_status(201)
        self.finish(json.dumps({"path": copy["path"], "companions": companions}))

    async def _companions(self, path: str, notebook: dict[str, Any], folder: str) -> list[str]:
        """Copy what belongs to a notebook, and let the notebook name the copies."""
        contents: Any = self.contents_manager
        found = await contents.in_time(
            partial(self.catalogue.companions, path), contents.place(path)
        )
        copies = []
        for one in found:
            name = await self._free_name(one.file.name, folder)
            if not set_parameter(notebook, one.parameter, one.named(name)):
                log.warning(
                    "%s is not copied with %s: it has no parameter %s",
                    *(one.file, path, one.parameter),
                )
                continue
            to = f"{folder}/{name}".strip("/")
            copy = await ensure_async(contents.copy(self.catalogue.path_of(one), to))
            copies.append(copy["path"])
        return copies

    async def _free_name(self, name: str, folder: str) -> str:
        """Return the name, with a number where it is taken; a program can still be imported."""
        contents: Any = self.contents_manager
        separator = "_" if name.endswith(".py") else "-"
        return str(await ensure_async(contents.increment_filename(name, folder, separator)))

    async def _can_be_written(self, folder: str) -> bool:
        contents: Any = self.contents_manager
        if not await ensure_async(contents.dir_exists(folder)):
            return False
        model = await ensure_async(contents.get(folder, content=False))
        return bool(model["writable"])


def routes(base_url: str, catalogue: Catalogue) -> list[tuple[str, type[APIHandler], Any]]:
    """Give the server's routes."""
    copied = url_path_join(base_url, "portal/templates/copy")
    return [(copied, CopyHandler, {"catalogue": catalogue})]
