"""Sessions as admins see them: what the hub knows of each, beside what Slurm knows of its job."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from tornado.httpclient import HTTPClientError
from typing_extensions import TypedDict

from dsportal.cluster.hub_api import ClusterHubApi, ListedSession
from dsportal.cluster.snapshot import Snapshot
from dsportal.cluster.words import SESSIONS_OLD
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer

log = logging.getLogger(__name__)


class SessionRow(TypedDict):
    """A session of the portal. Times are seconds since 1970."""

    user: str
    groups: list[str]
    server: str
    is_ready: bool
    job_id: int | None
    nodes: list[str]
    gpus: int | None
    started: float | None
    ends: float | None
    idle_seconds: int | None
    idle_heard_at: float | None


@dataclass(frozen=True)
class SessionList:
    """The sessions, and what to know about them: words where they are not as of now."""

    rows: list[SessionRow]
    trouble: str | None


class Sessions:
    """Asks the hub for all admins who look, and not more often than the cluster is asked."""

    def __init__(self, hub: ClusterHubApi, interval: float) -> None:
        self.hub = hub
        self._answer = SharedAnswer(self._ask, interval)

    async def listing(self, snapshot: Snapshot) -> SessionList:
        """Return the sessions as of at most an interval ago; the last ones if the hub is away."""
        known, trouble = await self._answer.get()
        return SessionList(rows(known, snapshot), trouble)

    async def stop(self, user: str, server: str, token: str) -> None:
        """Stop a session by the right of whom the token is of; see `ClusterHubApi.stop`."""
        await self.hub.stop(user, server, token)
        self._answer.expire()

    async def _ask(self) -> tuple[list[ListedSession], str | None]:
        try:
            return await self.hub.sessions(), None
        except (HTTPClientError, OSError) as error:
            log.warning("The hub does not tell which sessions there are: %s", error)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("The hub's answer about the sessions cannot be used: %r", error)
        known, _ = self._answer.latest or ([], None)
        return known, SESSIONS_OLD


def rows(sessions: Iterable[ListedSession], snapshot: Snapshot) -> list[SessionRow]:
    """Lay the hub's sessions beside Slurm's jobs; those not used for the longest come first."""
    jobs = {job.job_id: job for job in snapshot.jobs}
    found: list[SessionRow] = []
    for session in sessions:
        job = jobs.get(session.job_id) if session.job_id else None
        started = (job and job.start) or session.started
        found.append(
            {
                "user": session.user,
                "groups": sorted(session.groups),
                "server": session.server,
                "is_ready": session.is_ready,
                "job_id": session.job_id,
                "nodes": list(job.nodes) if job else [],
                "gpus": session.gpus,
                "started": started.timestamp() if started and session.is_ready else None,
                "ends": job.end.timestamp() if job and job.end else None,
                "idle_seconds": session.idle_seconds,
                "idle_heard_at": (
                    session.idle_heard_at.timestamp() if session.idle_heard_at else None
                ),
            }
        )
    return sorted(found, key=lambda row: (-(row["idle_seconds"] or 0), row["user"], row["server"]))
