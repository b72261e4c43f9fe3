"""Sources of GPU hours: the hub's record of sessions, and Slurm's accounting where it is on.

The record knows the portal's sessions and the groups that their users were in. The accounting
knows all jobs, sessions among them, and no groups: those that the user is in now are taken. Where
there is no accounting, or it does not count GPUs, the record speaks for itself; while it does not
answer, the record does, and says so.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dsportal.usage import report
from dsportal.usage.record import UsageRecord
from dsportal.usage.report import GroupRow, UsageRow, Use
from jupyterhub_gpu_slurm.errors import SlurmError
from jupyterhub_gpu_slurm.options.unix_groups import groups_of
from jupyterhub_gpu_slurm.shared_answer import SharedAnswers
from jupyterhub_gpu_slurm.slurm.accounting import AccountedJob
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

log = logging.getLogger(__name__)

_GOOD_FOR_SECONDS = 60.0
_STEP_MINUTES = 5
_STEP = timedelta(minutes=_STEP_MINUTES)
# A month of a large cluster's jobs is some hundred megabytes: one answer for each span of the page.
_MOST_KEPT = 3


@dataclass(frozen=True)
class Uses:
    """Use of GPUs in a span: of the portal's sessions, or of all jobs in Slurm's accounting."""

    uses: tuple[Use, ...]
    as_of: datetime
    lacks_jobs: bool = False
    """Whether Slurm did not tell of its jobs: these are sessions alone."""


class UsageSource:
    """Answers for a minute with what it found; who asks the same meanwhile costs nothing."""

    def __init__(
        self,
        record: UsageRecord,
        client: SlurmClient,
        groups_of_user: Callable[[str], Collection[str]] = groups_of,
    ) -> None:
        self._record = record
        self._client = client
        self._groups_of_user = groups_of_user
        self._answers = SharedAnswers(self._ask, _GOOD_FOR_SECONDS, most=_MOST_KEPT)

    async def gpu_hours(self, since: datetime, until: datetime) -> tuple[list[UsageRow], bool]:
        """Return what each user used, and whether that is of the sessions alone, for now.

        Raises `sqlite3.Error` when the record cannot be read.
        """
        found = await self.uses(since, until)
        count = asyncio.to_thread(report.by_user, found.uses, since, until, found.as_of)
        return await count, found.lacks_jobs

    async def group_gpu_hours(
        self, since: datetime, until: datetime
    ) -> tuple[list[GroupRow], bool]:
        """Return what the members of each group used; see `gpu_hours`."""
        found = await self.uses(since, until)
        count = asyncio.to_thread(report.by_group, found.uses, since, until, found.as_of)
        return await count, found.lacks_jobs

    async def uses(self, since: datetime, until: datetime) -> Uses:
        """Return who held GPUs in the span, as of at most a minute ago."""
        # Who asks for "until now" asks for the same as others in these minutes: also who comes back
        # for an answer that took long.
        return await self._answers.get((_to_step(since), _to_step(until) + _STEP))

    async def _ask(self, span: tuple[datetime, datetime]) -> Uses:
        now, (since, until) = datetime.now(UTC), span
        sessions = await asyncio.to_thread(self._record.uses, since, until)
        try:
            jobs = await self._accounted(since, until)
        except SlurmError as error:
            log.warning("Slurm's accounting does not answer: %s", error.detail)
            return Uses(tuple(sessions), now, lacks_jobs=True)
        if jobs is None:
            return Uses(tuple(sessions), now)
        names = {job.user for job in jobs}
        groups = await asyncio.to_thread(
            lambda: {name: frozenset(self._groups_of_user(name)) for name in names}
        )
        uses = await asyncio.to_thread(together, sessions, jobs, groups, now)
        return Uses(tuple(uses), now)

    async def _accounted(self, since: datetime, until: datetime) -> list[AccountedJob] | None:
        if not await self._client.accounts_gpus():
            return None
        return await self._client.accounted_jobs(since, until)


def together(
    sessions: Iterable[Use],
    jobs: Iterable[AccountedJob],
    groups: dict[str, frozenset[str]],
    now: datetime,
) -> list[Use]:
    """Return all jobs, the sessions among them with the groups that the record has.

    A session that the accounting does not know, since it was turned on later, stays.
    """
    left = {(use.job_id, use.user): use for use in sessions}
    found = []
    for job in jobs:
        session = left.pop((job.job_id, job.user), None)
        found.append(
            Use(
                user=job.user,
                groups=session.groups if session else groups.get(job.user, frozenset()),
                gpus=job.gpus,
                started=job.started,
                seen=now,
                ended=job.ended,
                is_session=session is not None,
                job_id=job.job_id,
            )
        )
    return [*found, *left.values()]


def _to_step(moment: datetime) -> datetime:
    moment = moment.astimezone(UTC)
    minute = moment.minute - moment.minute % _STEP_MINUTES
    return moment.replace(minute=minute, second=0, microsecond=0)
