"""Where Jupyter keeps the saved states of notebooks."""

import os
from pathlib import Path

from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints


class HomeCheckpoints(AsyncFileCheckpoints):
    """Beside the file as usual; for folders that are not writable, in the home.

    Jupyter's own way out of an unwritable folder is one folder in ``/tmp`` for all
    users of the machine: the first to come owns it, and the next cannot even open a
    template.
    """

    def checkpoint_path(self, checkpoint_id: str, path: str) -> str:
        """Find the path of a checkpoint, and make its folder."""
        file = Path(self._get_os_path(path.strip("/")))  # type: ignore[no-untyped-call]
        if os.access(file.parent, os.W_OK):
            return str(super().checkpoint_path(checkpoint_id, path))  # type: ignore[no-untyped-call]
        kept = Path.home() / ".local/share/data-scientist-portal/checkpoints"
        folder = kept / file.parent.relative_to(self.root_dir)
        with self.perm_to_403():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return str(folder / f"{file.stem}-{checkpoint_id}{file.suffix}")
