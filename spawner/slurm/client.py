"""The one place that runs Slurm's programs, and the launcher, for the hub."""

import asyncio
import contextlib
import json
import logging
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from spawner import metrics
from spawner.errors import (
    CommandFailed,
    CommandTimedOut,
    ExtensionRefused,
    SlurmError,
    SubmissionRefused,
    UnreadableOutput,
)
from spawner.slurm import accounting, commands, parsing, queue
from spawner.slurm.accounting import AccountedJob
from spawner.slurm.records import Cluster, Job, QueuedJob, Share
from spawner.slurm.turnstile import Turnstile

log = logging.getLogger(__name__)

# More than the launcher gives the programs that it runs: it has the last word on how they ended,
# and none of them is still at work when we have given up.
_LAUNCHER_SECONDS = 75.0
# A month of a large cluster's jobs takes a database some time.
_ACCOUNTING_SECONDS = 60.0
_NO_SUCH_JOB = "Invalid job id specified"


@dataclass(frozen=True)
class SlurmClient:
    """Asks Slurm as the hub's user, and acts as others through the launcher.

    Every call has a time limit. What went wrong is raised from the tree in `spawner.errors`;
    ``calls`` counts the programs that were run, by name.
    """

    bin_dir: str
    slurm_conf: str
    launcher_cmd: tuple[str, ...]
    """The launcher's argv; ``{username}`` stands for the user it is to act as."""
    time_limit: float
    """Seconds for one of the hub's own questions."""
    launches: Turnstile = field(default_factory=Turnstile, compare=False)
    """How many launchers are at work at once."""
    calls: dict[str, int] = field(default_factory=dict, compare=False)

    async def jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        """Return those of the jobs that Slurm knows."""
        if not job_ids:
            return {}
        try:
            return parsing.jobs(await self._ask(commands.jobs(job_ids)))
        except CommandFailed as error:
            # squeue fails so when it was asked for one job only and does not know it.
            if len(job_ids) == 1 and _is_no_such_job(error):
                return {}
            raise

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
        return parsing.marked_jobs(await self._ask(commands.all_jobs()), mark)

    async def cluster(self) -> Cluster:
        """Return the partitions and their nodes."""
        nodes, partitions = await asyncio.gather(
            self._ask(commands.nodes()), self._ask(commands.partitions())
        )
        return parsing.cluster(nodes, partitions)

    async def accounts_gpus(self) -> bool:
        """Return whether Slurm's accounting knows who held GPUs."""
        return accounting.counts_gpus(await self._ask(accounting.settings()))

    async def accounted_jobs(self, since: datetime, until: datetime) -> list[AccountedJob]:
        """Return all users' jobs that ran in a span, as Slurm's accounting knows them."""
        seconds = max(self.time_limit, _ACCOUNTING_SECONDS)
        return accounting.read(await self._ask(accounting.jobs(since, until), seconds))

    async def queue(self) -> tuple[QueuedJob, ...]:
        """Return everybody's jobs that have not ended."""
        word = secrets.token_hex(8)
        return queue.jobs(await self._ask(commands.queue(word)), word)

    async def gpu_shares(self) -> dict[int, tuple[Share, ...]]:
        """Return which GPUs each job holds, on each of its nodes in turn."""
        return queue.shares(await self._ask(commands.gpu_shares()))

    async def diagnostics(self) -> str:
        """Return how the scheduler is, in sdiag's own words."""
        return await self._ask(commands.diagnostics())

    async def submit(self, username: str, session: str, script: str) -> int:
        """Submit a session's script as a user; return the job's number."""
        answer = await self._launch(
            username, {"verb": "submit", "session": session, "script": script}
        )
        job_id = answer.get("job_id")
        if type(job_id) is not int:
            raise UnreadableOutput(
                "Slurm's answer to the submission could not be read.", detail=f"launcher: {answer}"
            )
        return job_id

    async def forecast(self, username: str, script: str) -> dict[str, Any]:
        """Ask when a script would start as a user; see the launcher's ``forecast``."""
        return await self._launch(username, {"verb": "forecast", "script": script})

    async def cancel(self, username: str, session: str) -> list[int]:
        """Cancel a user's jobs of one session; return their numbers."""
        answer = await self._launch(username, {"verb": "cancel", "session": session})
        return list(answer.get("job_ids", ()))

    async def sessions(self, username: str) -> dict[int, str]:
        """Return a user's jobs that carry this hub's mark and have not ended: job -> session."""
        answer = await self._launch(username, {"verb": "list"})
        return {int(job_id): str(session) for job_id, session in answer["sessions"].items()}

    async def log_tail(self, username: str, job_id: int) -> list[str]:
        """Return the last lines that a session's job wrote; none where there is no log."""
        answer = await self._launch(username, {"verb": "log", "job_id": job_id})
        return [str(line) for line in answer.get("lines", ())]

    async def extend(
        self, operator: str, username: str, session: str, job_id: int, minutes: int
    ) -> None:
        """Raise the time limit of a user's session, as Slurm's operator, to ``minutes`` in all.

        Raises `ExtensionRefused` when the limit is certainly what it was.
        """
        request: dict[str, object] = {"session": session, "job_id": job_id, "minutes": minutes}
        await self._launch(operator, {"verb": "extend", "user": username, **request})

    async def _ask(self, argv: list[str], seconds: float | None = None) -> str:
        program, *arguments = argv
        environment = {
            "LC_ALL": "C",
            "PATH": "/usr/bin:/bin",
            "SLURM_CONF": self.slurm_conf,
            "TZ": "UTC",
        }
        path = str(PurePosixPath(self.bin_dir, program))
        argv = [path, *arguments]
        with metrics.timed(metrics.QUERY, metrics.QUERY_FAILURES, program, _is_no_such_job):
            code, out, err = await self._run(argv, environment, b"", seconds or self.time_limit)
            if code != 0:
                detail = f"{program} ended with {code}: {err.strip()}"
                raise CommandFailed(f"Slurm's {program} failed.", detail=detail)
        return out

    async def _launch(self, username: str, request: dict[str, object]) -> dict[str, Any]:
        verb = str(request["verb"])
        with metrics.timed(metrics.LAUNCHER, metrics.LAUNCHER_FAILURES, verb):
            return await self._order(username, verb, request)

    async def _order(self, username: str, verb: str, request: dict[str, object]) -> dict[str, Any]:
        argv = [part.replace("{username}", username) for part in self.launcher_cmd]
        environment = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
        stdin = json.dumps(request).encode()
        async with self.launches.passage():
            code, out, err = await self._run(argv, environment, stdin, _LAUNCHER_SECONDS)
        try:
            answer = json.loads(out)
        except json.JSONDecodeError as error:
            raise CommandFailed(
                "The portal may not act in your name on the cluster; ask its administrators.",
                detail=f"launcher for {username} ended with {code}: {err.strip()}",
            ) from error
        if "error" in answer:
            detail = f"launcher, {verb} for {username}: {answer['error']}"
            # A time-out is no refusal: the job may be there all the same.
            is_no = verb == "submit" and answer.get("refused") and "timed out" not in detail
            if is_no:
                raise SubmissionRefused(
                    f"Slurm said no: {_last_line(answer['error'])}", detail=detail
                )
            if verb == "extend" and answer.get("refused"):
                raise ExtensionRefused(
                    f"Slurm did not extend the session: {_last_line(answer['error'])}",
                    detail=detail,
                )
            raise CommandFailed("The cluster's scheduler did not do its part.", detail=detail)
        return dict(answer)

    async def _run(
        self, argv: list[str], environment: dict[str, str], stdin: bytes, time_limit: float
    ) -> tuple[int, str, str]:
        name = PurePosixPath(argv[0]).name
        self.calls[name] = self.calls.get(name, 0) + 1
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            raise CommandFailed(
                f"{name} cannot be run; ask the administrators.", detail=f"{argv[0]}: {error}"
            ) from error
        try:
            async with asyncio.timeout(time_limit):
                out, err = await process.communicate(stdin)
        except TimeoutError as error:
            raise CommandTimedOut(
                "The cluster's scheduler does not answer at the moment.",
                detail=f"{name} did not answer in {time_limit:g} s",
            ) from error
        finally:
            if process.returncode is None:
                # sudo runs as root and cannot be signalled; the launcher has a limit of its own.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    process.kill()
        assert process.returncode is not None  # noqa: S101  communicate() returned
        return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def _is_no_such_job(error: SlurmError) -> bool:
    """Say whether Slurm answered, and does not know the job: no failure of Slurm's."""
    return _NO_SUCH_JOB in error.detail


def _last_line(text: str) -> str:
    """Return the line of sbatch's complaint that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("sbatch: error: ") if lines else "no reason given"
