"""One round of the keeper."""

import logging
import re
from collections.abc import Iterable

from tornado.httpclient import HTTPClientError

from portal.keeper.hub_api import HubApi
from spawner.errors import SlurmError
from spawner.reconciliation import KnownSession, Orphan, plan, users_to_ask
from spawner.slurm.client import SlurmClient

log = logging.getLogger(__name__)

# What goes to sudo is a plain Unix name, whatever a forged line says.
_USERNAME = re.compile(r"[a-z_][a-z0-9_.-]{0,31}", re.ASCII)
_MOST_USERS = 50


class Keeper:
    """Lays Slurm's jobs and the hub's servers side by side.

    Whose jobs may be this hub's is told by one squeue; what they are is asked as the user, so that
    nobody's words are taken for another's, and nobody's job can be cancelled but the user's own.
    """

    def __init__(self, client: SlurmClient, hub: HubApi, mark: str) -> None:
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
        listed = await self._listed(users_to_ask(marked, await self._hub.sessions()))
        if not listed:
            return
        todo = plan(listed, await self._hub.sessions())
        for orphan in todo.orphans:
            await self._cancel(orphan)
        for session in todo.interrupted:
            await self._start(session)

    async def _listed(self, usernames: Iterable[str]) -> dict[str, dict[int, str]]:
        listed = {}
        for username in sorted(filter(_USERNAME.fullmatch, usernames))[:_MOST_USERS]:
            try:
                listed[username] = await self._client.sessions(username)
            except SlurmError as error:
                log.warning("The jobs of %s could not be looked at: %s", username, error.detail)
        return listed

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
