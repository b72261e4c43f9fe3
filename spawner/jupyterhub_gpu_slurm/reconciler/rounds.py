"""A round of the reconciler: ask Slurm and the hub, then do what the plan says."""

import logging
import random
import re
from collections.abc import Iterable, Mapping

from tornado.httpclient import HTTPClientError

from jupyterhub_gpu_slurm.errors import AccountUnavailable, SlurmError
from jupyterhub_gpu_slurm.reconciler.hub_sessions import ReconcilerHubApi
from jupyterhub_gpu_slurm.reconciler.reconciliation import (
    KnownSession,
    Orphan,
    ownerless,
    plan,
    users_to_ask,
)
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

log = logging.getLogger(__name__)

# What goes to sudo is a plain Unix name, whatever a forged line says.
_USERNAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}", re.ASCII)
_MOST_USERS = 50
_MOST_JOBS = 50


class Reconciler:
    """Lays Slurm's jobs and the hub's servers side by side.

    Whose jobs may be this hub's is told by one squeue; what they are is asked as the user, so that
    nobody's words are taken for another's, and nobody's job can be cancelled but the user's own.
    Where the hub cannot act as the user, whose account may be deleted, it looks itself, and Slurm's
    operator ends what belongs to no server.
    """

    def __init__(self, client: SlurmClient, hub: ReconcilerHubApi, mark: str) -> None:
        self._client = client
        self._hub = hub
        self._mark = mark

    async def round(self) -> None:
        """Do what is to be done now. Slurm that does not answer is asked in the next round."""
        try:
            marked = await self._client.marked_jobs(self._mark)
        except SlurmError as error:
            log.warning("Slurm does not tell which jobs there are: %s", error.detail)
            return
        known = await self._hub.sessions()
        listed, unavailable = await self._listed(users_to_ask(marked, known))
        unlisted = {user: marked.get(user, set()) for user in unavailable}
        seen = await self._seen(unlisted, known)
        if not listed and not seen:
            return
        known = await self._hub.sessions()
        todo = plan(listed, known)
        for orphan in todo.orphans:
            await self._cancel(orphan)
        for orphan in ownerless(seen, known):
            await self._end(orphan)
        for session in todo.interrupted:
            # While others were started, its user may have stopped it, or gone on with it.
            if session in await self._hub.sessions():
                await self._start(session)

    async def _listed(
        self, usernames: frozenset[str]
    ) -> tuple[dict[str, dict[int, str]], list[str]]:
        """Return users' sessions, and the users as whom the hub cannot act."""
        listed = {}
        # Of an account that is gone, squeue may tell the number.
        unavailable = [name for name in usernames if name.isdecimal()]
        names = sorted(filter(_USERNAME.fullmatch, usernames))
        # Where there are too many for a round, others than in the last one.
        for username in random.sample(names, min(len(names), _MOST_USERS)):
            try:
                listed[username] = await self._client.sessions(username)
            except SlurmError as error:
                log.warning("The jobs of %s could not be looked at: %s", username, error.detail)
                if isinstance(error, AccountUnavailable):
                    unavailable.append(username)
        return listed, unavailable

    async def _seen(
        self, marked: Mapping[str, Iterable[int]], known: Iterable[KnownSession]
    ) -> dict[str, dict[int, str]]:
        """Return the sessions of users as whom the hub cannot act, as anybody can see them."""
        accounted = {session.job_id for session in known}
        wanted = [
            (user, job_id) for user in marked for job_id in marked[user] if job_id not in accounted
        ]
        seen: dict[str, dict[int, str]] = {}
        for user, job_id in sorted(wanted)[:_MOST_JOBS]:
            try:
                session = await self._client.session_of(job_id, self._mark)
            except SlurmError as error:
                log.warning("Job %d of %s could not be looked at: %s", job_id, user, error.detail)
                continue
            if session is not None:
                seen.setdefault(user, {})[job_id] = session
        return seen

    async def _end(self, orphan: Orphan) -> None:
        """End what belongs to no server, and to nobody as whom the hub can act."""
        jobs = ", ".join(map(str, orphan.job_ids))
        if not self._client.operator:
            log.warning("Jobs %s of %s belong to no server: cancel them", jobs, orphan.username)
            return
        log.warning("Jobs %s of %s belong to no server: ended", jobs, orphan.username)
        for job_id in orphan.job_ids:
            try:
                await self._client.end(orphan.username, orphan.session_id, job_id)
            except SlurmError as error:
                log.warning("The jobs could not be cancelled: %s", error.detail)

    async def _cancel(self, orphan: Orphan) -> None:
        log.warning(
            "Jobs %s of %s are a session that belongs to no server: cancelled",
            ", ".join(map(str, orphan.job_ids)),
            orphan.username,
        )
        try:
            await self._client.cancel(orphan.username, orphan.session_id)
        except SlurmError as error:
            log.warning("The jobs could not be cancelled: %s", error.detail)

    async def _start(self, session: KnownSession) -> None:
        log.info(
            "The start of %s/%s goes on after an interruption",
            session.username,
            session.server_name,
        )
        try:
            await self._hub.start(session.username, session.server_name)
        except HTTPClientError as error:
            # The user may have been quicker.
            log.info("The hub did not take up the start: %s", error)
