"""A session's deadline: what Slurm says of it, and its extension."""

import asyncio
from datetime import timedelta

from jupyterhub_gpu_slurm.deadline import ExtensionRules, Offer, extended_limit, offer
from jupyterhub_gpu_slurm.errors import ExtensionRefused
from jupyterhub_gpu_slurm.options_page import OptionsPage


class Lifetime(OptionsPage):
    """Lets a running session be extended, as far as the site's policy goes."""

    _extending: asyncio.Lock | None = None

    async def extension_offer(self, max_age: float | None = None) -> Offer:
        """Say by how much the session can be extended now.

        ``max_age`` is that of Slurm's word, in seconds. Raises `SlurmError` when the cluster's
        limits are not known.
        """
        job = await self._slurm.jobs.job(int(self.job_id), max_age=max_age)
        return offer(job, self.extensions, await self._limits(), self._extension_rules)

    async def extend(self, minutes: int) -> Offer:
        """Add minutes to the session's limit; return what can be added then.

        Raises `Refusal` where policy forbids it, `SlurmError` where it could not be done.
        """
        if self._extending is None:
            self._extending = asyncio.Lock()
        # One at a time: each is checked against what the one before left.
        async with self._extending:
            total = extended_limit(minutes, await self.extension_offer(max_age=0))
            session, job_id = self.session_id, int(self.job_id)
            # Counted before: an order that Slurm was slow to answer may have been carried out.
            self.extensions += 1
            self._save_state()
            try:
                await self._slurm.client.extend(
                    self.slurm_operator, self.user.name, session, job_id, total
                )
            except ExtensionRefused:
                self.extensions -= 1
                self._save_state()
                raise
            self.log.info("Job %s of %s now has %d minutes", job_id, self._log_name, total)
            return await self.extension_offer(max_age=0)

    @property
    def has_job(self) -> bool:
        """Whether there is a job whose deadline can be asked for."""
        return bool(self.session_id and self.job_id)

    @property
    def _extension_rules(self) -> ExtensionRules:
        return ExtensionRules(
            timedelta(hours=self.extension_hours),
            self.max_extensions if self.slurm_operator else 0,
        )
