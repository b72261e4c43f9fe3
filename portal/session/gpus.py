"""How busy the job's own GPUs are, as ``nvidia-smi`` says, where there is one."""

import asyncio
import contextlib
import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

log = logging.getLogger(__name__)

_SECONDS = 10.0
_KILL_SECONDS = 1.0
# Numbers, or names such as GPU-5e4f..., MIG-5e4f...
_DEVICES = re.compile(r"[A-Za-z0-9-]+(,[A-Za-z0-9-]+)*", re.ASCII)


@dataclass(frozen=True)
class Gpus:
    """The job's GPUs."""

    program: str
    """Absolute path of nvidia-smi."""
    devices: str
    """As CUDA names them (``CUDA_VISIBLE_DEVICES``): in a job that sees only its own devices, from
    0 on, and nvidia-smi counts in the same way."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Gpus | None":
        """Find them; ``None`` where the job has none, or the node has no nvidia-smi."""
        devices = environment.get("CUDA_VISIBLE_DEVICES", "")
        program = shutil.which("nvidia-smi", path=environment.get("PATH", ""))
        return cls(program, devices) if program and _DEVICES.fullmatch(devices) else None

    async def percents(self, seconds: float = _SECONDS) -> list[int | None]:
        """Return how busy each was in the last second or so; nothing when there is no answer."""
        argv = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", self.devices]
        try:
            process = await asyncio.create_subprocess_exec(
                self.program,
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            log.info("nvidia-smi cannot be run: %s", error)
            return []
        try:
            async with asyncio.timeout(seconds):
                out, _ = await process.communicate()
        except TimeoutError:
            log.info("nvidia-smi did not answer in %g s", seconds)
            return []
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, TimeoutError):
                    process.kill()
                    # A driver that hangs may keep it for ever.
                    await asyncio.wait_for(process.wait(), _KILL_SECONDS)
        return percents(out.decode(errors="replace")) if process.returncode == 0 else []


def percents(text: str) -> list[int | None]:
    """Read a line for each GPU: a number, or ``[N/A]`` (with MIG)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [int(line) if line.isdecimal() else None for line in lines]
