"""The kernels of the user's environments: looked for in a thread, as files may be slow."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsportal.session.files.mounts import Mounts, NoAnswer
from dsportal.session.kernels import module_kernels
from dsportal.session.own_environments.base import modules_init
from dsportal.session.own_environments.records import EnvironmentFolder, OwnEnvironment
from dsportal.session_schema import Kernel

log = logging.getLogger(__name__)

PREFIX = "env-"
"""Before an environment's name, so that no other kernel has its kernel's."""
_SECONDS = 10.0


def spec(environment: OwnEnvironment, variables: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the spec of one's kernel; ``None`` for one that cannot be used."""
    if environment.trouble or environment.record is None:
        return None
    title, place = environment.record.title, environment.path
    python = str(place / "bin/python")
    init = modules_init(variables)
    if init is not None:
        # Its module loads what is below it and puts it first: `!pip` is its own.
        return module_kernels.spec(Kernel(title, python, "python", (environment.name,)), init)
    path = f"{place}/bin:{variables.get('PATH', '')}"
    set_besides = {"PATH": path, "VIRTUAL_ENV": str(place)}
    return module_kernels.spec(Kernel(title, python, "python", (), set_besides), None)


@dataclass
class OwnKernels:
    """Knows the user's environments, as they were when it looked last."""

    folder: EnvironmentFolder | None
    mounts: Mounts
    environment: Mapping[str, str]
    found: tuple[OwnEnvironment, ...] = ()
    _specs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def specs(self) -> dict[str, dict[str, Any]]:
        """Return the specs of their kernels."""
        return self._specs

    async def look(self) -> tuple[OwnEnvironment, ...]:
        """Look which there are; raises `NoAnswer` where the file server does not say."""
        if self.folder is not None:
            self.found = tuple(await self.mounts.in_time(self._look, str(self.folder.path)))
        return self.found

    async def watch(self) -> None:
        """Look again and again: terminals and other sessions make some, too."""
        while True:
            try:
                await self.look()
            except (NoAnswer, OSError) as error:
                log.info("The kernels of own environments are not known: %s", error)
            await asyncio.sleep(_SECONDS)

    def _look(self) -> list[OwnEnvironment]:
        found = self.folder.all() if self.folder is not None else []
        named = {f"{PREFIX}{one.name}": spec(one, self.environment) for one in found}
        self._specs = {name: given for name, given in named.items() if given is not None}
        return found
