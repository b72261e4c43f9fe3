"""The kernels of the user's environments: looked for in a thread, as files may be slow."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dsportal.session.files.mounts import Mounts, NoAnswer
from dsportal.session.kernels import module_kernels
from dsportal.session.own_environments.base import modules_init
from dsportal.session.own_environments.folders import EnvironmentFolders
from dsportal.session.own_environments.records import EnvironmentFolder, OwnEnvironment
from dsportal.session.own_environments.sizes import size_of
from dsportal.session.periodic import repeat
from dsportal.session.threads import in_thread
from dsportal.session_schema import Kernel

log = logging.getLogger(__name__)

PREFIX = "env-"
"""Before an environment's name, so that no other kernel has its kernel's."""
_SECONDS = 10.0
_KEPT_SECONDS = 60.0
"""How long a size that nobody waited for is kept; later, packages may have come or gone."""


def spec(environment: OwnEnvironment, variables: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the spec of one's kernel; ``None`` for one that cannot be used."""
    if environment.trouble or environment.record is None:
        return None
    title, prefix = environment.record.title, environment.record.prefix(environment.path)
    python = str(prefix / "bin/python")
    init = modules_init(variables)
    if init is not None:
        # Its module loads what is below it and puts it first: `!pip` is its own.
        return module_kernels.spec(Kernel(title, python, "python", (environment.name,)), init)
    path = f"{prefix}/bin:{variables.get('PATH', '')}"
    set_besides = {"PATH": path, environment.record.variable: str(prefix)}
    return module_kernels.spec(Kernel(title, python, "python", (), set_besides), None)


@dataclass
class OwnKernels:
    """Knows the user's environments, as they were when it looked last."""

    folders: EnvironmentFolders | None
    mounts: Mounts
    environment: Mapping[str, str]
    _specs: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _sizes: dict[Path, asyncio.Future[int]] = field(default_factory=dict)

    def specs(self) -> dict[str, dict[str, Any]]:
        """Return the specs of their kernels."""
        found: dict[str, dict[str, Any]] = {}
        for folder in self.folders or ():
            found = self._specs.get(folder.name, {}) | found
        return found

    async def look(self) -> tuple[OwnEnvironment, ...]:
        """Look which there are; those of a folder that does not answer remain kernels only."""
        found: list[OwnEnvironment] = []
        for folder in self.folders or ():
            try:
                look = partial(self._look, folder)
                found += await self.mounts.in_time(look, str(folder.path))
            except (NoAnswer, OSError) as error:
                log.info("The environments in %s are not known: %s", folder.name, error)
        return tuple(found)

    async def size(self, one: OwnEnvironment, seconds: float) -> int | None:
        """Return how large one is; ``None`` where that takes longer.

        A page asks each second: a folder is gone through once at a time, for whoever asks.
        """
        asked = self._sizes.get(one.path)
        if asked is None:
            asked = self._sizes[one.path] = in_thread(partial(size_of, one.path))
            loop, forget = asyncio.get_running_loop(), partial(self._forget, one.path)
            asked.add_done_callback(lambda done: loop.call_later(_KEPT_SECONDS, forget, done))
        await asyncio.wait({asked}, timeout=seconds)
        if not asked.done():
            return None
        self._forget(one.path, asked)
        return None if asked.exception() else asked.result()

    async def watch(self) -> None:
        """Look again and again: terminals and other sessions make some, too."""
        await repeat(self.look, lambda: _SECONDS, log, "The environments could not be looked at")

    def _forget(self, path: Path, asked: asyncio.Future[int]) -> None:
        if self._sizes.get(path) is asked:
            del self._sizes[path]

    def _look(self, folder: EnvironmentFolder) -> list[OwnEnvironment]:
        found, specs, before = [], {}, self._specs.get(folder.name, {})
        for one in folder.all():
            name = f"{PREFIX}{one.name}"
            # What is below it may be on another mount than the folder.
            silent = self.mounts.trouble_on(one.record.base) if one.record else None
            looked_at = replace(one, seen=f"{silent.words()}." if silent else one.trouble)
            specs[name] = before.get(name) if silent else spec(looked_at, self.environment)
            found.append(looked_at)
        self._specs[folder.name] = {name: one for name, one in specs.items() if one is not None}
        return found
