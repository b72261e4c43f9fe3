"""Idle reports: for how long nobody has used the session, told to the hub and to the page.

The hub decides what follows from it: its answer names the limit for this user. ``GET /portal/idle``
tells the page; ``POST /portal/idle`` says that somebody is there.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from dsportal.session import internal_tls
from dsportal.session.usage import last_use
from dsportal.session.usage.meter import Meter

log = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 15.0
_PAUSE_WITHOUT_LIMIT_SECONDS = 60.0
# What was read for the history will do, if it is newer than the look before.
_READING_AGE = 2 / 3
_REPORT_SECONDS = 300.0
_REQUEST_SECONDS = 10.0
_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class IdleRule:
    """The hub's idle limit. ``None``: a session may be idle for as long as its time lasts."""

    limit_seconds: int | None = None
    warning_seconds: int = 0


@dataclass(frozen=True)
class Kernels:
    """Activity of the session's kernels."""

    are_busy: bool = False
    used_at: float = 0.0


class IdleWatch:
    """Looks after the session's use, and reports it."""

    def __init__(
        self,
        kernels: Callable[[], Kernels],
        meter: Meter,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._url = f"{environment.get('JUPYTERHUB_API_URL', '')}/gpu-session/activity"
        self._token = environment.get("JUPYTERHUB_API_TOKEN", "")
        self._meter = meter
        self._kernels = kernels
        self._now = now
        self._rule = IdleRule()
        self._before: last_use.UseSample | None = None
        self._used_at = self._page_used_at = now()
        self._reported_at: float | None = None
        self._reported_idle = 0
        self._is_heard = True
        self._woken = asyncio.Event()

    # --- what the page hears and says ---

    def tell(self) -> dict[str, Any]:
        """Give what the page shows. Moments are seconds since 1970."""
        used_at = max(self._used_at, self._page_used_at)
        limit = self._rule.limit_seconds
        return {
            "now": round(self._now()),
            "used_at": round(used_at),
            "limit_seconds": limit,
            "ends_at": None if limit is None else round(used_at + limit),
            "warning_seconds": self._rule.warning_seconds,
        }

    def keep(self) -> None:
        """Take note of somebody who is there."""
        self._page_used_at = self._now()
        if self._is_reported_over:
            self._woken.set()

    def note_request(self, method: str | None, path: str, status: int) -> None:
        """Take note of a request, which may be a user's."""
        if is_change(method, path, status):
            self.keep()

    # --- what the hub hears ---

    async def run(self) -> None:
        """Look and report as long as the session runs."""
        while True:
            self._woken.clear()
            try:
                await self.look()
                if self._is_report_due():
                    await self._report()
            except Exception:  # a session that says nothing goes on
                log.exception("The session's use could not be looked at")
            try:
                await asyncio.wait_for(self._woken.wait(), self._pause_seconds)
            except TimeoutError:
                continue

    async def look(self) -> int:
        """Look at the session once; return for how many seconds it has not been used."""
        kernels = self._kernels()
        reading = await self._meter.read(self._pause_seconds * _READING_AGE)
        look = last_use.UseSample(
            at=self._now(),
            has_busy_kernel=kernels.are_busy,
            kernel_used_at=kernels.used_at,
            page_used_at=self._page_used_at,
            processes_at=reading.at,
            processes={
                key: process
                for key, process in reading.processes.items()
                if not process.is_the_portals
            },
            gpu_percents=[gpu.percent for gpu in reading.gpus.gpus],
        )
        self._used_at = last_use.last_use(look, self._before, self._used_at)
        self._before = look
        return self._idle_seconds

    @property
    def _idle_seconds(self) -> int:
        return max(0, int(self._now() - max(self._used_at, self._page_used_at)))

    @property
    def _pause_seconds(self) -> float:
        limit = self._rule.limit_seconds
        if limit is None:
            return _PAUSE_WITHOUT_LIMIT_SECONDS
        return min(_LONGEST_PAUSE_SECONDS, max(1.0, limit / 10))

    @property
    def _is_reported_over(self) -> bool:
        limit = self._rule.limit_seconds
        return limit is not None and self._reported_idle >= limit

    def _is_report_due(self) -> bool:
        """Once in a while, and at each look from the limit on, and when it is used again then."""
        if self._reported_at is None or self._is_reported_over:
            return True
        limit = self._rule.limit_seconds
        if limit is not None and self._idle_seconds >= limit:
            return True
        return self._now() - self._reported_at >= _REPORT_SECONDS

    async def _report(self) -> None:
        idle = self._idle_seconds
        request = HTTPRequest(
            self._url,
            method="POST",
            headers={"Authorization": f"token {self._token}", "Content-Type": "application/json"},
            body=json.dumps({"idle_seconds": idle}),
            connect_timeout=_REQUEST_SECONDS,
            request_timeout=_REQUEST_SECONDS,
            ssl_options=internal_tls.client_context(),
        )
        try:
            answer = await AsyncHTTPClient().fetch(request)
            self._rule = rule_from(answer.body)
        except (HTTPClientError, OSError, ValueError) as error:
            if self._is_heard:
                log.warning("The hub does not hear how the session is used: %s", error)
            self._is_heard = False
        else:
            self._is_heard = True
            self._reported_at, self._reported_idle = self._now(), idle


def is_change(method: str | None, path: str, status: int) -> bool:
    """Say whether a request changed files, kernels or terminals: that was somebody's wish.

    A page that is left alone saves its layout (``/lab/api/workspaces``) every ten seconds, with
    each look at its list of files; and the Git panel asks by POST for its state, with the path of
    a folder in the address.
    """
    is_api = "/api/" in path.partition("/git/")[0]
    return method in _CHANGES and is_api and "/lab/api/" not in path and status < 400


def rule_from(body: bytes) -> IdleRule:
    """Read the hub's answer; raises `ValueError` for anything else."""
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError("not an object")
    limit, warning = message.get("limit_seconds"), message.get("warning_seconds")
    if not (limit is None or (type(limit) is int and limit > 0)) or type(warning) is not int:
        raise ValueError("not a number of seconds")
    return IdleRule(limit, warning)


def kernels_of(manager: Any) -> Kernels:
    """Ask Jupyter's kernel manager, which hears its kernels whether a page does or not."""
    found = [manager.get_kernel(kernel_id) for kernel_id in manager.list_kernel_ids()]
    # A kernel that is just starting has neither.
    states = [getattr(kernel, "execution_state", None) for kernel in found]
    moments = [getattr(kernel, "last_activity", None) for kernel in found]
    return Kernels(
        are_busy="busy" in states,
        used_at=max((moment.timestamp() for moment in moments if moment), default=0.0),
    )


class IdleHandler(APIHandler):
    """Tells the page the idle time, and takes note that somebody is there."""

    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(self, watch: IdleWatch) -> None:
        """Take the session's watch."""
        self.watch = watch

    @web.authenticated
    async def get(self) -> None:
        """Give the last use, and the end that follows from it."""
        self.finish(json.dumps(self.watch.tell()))

    @web.authenticated
    async def post(self) -> None:
        """Note that somebody is there, and give the same."""
        self.watch.keep()
        self.finish(json.dumps(self.watch.tell()))


def routes(base_url: str, watch: IdleWatch) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/idle"), IdleHandler, {"watch": watch})]
