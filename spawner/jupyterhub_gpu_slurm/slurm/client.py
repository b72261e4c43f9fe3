"""The Slurm client: the only place where the hub runs Slurm's programs and the launcher."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from jupyterhub_gpu_slurm import metrics
from jupyterhub_gpu_slurm.errors import CommandFailed, SlurmError
from jupyterhub_gpu_slurm.slurm import (
    accounting,
    associations,
    commands,
    launcher_answers,
    launcher_client,
    parsing,
    program,
    queue,
    queue_positions,
)
from jupyterhub_gpu_slurm.slurm.accounting import AccountedJob
from jupyterhub_gpu_slurm.slurm.associations import Accounting, Association
from jupyterhub_gpu_slurm.slurm.limiters import ConcurrencyLimiter
from jupyterhub_gpu_slurm.slurm.privacy import JobPrivacy
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition
from jupyterhub_gpu_slurm.slurm.records import Cluster, GpuAllocation, Job, QueuedJob

# Of one answer of Slurm's own programs: the queue of a large cluster in JSON, and some more.
_MOST_BYTES = 1 << 29
# A month of a large cluster's jobs takes a database some time.
_ACCOUNTING_SECONDS = 60.0
_NOTHING: Mapping[str, str] = {}
_NO_SUCH_JOB = "Invalid job id specified"


@dataclass(frozen=True)
class SlurmClient:
    """Asks Slurm as the hub's user, and acts as others through the launcher.

    Every call has a time limit, and may say only so much. What went wrong is raised from the tree
    in `jupyterhub_gpu_slurm.errors`.
    """

    bin_dir: str
    slurm_conf: str
    launcher_cmd: tuple[str, ...]
    """The launcher's argv; ``{username}`` stands for the user it is to act as."""
    time_limit: float
    """Seconds for one of the hub's own questions."""
    operator: str = ""
    """As whom the launcher extends and ends sessions, and looks at others' jobs where Slurm hides
    them; empty: as nobody."""
    privacy: JobPrivacy = field(default_factory=JobPrivacy, compare=False)
    launches: ConcurrencyLimiter = field(default_factory=ConcurrencyLimiter, compare=False)
    """How many launchers are at work at once."""

    async def jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        """Return those of the jobs that Slurm knows."""
        if not job_ids:
            return {}
        found = await self._shown_jobs(job_ids)
        hidden = job_ids - found.keys()
        if not hidden or not await self._hides_jobs():
            return found
        if self.operator:
            return found | await self._operators_jobs(hidden)
        # They may be there: nobody can tell.
        self.privacy.tell_once()
        return found | {job_id: Job(job_id, "") for job_id in hidden}

    async def _shown_jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        try:
            return parsing.jobs(await self._ask(commands.jobs(job_ids)))
        except CommandFailed as error:
            # squeue fails so when it was asked for one job only and does not know it.
            if len(job_ids) == 1 and _is_no_such_job(error):
                return {}
            raise

    async def _operators_jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        request: dict[str, object] = {"verb": "jobs", "job_ids": sorted(job_ids)}
        return parsing.jobs(launcher_answers.rows(await self._launch(self.operator, request)))

    async def _hides_jobs(self) -> bool:
        return await self.privacy.hides_jobs(lambda: self._ask(commands.config()))

    async def knows(self, job_id: int) -> bool:
        """Ask in another way whether Slurm knows a job that squeue did not name."""
        try:
            await self._ask(commands.job(job_id))
        except CommandFailed as error:
            if _is_no_such_job(error):
                return False
            raise
        return True

    async def marked_jobs(self, mark: str) -> dict[str, set[int]]:
        """Return, by user, the jobs that may be a hub's: a hint, see `parsing.marked_jobs`."""
        if self.operator and await self._hides_jobs():
            answer = await self._launch(self.operator, {"verb": "marked"})
            return parsing.users_of(parsing.jobs(launcher_answers.rows(answer)))
        word = secrets.token_hex(8)
        told = await self._ask(commands.queue(), more=commands.marked(word))
        return parsing.marked_jobs(told, mark, word)

    async def cluster(self) -> Cluster:
        """Return the partitions and their nodes."""
        nodes, partitions = await asyncio.gather(
            self._ask(commands.nodes()), self._ask(commands.partitions())
        )
        # Thousands of nodes take a third of a second: not from those whom the loop serves.
        return await asyncio.to_thread(parsing.cluster, nodes, partitions)

    async def accounts_gpus(self) -> bool:
        """Return whether Slurm's accounting knows who held GPUs."""
        return accounting.counts_gpus(await self._ask(commands.config()))

    async def accounted_jobs(self, since: datetime, until: datetime) -> list[AccountedJob]:
        """Return all users' jobs that ran in a span, as Slurm's accounting knows them."""
        seconds = max(self.time_limit, _ACCOUNTING_SECONDS)
        told = await self._ask(accounting.jobs(since, until), seconds)
        return await asyncio.to_thread(accounting.read, told)

    async def accounting(self) -> Accounting:
        """Return whether Slurm's accounting knows accounts and QOS of users."""
        return associations.accounting(await self._ask(commands.config()))

    async def associations(self, username: str, cluster: str) -> tuple[Association, ...]:
        """Return the accounts that a user may charge on a cluster, with their QOS."""
        answer = await self._ask(associations.associations(username, cluster))
        return associations.read(answer, username)

    async def queue(self) -> tuple[QueuedJob, ...]:
        """Return everybody's jobs that have not ended."""
        word = secrets.token_hex(8)
        shown = await self._ask(commands.queue(), more=commands.shown(word))
        return await asyncio.to_thread(queue.jobs, shown, word)

    async def queue_positions(self) -> dict[int, QueuePosition]:
        """Return the positions in the queue of the jobs that wait, as far as Slurm shows them."""
        told = await self._ask(commands.waiting())
        return await asyncio.to_thread(queue_positions.queue_positions, told)

    async def gpu_allocations(self) -> dict[int, tuple[GpuAllocation, ...]]:
        """Return which GPUs each job holds, on each of its nodes in turn."""
        return queue.gpu_allocations(await self._ask(commands.gpu_allocations()))

    async def diagnostics(self) -> str:
        """Return how the scheduler is, in sdiag's own words."""
        return await self._ask(commands.diagnostics())

    async def submit(self, username: str, session: str, script: str, session_input: str) -> int:
        """Submit a session's script as a user, with its input; return the job's number."""
        request: dict[str, object] = {"session": session, "script": script, "input": session_input}
        return launcher_answers.job_id(await self._launch(username, {"verb": "submit", **request}))

    async def forecast(self, username: str, script: str) -> dict[str, str]:
        """Ask when a script would start as a user; see the launcher's ``forecast``."""
        return launcher_answers.forecast(
            await self._launch(username, {"verb": "forecast", "script": script})
        )

    async def cancel(self, username: str, session: str) -> list[int]:
        """Cancel a user's jobs of one session; return their numbers."""
        return launcher_answers.job_ids(
            await self._launch(username, {"verb": "cancel", "session": session})
        )

    async def end(self, username: str, session: str, job_id: int) -> list[int]:
        """Cancel, as Slurm's operator, a session of a user as whom the hub cannot act."""
        request: dict[str, object] = {"session": session, "job_id": job_id, "user": username}
        return launcher_answers.job_ids(
            await self._launch(self.operator, {"verb": "end", **request})
        )

    async def sessions(self, username: str) -> dict[int, str]:
        """Return a user's jobs that carry this hub's mark and have not ended: job -> session."""
        return launcher_answers.sessions(await self._launch(username, {"verb": "list"}))

    async def session_of(self, job_id: int, mark: str) -> str | None:
        """Return the session that a job says it is of this hub, as anybody can see it.

        Where Slurm hides others' jobs, as its operator can see it.
        """
        if self.operator and await self._hides_jobs():
            request: dict[str, object] = {"verb": "session", "job_id": job_id}
            return launcher_answers.session(await self._launch(self.operator, request))
        try:
            return parsing.session(await self._ask(commands.comment(job_id)), mark)
        except CommandFailed as error:
            if _is_no_such_job(error):
                return None
            raise

    async def log_tail(self, username: str, job_id: int) -> list[str]:
        """Return the last lines that a session's job wrote; none where there is no log."""
        return launcher_answers.lines(
            await self._launch(username, {"verb": "log", "job_id": job_id})
        )

    async def extend(self, username: str, session: str, job_id: int, minutes: int) -> None:
        """Raise the time limit of a user's session, as Slurm's operator, to ``minutes`` in all.

        Raises `ExtensionRefused` when the limit is certainly what it was.
        """
        request: dict[str, object] = {"session": session, "job_id": job_id, "minutes": minutes}
        await self._launch(self.operator, {"verb": "extend", "user": username, **request})

    async def _ask(
        self, argv: list[str], seconds: float | None = None, more: Mapping[str, str] = _NOTHING
    ) -> str:
        name, *arguments = argv
        environment = {
            "LC_ALL": "C",
            "PATH": "/usr/bin:/bin",
            "SLURM_CONF": self.slurm_conf,
            "TZ": "UTC",
            **more,
        }
        argv = [str(PurePosixPath(self.bin_dir, name)), *arguments]
        with metrics.timed(metrics.QUERY, metrics.QUERY_FAILURES, name, _is_no_such_job):
            done = await program.run(argv, environment, seconds or self.time_limit, _MOST_BYTES)
            if done.code != 0:
                detail = f"{name} ended with {done.code}: {launcher_answers.one_line(done.err)}"
                raise CommandFailed(f"Slurm's {name} failed.", detail=detail)
        return done.out

    async def _launch(self, username: str, request: dict[str, object]) -> dict[str, Any]:
        with metrics.timed(metrics.LAUNCHER, metrics.LAUNCHER_FAILURES, str(request["verb"])):
            async with self.launches.passage():
                return await launcher_client.order(self.launcher_cmd, username, request)


def _is_no_such_job(error: SlurmError) -> bool:
    """Say whether Slurm answered, and does not know the job: no failure of Slurm's."""
    return _NO_SUCH_JOB in error.detail
