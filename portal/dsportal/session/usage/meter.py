"""Readings of the job's resource use, shared by the idle reports and the history.

Processor time and storage are the sums of the job's processes, memory is its cgroup's, the GPUs are
those that are its own: nothing of another job on the node is in the figures.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dsportal.session.usage import processes
from dsportal.session.usage.gpus import GpuReader, GpuReading, devices_of
from dsportal.session.usage.last_use import Process, ProcessKey
from dsportal.session.usage.memory import JobMemory
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer


@dataclass(frozen=True)
class Reading:
    """The job at one moment."""

    at: float
    """Seconds since 1970."""
    processes: Mapping[ProcessKey, Process]
    memory_bytes: int | None
    gpus: GpuReading


@dataclass(frozen=True)
class Held:
    """Resources allocated to the job by Slurm. ``None``: not known, or no limit."""

    cores: int | None
    memory_bytes: int | None


class Meter:
    """Reads what the job uses."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._job_id = environment.get("PORTAL_JOB_ID", "")
        self._memory = JobMemory.of_this_process()
        self._gpus = GpuReader(devices_of(environment))
        self._now = now
        self._reading = SharedAnswer(self._read, 0.0, now=now)
        cores = environment.get("PORTAL_JOB_CORES", "")
        limit_gib = self._memory.limit_gib()
        self.held = Held(
            cores=int(cores) if cores.isdecimal() else None,
            memory_bytes=None if limit_gib is None else round(limit_gib * 2**30),
        )

    async def read(self, seconds_old: float = 0.0) -> Reading:
        """Read it, unless there is a reading that is no older than this."""
        return await self._reading.get(max_age=seconds_old)

    async def _read(self) -> Reading:
        gpus = await self._gpus.read()
        found = await asyncio.to_thread(processes.of_job, self._job_id, os.getpid())
        held = self._memory.used_bytes()
        if held is None:
            # Memory that several share counts for each of them.
            held = sum(process.resident_bytes for process in found.values())
        return Reading(self._now(), found, held, gpus)
