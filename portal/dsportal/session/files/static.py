"""Downloads and checkpoints of files behind the home's links, in folders that may be read-only.

Jupyter's own classes expect neither. What may be read and written is decided by the
user's own rights, as in a terminal.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from errno import EDQUOT, ENOSPC, EROFS
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_core.paths import is_hidden
from jupyter_server.base.handlers import AuthenticatedFileHandler
from jupyter_server.services.contents.filecheckpoints import FileCheckpoints
from tornado import web
from tornado.iostream import StreamClosedError

from dsportal.session.files.own_folder import checkpoint_folder, is_ones_own


class LinkedFileHandler(AuthenticatedFileHandler):
    """Downloads and pictures, also from where a link of the home leads.

    tornado (since 6.5.9) refuses what a link leads to outside the root, unless its
    argument ``allowed_symlink_directory`` says where to; jupyter_server (2.21) then
    takes the link's end for the name, and fails.
    """

    _pieces: Iterator[bytes] = iter(())

    @web.authenticated
    async def get(self, path: str, include_body: bool = True) -> None:  # type: ignore[override]
        """Send a file, as far as the mount that it is on answers."""
        contents: Any = self.contents_manager
        place = contents.place(path)
        await contents.look_at(place)
        sent: Any = super().get(path, include_body=include_body)
        await sent
        read = partial(next, self._pieces, b"")
        with suppress(StreamClosedError):
            while piece := await contents.in_time(read, place, repeat=False):
                self.write(piece)
                await self.flush()

    def get_content(  # type: ignore[override]
        self, abspath: str, start: int | None = None, end: int | None = None
    ) -> Iterable[bytes]:
        """Leave the reading to `get`: tornado would read in the thread that serves everybody."""
        self._pieces = iter(super().get_content(abspath, start, end))
        return ()

    def validate_absolute_path(self, root: str, absolute_path: str) -> str:
        """Refuse what is above the root or hidden, by its name below the root."""
        found = web.StaticFileHandler.validate_absolute_path(self, root, absolute_path)
        if found is None:
            raise web.HTTPError(404)
        if not self.contents_manager.allow_hidden and is_hidden(absolute_path, root):
            raise web.HTTPError(404)
        return found


class HomeCheckpoints(FileCheckpoints):
    """Saved states of notebooks: beside the file, or in the home for folders that others use, too.

    In one that others may write to, a link could stand where the saved state is to be: what they
    have written would be copied to where it leads. Jupyter's own way out of a read-only folder is
    one folder in ``/tmp`` for all users of the machine: the first to come owns it, and the next
    cannot even open a template.
    """

    def list_checkpoints(self, path: str) -> Any:
        """List them. Where no folder can be made for them, there are none, and that is no fault."""
        try:
            return super().list_checkpoints(path)  # type: ignore[no-untyped-call]
        except OSError as error:
            if error.errno not in (ENOSPC, EDQUOT, EROFS):
                raise
            return []

    def checkpoint_path(self, checkpoint_id: str, path: str) -> str:
        """Find the path of a checkpoint, and make its folder."""
        file = Path(self._get_os_path(path.strip("/")))  # type: ignore[no-untyped-call]
        if os.access(file.parent, os.W_OK) and is_ones_own(file.parent):
            return str(super().checkpoint_path(checkpoint_id, path))  # type: ignore[no-untyped-call]
        with self.perm_to_403():
            # First the one that keeps them: a mode is that of the last folder alone.
            folder = checkpoint_folder() / file.parent.relative_to(self.root_dir)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return str(folder / f"{file.stem}-{checkpoint_id}{file.suffix}")
