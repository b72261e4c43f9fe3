"""The environments that machines without a way to the internet are lent, of their own Python's."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bootstrap

from tests.debian import building, roots
from tests.debian.machines import Enclosure
from tests.instance import ROOT, SYSTEM_AUTHORITIES

FOLDER = Path("/opt/data-scientist-portal/environments")
"""Where a deployment has the portal's."""
TOOLS = bootstrap.CACHE / "environments"
"""Where it has its own, such as Ansible's."""
# What has been fetched here, so that it is not again.
_CACHES = (bootstrap.CACHE / "uv", bootstrap.CACHE / "npm")
_DAY = 86_400


@dataclass(frozen=True)
class Environments:
    """What machines of one Debian are lent."""

    folder: Path
    """The portal's."""
    tools: Path
    """The deployment's own."""
    _base: Path | None
    """A root of that Debian, unless it is this machine's."""

    def make(self, names: Sequence[str]) -> None:
        """Make what is missing, and what builds our wheels and documentation."""
        venv = str(ROOT / "deploy/venv")
        building.call(self._argv([venv, "lab", "docs"], ROOT, self.folder), seconds=600)
        making = [venv, f"--root={FOLDER}", *names]
        building.call(self._argv(making, ROOT, self.folder), seconds=1500)

    def make_in(self, enclosure: Enclosure, sources: Path, folder: Path, *names: str) -> None:
        """Make some in a folder of an enclosure, from a clone there; nothing is fetched."""
        root = FOLDER if self._base else folder
        making = [str(sources / "deploy/venv"), f"--root={root}", *names]
        offline = {"UV_OFFLINE": "1"}
        enclosure.run(*self._argv(making, sources, folder, **offline), seconds=600, **offline)

    def _argv(
        self, argv: Sequence[str], sources: Path, folder: Path, **variables: str
    ) -> list[str]:
        """Say how to run a program with that Debian's Python; a folder is `FOLDER` there."""
        if self._base is None:
            return list(argv)
        bound = [f"{folder}:{FOLDER}", f"{self.tools}:{TOOLS}", *map(str, _CACHES)]
        lent = [sources, SYSTEM_AUTHORITIES, *building.wheel_folders()]
        # On another file system, as it seems, than uv's cache.
        told = {**building.lent(), "UV_LINK_MODE": "copy", **variables}
        return building.within(self._base, argv, bound=bound, lent=lent, variables=told)


def made(suite: str, base: Path, names: Sequence[str]) -> Environments:
    """Return those of a Debian, made where they are missing; ``base`` is a root of it."""
    if suite == roots.SUITE:
        environments = Environments(FOLDER, TOOLS, None)
    else:
        own = bootstrap.CACHE / f"{suite}-environments"
        environments = Environments(own / "portal", own / "tools", base)
        _forget_old(environments.folder)
    for folder in (environments.folder, environments.tools, *_CACHES):
        folder.mkdir(parents=True, exist_ok=True)
    environments.make(names)
    return environments


def _forget_old(folder: Path) -> None:
    """Remove those that nothing has asked for since yesterday: each commit has its own."""
    for environment in folder.glob("[!.]*"):
        if environment.stat().st_mtime < time.time() - _DAY:
            shutil.rmtree(environment)
