"""Environment modules: the environment of a kernel or a program once some are loaded.

Lmod and Environment Modules change the environment of a shell, so a shell loads them and says what
it has then.
"""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_BASH = "/bin/bash"
_LOADER = Path(__file__).with_name("load_modules.sh")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class ModulesError(Exception):
    """Modules could not be loaded; the message is the module system's own, for the user."""


class ModulesSilentError(ModulesError):
    """The module system did not answer in time."""


@dataclass(frozen=True)
class ModuleSystem:
    """The site's environment modules."""

    init: str
    """The file that defines ``module`` in bash."""
    seconds: float = 60.0
    """How long a load may take: modulefiles often lie on a network's file system."""

    async def loaded(
        self, modules: Sequence[str], environment: Mapping[str, str]
    ) -> dict[str, str]:
        """Return an environment in which these modules are loaded, in their order.

        Raises `ModulesError` with what the module system said.
        """
        argv = [_BASH, "--noprofile", "--norc", str(_LOADER), self.init, *modules]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # bash would read it before the loader, which reads it itself.
            env={name: text for name, text in environment.items() if name != "BASH_ENV"},
            start_new_session=True,
        )
        names = ", ".join(modules)
        try:
            async with asyncio.timeout(self.seconds):
                out, said = await process.communicate()
        except TimeoutError as error:
            raise ModulesSilentError(
                f"Loading {names} took more than {self.seconds:g} seconds. The file system with "
                "the modules may not answer; try again, or tell the administrators."
            ) from error
        finally:
            await _end(process)
        if process.returncode != 0:
            words = _COLOURS.sub("", said.decode(errors="replace")).strip()
            raise ModulesError(f"Loading {names} failed. The module system says:\n{words}")
        kept = {name: environment[name] for name in ("BASH_ENV",) if name in environment}
        return parsed(out) | kept


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def parsed(output: bytes) -> dict[str, str]:
    """Read what ``env --null`` printed; bash's own bookkeeping is left out."""
    pairs = (part.partition(b"=") for part in output.split(b"\0") if part)
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return {name: value for name, value in found.items() if name not in ("_", "SHLVL")}
