"""Extends the time limit of a running session."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import ExtensionRefused, OverLimit, SlurmError
from jupyterhub_gpu_slurm.options.policy import Limits
from jupyterhub_gpu_slurm.session.deadline import (
    ExtensionRules,
    PossibleExtension,
    extended_limit,
    possible_extension,
)
from jupyterhub_gpu_slurm.session.record import SessionRecord


class TimeExtension:
    """Lets a running session be extended, as far as the site's policy goes."""

    def __init__(
        self,
        slurm: SlurmConnection,
        username: str,
        record: SessionRecord,
        job_id: Callable[[], int],
        limits: Callable[[], Awaitable[Limits]],
        rules: ExtensionRules,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._slurm = slurm
        self._username = username
        self._record = record
        self._job_id = job_id
        self._limits = limits
        self._rules = rules
        self._log = log
        self._extending = asyncio.Lock()

    async def possible_extension(self, max_age: float | None = None) -> PossibleExtension:
        """Say by how much the session can be extended now.

        ``max_age`` is that of Slurm's word, in seconds. Raises `SlurmError` when the cluster's
        limits are not known, `OverLimit` where the session has ended meanwhile.
        """
        job = await self._slurm.jobs.job(self._job(), max_age=max_age)
        return possible_extension(
            job, self._record.state.extensions, await self._limits(), self._rules
        )

    async def extend(self, minutes: int) -> PossibleExtension:
        """Add minutes to the session's limit; return what can be added then.

        Raises `Refusal` where policy forbids it, `SlurmError` where it could not be done.
        """
        # One at a time: each is checked against what the one before left.
        async with self._extending:
            job_id = self._job()
            try:
                await self._add(minutes)
            except SlurmError as error:
                self._log.warning("Job %s is not extended: %s", job_id, error.detail)
                raise
            return await self.possible_extension(max_age=0)

    async def _add(self, minutes: int) -> None:
        total = extended_limit(minutes, await self.possible_extension(max_age=0))
        job_id, state = self._job(), self._record.state
        # Counted before: an order that Slurm was slow to answer may have been carried out.
        self._record.save(extensions=state.extensions + 1)
        try:
            await self._slurm.client.extend(self._username, state.id, job_id, total)
        except ExtensionRefused:
            # What is written may be the next session's, where this one has ended meanwhile.
            if self._record.state.id == state.id:
                self._record.save(extensions=state.extensions)
            raise
        self._log.info("Job %s of %s now has %d minutes", job_id, self._username, total)

    def _job(self) -> int:
        """Return the job's number. Raises `OverLimit` where the session has ended meanwhile."""
        if not self._record.state.id:
            raise OverLimit("The session has ended.")
        return self._job_id()
