"""Asks Slurm for forecasts, with a cache and a limit on how many run at once.

A forecast costs Slurm a look at its whole queue. So few are made at once, an answer serves for a
while, and who has chosen anew meanwhile is not waited for any more.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime

from jupyterhub_gpu_slurm import metrics
from jupyterhub_gpu_slurm.errors import SlurmError
from jupyterhub_gpu_slurm.outlook import forecast
from jupyterhub_gpu_slurm.outlook.forecast import Forecast
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

log = logging.getLogger(__name__)

_AT_ONCE = 3
_GOOD_FOR_SECONDS = 5.0
_MOST_KEPT = 500
_UNKNOWN = Forecast("unknown", why=forecast.SILENT)
_OVERTAKEN = Forecast("unknown", why="You have chosen something else since.")


class Forecaster:
    """The forecasts of a hub's users.

    They are not `SharedAnswers`: of one user's questions that wait only the newest is asked, what
    another has overtaken is not kept, and the metric says which answers were at hand.
    """

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._kept: dict[tuple[str, str], tuple[float, Forecast]] = {}
        self._newest: dict[str, int] = {}
        # One at a time for each user: nobody takes all doors.
        self._users: dict[str, asyncio.Lock] = {}

    async def forecast(
        self, username: str, script: str, *, is_large_enough: bool = False
    ) -> Forecast:
        """Return when a user's script would start, as of some seconds ago.

        ``is_large_enough``: see `forecast.read`.
        """
        found, answer = await self._find(username, script, is_large_enough)
        metrics.FORECASTS.labels(found).inc()
        return answer

    async def _find(
        self, username: str, script: str, is_large_enough: bool
    ) -> tuple[str, Forecast]:
        """Return how the answer was found, for the metric, and the answer."""
        kept = self._fresh(username, script)
        if kept is not None:
            return "kept", kept
        number = self._newest[username] = self._newest.get(username, 0) + 1
        mine = self._users.setdefault(username, asyncio.Lock())
        async with mine, self._at_once:
            kept = self._fresh(username, script)
            if kept is not None:
                return "kept", kept
            if self._newest[username] != number:
                return "overtaken", _OVERTAKEN
            answer = await self._ask(username, script, is_large_enough)
        self._remember(username, script, answer)
        return answer.state, answer

    async def _ask(self, username: str, script: str, is_large_enough: bool) -> Forecast:
        try:
            answer = await self._client.forecast(username, script)
            return forecast.read(answer, datetime.now(UTC), is_large_enough=is_large_enough)
        except SlurmError as error:
            log.warning("No forecast for %s: %s", username, error.detail)
            return _UNKNOWN

    def _fresh(self, username: str, script: str) -> Forecast | None:
        asked_at, answer = self._kept.get((username, script), (-float("inf"), _UNKNOWN))
        return answer if time.monotonic() - asked_at < _GOOD_FOR_SECONDS else None

    def _remember(self, username: str, script: str, answer: Forecast) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[username, script] = (time.monotonic(), answer)
