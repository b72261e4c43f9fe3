"""Readings of the job's own GPUs, from NVIDIA's library on the node (NVML).

A driver that hangs keeps whoever asks it, for ever. So a thread asks; the server waits for it for a
while, and asks nothing more until the thread is back.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from dsportal.session.threads import in_thread

log = logging.getLogger(__name__)

T = TypeVar("T")

_SECONDS = 5.0
# Numbers, or names such as GPU-5e4f..., MIG-5e4f...
_DEVICES = re.compile(r"\d+(,\d+)*|(GPU|MIG)-[A-Za-z0-9-]+(,(GPU|MIG)-[A-Za-z0-9-]+)*", re.ASCII)


class GpuState(StrEnum):
    """Availability of readings from the job's GPUs."""

    NONE = "none"
    """The job has none."""
    NO_DRIVER = "no_driver"
    """The node has no NVIDIA driver."""
    NO_ANSWER = "no_answer"
    """It has one, which does not answer now."""
    KNOWN = "known"


@dataclass(frozen=True)
class GpuFigures:
    """A GPU at one moment. ``None``: it does not tell, as a slice (MIG) does not of its use."""

    name: str | None = None
    percent: int | None = None
    """Of the last second or so, in how much it computed."""
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None
    celsius: int | None = None
    watts: int | None = None


@dataclass(frozen=True)
class GpuReading:
    """The job's GPUs at one moment, in the order in which programs of the job number them."""

    state: GpuState
    gpus: tuple[GpuFigures, ...] = ()


def devices_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the job's GPUs as CUDA names them (``CUDA_VISIBLE_DEVICES``).

    In a job that sees only its own devices they are counted from 0 on, and NVML counts likewise.
    """
    devices = environment.get("CUDA_VISIBLE_DEVICES", "")
    return tuple(devices.split(",")) if _DEVICES.fullmatch(devices) else ()


class GpuReader:
    """Reads the GPUs again and again."""

    def __init__(self, devices: tuple[str, ...], seconds: float = _SECONDS) -> None:
        self._nvml = Nvml(devices)
        self._seconds = seconds
        self._asked: asyncio.Future[GpuReading] | None = None
        self._is_silent = False

    async def read(self) -> GpuReading:
        """Ask for all of them; wait for the answer only for a while."""
        if not self._nvml.devices:
            return GpuReading(GpuState.NONE)
        if self._asked is None or (self._asked.done() and not self._is_silent):
            self._asked = in_thread(self._nvml.read)
        # Of one that was silent before, only an answer that is there already is taken.
        await asyncio.wait([self._asked], timeout=0 if self._is_silent else self._seconds)
        was_silent, self._is_silent = self._is_silent, not self._asked.done()
        if self._is_silent and not was_silent:
            log.warning("The NVIDIA driver does not answer within %g s", self._seconds)
        return GpuReading(GpuState.NO_ANSWER) if self._is_silent else self._asked.result()


class Nvml:
    """Asks NVIDIA's library. Each call may hang."""

    def __init__(self, devices: tuple[str, ...]) -> None:
        self.devices = devices
        self._handles: list[Any] = []
        self._is_quiet = False

    def read(self) -> GpuReading:
        """Read all GPUs."""
        # Imported in the thread, and only in a session with GPUs.
        import pynvml

        try:
            if not self._handles:
                pynvml.nvmlInit()
                self._handles = _handles(pynvml, self.devices)
        except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded) as error:
            self._tell("There is no NVIDIA driver: %s", error)
            return GpuReading(GpuState.NO_DRIVER)
        except pynvml.NVMLError as error:
            self._tell("The NVIDIA driver tells nothing of this job's GPUs: %s", error)
            return GpuReading(GpuState.NO_ANSWER)
        return GpuReading(GpuState.KNOWN, tuple(_gpu(pynvml, one) for one in self._handles))

    def _tell(self, words: str, error: Exception) -> None:
        if not self._is_quiet:
            log.info(words, error)
        self._is_quiet = True


def _handles(nvml: Any, devices: Sequence[str]) -> list[Any]:
    if not all(device.isdecimal() for device in devices):
        return [nvml.nvmlDeviceGetHandleByUUID(device) for device in devices]
    there = dict(enumerate(_numbered(nvml)))
    mine = [there.get(int(device)) for device in devices]
    if None in mine:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_FOUND)
    return mine


def _numbered(nvml: Any) -> list[Any]:
    """Return what a Slurm without NVML numbers: cards, or a card's slices in its place."""
    found: list[Any] = []
    for number in range(nvml.nvmlDeviceGetCount()):
        try:
            card = nvml.nvmlDeviceGetHandleByIndex(number)
        except nvml.NVMLError_NoPermission:
            continue  # another job's: counted, and not numbered (NVML, nvmlDeviceGetCount_v2)
        except nvml.NVMLError:
            found.append(None)  # broken, and perhaps another job's: it keeps its number
            continue
        slices = []
        with suppress(nvml.NVMLError):  # the card, or the driver, knows no slices
            for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(card)):
                with suppress(nvml.NVMLError):  # there is none, or it is not the job's
                    slices.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, place))
        found += slices or [card]
    return found


def _gpu(nvml: Any, handle: Any) -> GpuFigures:
    def ask(function: Callable[..., T], *more: Any) -> T | None:
        try:
            return function(handle, *more)
        except nvml.NVMLError:  # this GPU does not tell this
            return None

    use = ask(nvml.nvmlDeviceGetUtilizationRates)
    memory = ask(nvml.nvmlDeviceGetMemoryInfo)
    milliwatts = ask(nvml.nvmlDeviceGetPowerUsage)
    return GpuFigures(
        name=ask(nvml.nvmlDeviceGetName),
        percent=use.gpu if use else None,
        memory_bytes=memory.used if memory else None,
        memory_total_bytes=memory.total if memory else None,
        celsius=ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        watts=None if milliwatts is None else round(milliwatts / 1000),
    )
