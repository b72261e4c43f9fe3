"""The Slurm client: the only place where the hub runs Slurm's programs and the launcher."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, TypeVar

from jupyterhub_gpu_slurm import metrics
from jupyterhub_gpu_slurm.errors import CommandFailed, NoSuchJob
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

T = TypeVar("T")

# Of one answer of Slurm's own programs: the queue of a large cluster in JSON, and some more.
_MOST_BYTES = 1 << 29
# A month of a large cluster's jobs takes a database some time.
_ACCOUNTING_SECONDS = 60.0
# Beyond this an answer is read in a thread: that of thousands of nodes takes a third of a second.
_LARGE_ANSWER = 1 << 16
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
            return found | await self._launch(
                self.operator, "jobs", _read_jobs, job_ids=sorted(hidden)
            )
        # They may be there: nobody can tell.
        self.privacy.tell_once()
        return found | {job_id: Job(job_id, "") for job_id in hidden}

    async def _shown_jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        try:
            return await self._ask(commands.jobs(job_ids), parsing.jobs)
        except NoSuchJob:
            # squeue fails so when it was asked for one job only and does not know it.
            if len(job_ids) == 1:
                return {}
            raise

    async def _hides_jobs(self) -> bool:
        return await self.privacy.hides_jobs(
            lambda: self._ask(commands.config(), parsing.hides_jobs)
        )

    async def knows(self, job_id: int) -> bool:
        """Ask in another way whether Slurm knows a job that squeue did not name."""
        try:
            return await self._ask(commands.job(job_id), lambda _: True)
        except NoSuchJob:
            return False

    async def marked_jobs(self, mark: str) -> dict[str, set[int]]:
        """Return, by user, the jobs that may be a hub's: a hint, see `parsing.marked_jobs`."""
        if self.operator and await self._hides_jobs():
            return parsing.users_of(await self._launch(self.operator, "marked", _read_jobs))
        word = secrets.token_hex(8)
        return await self._ask(
            commands.queue(),
            lambda told: parsing.marked_jobs(told, mark, word),
            commands.marked(word),
        )

    async def cluster(self) -> Cluster:
        """Return the partitions and their nodes."""
        nodes, partitions = await asyncio.gather(
            self._ask(commands.nodes(), parsing.nodes),
            self._ask(commands.partitions(), parsing.partitions),
        )
        return parsing.cluster(nodes, partitions)

    async def accounts_gpus(self) -> bool:
        """Return whether Slurm's accounting knows who held GPUs."""
        return await self._ask(commands.config(), accounting.counts_gpus)

    async def accounted_jobs(self, since: datetime, until: datetime) -> list[AccountedJob]:
        """Return all users' jobs that ran in a span, as Slurm's accounting knows them."""
        seconds = max(self.time_limit, _ACCOUNTING_SECONDS)
        return await self._ask(accounting.jobs(since, until), accounting.read, seconds=seconds)

    async def accounting(self) -> Accounting:
        """Return whether Slurm's accounting knows accounts and QOS of users."""
        return await self._ask(commands.config(), associations.accounting)

    async def associations(self, username: str, cluster: str) -> tuple[Association, ...]:
        """Return the accounts that a user may charge on a cluster, with their QOS."""
        command = associations.associations(username, cluster)
        return await self._ask(command, lambda told: associations.read(told, username))

    async def queue(self) -> tuple[QueuedJob, ...]:
        """Return everybody's jobs that have not ended."""
        word = secrets.token_hex(8)
        return await self._ask(
            commands.queue(), lambda told: queue.jobs(told, word), commands.shown(word)
        )

    async def queue_positions(self) -> dict[int, QueuePosition]:
        """Return the positions in the queue of the jobs that wait, as far as Slurm shows them."""
        return await self._ask(commands.waiting(), queue_positions.queue_positions)

    async def gpu_allocations(self) -> dict[int, tuple[GpuAllocation, ...]]:
        """Return which GPUs each job holds, on each of its nodes in turn."""
        return await self._ask(commands.gpu_allocations(), queue.gpu_allocations)

    async def diagnostics(self) -> str:
        """Return how the scheduler is, in sdiag's own words."""
        return await self._ask(commands.diagnostics(), str)

    async def submit(self, username: str, session: str, script: str, session_input: str) -> int:
        """Submit a session's script as a user, with its input; return the job's number."""
        request = {"session": session, "script": script, "input": session_input}
        return await self._launch(username, "submit", launcher_answers.job_id, **request)

    async def forecast(self, username: str, script: str) -> dict[str, str]:
        """Ask when a script would start as a user; see the launcher's ``forecast``."""
        return await self._launch(username, "forecast", launcher_answers.forecast, script=script)

    async def cancel(self, username: str, session: str) -> list[int]:
        """Cancel a user's jobs of one session; return their numbers."""
        return await self._launch(username, "cancel", launcher_answers.job_ids, session=session)

    async def end(self, username: str, session: str, job_id: int) -> list[int]:
        """Cancel, as Slurm's operator, a session of a user as whom the hub cannot act."""
        request = {"session": session, "job_id": job_id, "user": username}
        return await self._launch(self.operator, "end", launcher_answers.job_ids, **request)

    async def sessions(self, username: str) -> dict[int, str]:
        """Return a user's jobs that carry this hub's mark and have not ended: job -> session."""
        return await self._launch(username, "list", launcher_answers.sessions)

    async def session_of(self, job_id: int, mark: str) -> str | None:
        """Return the session that a job says it is of this hub, as anybody can see it.

        Where Slurm hides others' jobs, as its operator can see it.
        """
        if self.operator and await self._hides_jobs():
            return await self._launch(
                self.operator, "session", launcher_answers.session, job_id=job_id
            )
        try:
            return await self._ask(
                commands.comment(job_id), lambda told: parsing.session(told, mark)
            )
        except NoSuchJob:
            return None

    async def log_tail(self, username: str, job_id: int) -> list[str]:
        """Return the last lines that a session's job wrote; none where there is no log."""
        return await self._launch(username, "log", launcher_answers.lines, job_id=job_id)

    async def extend(self, username: str, session: str, job_id: int, minutes: int) -> None:
        """Raise the time limit of a user's session, as Slurm's operator, to ``minutes`` in all.

        Raises `ExtensionRefused` when the limit is certainly what it was.
        """
        request = {"session": session, "job_id": job_id, "user": username, "minutes": minutes}
        await self._launch(self.operator, "extend", lambda _: None, **request)

    async def _ask(
        self,
        command: list[str],
        read: Callable[[str], T],
        more: Mapping[str, str] = _NOTHING,
        seconds: float | None = None,
    ) -> T:
        name, *arguments = command
        environment = {
            "LC_ALL": "C",
            "PATH": "/usr/bin:/bin",
            "SLURM_CONF": self.slurm_conf,
            "TZ": "UTC",
            **more,
        }
        argv = [str(PurePosixPath(self.bin_dir, name)), *arguments]
        with metrics.timed(metrics.QUERY, metrics.QUERY_FAILURES, name):
            done = await program.run(argv, environment, seconds or self.time_limit, _MOST_BYTES)
            if done.code != 0:
                detail = f"{name} ended with {done.code}: {launcher_answers.one_line(done.err)}"
                failure = NoSuchJob if _NO_SUCH_JOB in detail else CommandFailed
                raise failure(f"Slurm's {name} failed.", detail=detail)
            if len(done.out) > _LARGE_ANSWER:
                return await asyncio.to_thread(read, done.out)
            return read(done.out)

    async def _launch(
        self, username: str, verb: str, read: Callable[[dict[str, Any]], T], **request: object
    ) -> T:
        with metrics.timed(metrics.LAUNCHER, metrics.LAUNCHER_FAILURES, verb):
            async with self.launches.passage():
                answer = await launcher_client.order(self.launcher_cmd, username, verb, request)
            return read(answer)


def _read_jobs(answer: dict[str, Any]) -> dict[int, Job]:
    return parsing.jobs(launcher_answers.rows(answer))
