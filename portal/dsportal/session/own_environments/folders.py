"""Folders for a user's environments: the site's, by name; the first is the default.

The first also has the modulefiles and the locks of all. So a name is one environment's wherever it
lies, and a file server that does not answer holds up no other module.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsportal.session.own_environments import words
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    OwnEnvironment,
    OwnEnvironmentError,
)

FOLDERS_VARIABLE = "PORTAL_ENVIRONMENTS"
"""In a session, and in what is started from it: `EnvironmentFolders.variable`; empty for none."""


@dataclass(frozen=True)
class EnvironmentFolders:
    """The folders of a user's environments; there is at least one."""

    folders: tuple[EnvironmentFolder, ...]

    def __iter__(self) -> Iterator[EnvironmentFolder]:
        """Go through them; the first is usual."""
        return iter(self.folders)

    @property
    def first(self) -> EnvironmentFolder:
        """Return that which has the modulefiles, and an environment unless another is named."""
        return self.folders[0]

    @property
    def variable(self) -> str:
        """Write them as a variable: ``NAME=PATH:NAME=PATH``."""
        return ":".join(f"{folder.name}={folder.path}" for folder in self)

    def named(self, name: str) -> EnvironmentFolder:
        """Return one by its name, the first without any; raises `OwnEnvironmentError`."""
        for folder in self:
            if name in ("", folder.name):
                return folder
        names = ", ".join(folder.name for folder in self)
        raise OwnEnvironmentError(words.NO_SUCH_FOLDER.format(name=name, names=names))

    def environments(self) -> list[OwnEnvironment]:
        """Find all environments, finished or not."""
        return [one for folder in self for one in folder.all()]

    def find(self, name: str) -> OwnEnvironment:
        """Find an environment, wherever it lies; raises `OwnEnvironmentError`."""
        for one in self.environments():
            if one.name == name:
                return one
        raise OwnEnvironmentError(words.UNKNOWN.format(name=name))


def folders_told(variable: str) -> EnvironmentFolders | None:
    """Read the variable; ``None`` where a user can have no environments.

    >>> folders_told("home=/home/ann/environments:isilon=/mnt/isilon/ann").named("isilon").path
    PosixPath('/mnt/isilon/ann')
    """
    pairs = [part.partition("=") for part in variable.split(":") if part]
    folders = tuple(EnvironmentFolder(Path(path), name) for name, _, path in pairs)
    return EnvironmentFolders(folders) if folders else None
