"""A running session's time: what Slurm says of it, and more of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.errors import ExtensionRefused
from jupyterhub_gpu_slurm.options.policy import Limits
from jupyterhub_gpu_slurm.session.deadline import (
    ExtensionRules,
    PossibleExtension,
    extended_limit,
    offer,
)
from jupyterhub_gpu_slurm.session.state import SessionState


class Extended(Protocol):
    """The session whose time it is."""

    @property
    def session(self) -> SessionState:
        """What is kept of it."""

    @property
    def job_id(self) -> str:
        """Its job's number."""

    def count_extensions(self, number: int) -> None:
        """Remember how often it has been extended, so that it outlives the hub."""


class TimeExtension:
    """Lets a running session be extended, as far as the site's policy goes."""

    def __init__(
        self,
        slurm: SlurmConnection,
        username: str,
        extended: Extended,
        limits: Callable[[], Awaitable[Limits]],
        rules: ExtensionRules,
        operator: str,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._slurm = slurm
        self._username = username
        self._extended = extended
        self._limits = limits
        self._rules = rules
        self._operator = operator
        self._log = log
        self._extending = asyncio.Lock()

    async def offer(self, max_age: float | None = None) -> PossibleExtension:
        """Say by how much the session can be extended now.

        ``max_age`` is that of Slurm's word, in seconds. Raises `SlurmError` when the cluster's
        limits are not known.
        """
        job = await self._slurm.jobs.job(int(self._extended.job_id), max_age=max_age)
        return offer(job, self._extended.session.extensions, await self._limits(), self._rules)

    async def extend(self, minutes: int) -> PossibleExtension:
        """Add minutes to the session's limit; return what can be added then.

        Raises `Refusal` where policy forbids it, `SlurmError` where it could not be done.
        """
        # One at a time: each is checked against what the one before left.
        async with self._extending:
            total = extended_limit(minutes, await self.offer(max_age=0))
            session_id, job_id = self._extended.session.id, int(self._extended.job_id)
            before = self._extended.session.extensions
            # Counted before: an order that Slurm was slow to answer may have been carried out.
            self._extended.count_extensions(before + 1)
            try:
                await self._slurm.client.extend(
                    self._operator, self._username, session_id, job_id, total
                )
            except ExtensionRefused:
                self._extended.count_extensions(before)
                raise
            self._log.info("Job %s of %s now has %d minutes", job_id, self._username, total)
            return await self.offer(max_age=0)
