"""A client of the cluster service: the user's jobs, and which GPUs are free.

It asks Slurm once for everybody. It is asked in the name of this session, at most once in a few
seconds however many pages are open, and only while one asks.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from dsportal.session import internal_tls
from dsportal.session.jobs.records import FreeGpus, UserJob, is_job_id
from jupyterhub_gpu_slurm.shared_answer import SharedAnswer

log = logging.getLogger(__name__)

T = TypeVar("T")

_JOBS_SECONDS = 4.0
_FREE_SECONDS = 14.0
_REQUEST_SECONDS = 5.0
# A service that cannot be reached is not waited for at each look.
_SILENT_SECONDS = 30.0


class NoView(Exception):
    """The service does not answer, or there is none."""


@dataclass(frozen=True)
class JobsSaid:
    """The user's jobs that are not over."""

    as_of: float
    jobs: tuple[UserJob, ...]


class ClusterService:
    """Asks the service of the cluster's view."""

    def __init__(
        self,
        url: str | None,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``url``: where the service listens, without its path; ``None`` where there is none."""
        self._url = url
        self._token = environment.get("JUPYTERHUB_API_TOKEN", "")
        self._is_heard = True
        self._jobs = SharedAnswer(
            self._ask_jobs, _JOBS_SECONDS, retry_seconds=_SILENT_SECONDS, now=now
        )
        self._free = SharedAnswer(
            self._ask_free, _FREE_SECONDS, retry_seconds=_SILENT_SECONDS, now=now
        )

    async def jobs(self) -> JobsSaid:
        """Return the user's jobs; raises `NoView`."""
        return await self._jobs.get()

    async def free(self) -> tuple[FreeGpus, ...]:
        """Return which GPUs are free; raises `NoView`."""
        return await self._free.get()

    async def _ask_jobs(self) -> JobsSaid:
        return await self._read("jobs", jobs_from, "?own=true")

    async def _ask_free(self) -> tuple[FreeGpus, ...]:
        return await self._read("cluster", free_from)

    async def _read(self, what: str, read: Callable[[Any], T], query: str = "") -> T:
        if self._url is None:
            raise NoView("no service is set")
        request = HTTPRequest(
            f"{self._url.rstrip('/')}/services/cluster/api/v1/{what}{query}",
            headers={"Authorization": f"token {self._token}"},
            connect_timeout=_REQUEST_SECONDS,
            request_timeout=_REQUEST_SECONDS,
            # A page for people to log in is no answer.
            follow_redirects=False,
            ssl_options=internal_tls.client_context(),
        )
        try:
            answer = await AsyncHTTPClient().fetch(request)
            said = read(json.loads(answer.body))
        except (HTTPClientError, OSError, ValueError, LookupError, TypeError) as error:
            if self._is_heard:
                log.warning("The cluster's view does not answer (%s): %r", what, error)
            self._is_heard = False
            raise NoView(str(error)) from error
        self._is_heard = True
        return said


def jobs_from(message: Any) -> JobsSaid:
    """Read the service's jobs; raises ValueError, LookupError or TypeError for anything else."""
    mine = [job_from(job) for job in message["jobs"] if job["is_mine"] is True]
    return JobsSaid(float(message["as_of"]), tuple(mine))


def job_from(said: Mapping[str, Any]) -> UserJob:
    """Read one job."""
    job_id = str(said["id"])
    if not is_job_id(job_id):
        raise ValueError(f"{job_id!r} is no job's number")
    return UserJob(
        id=job_id,
        state=str(said["state"]),
        name=_text(said.get("name")),
        reason=_text(said.get("reason")),
        partition=_text(said.get("partition")),
        gpus=None if said.get("gpus") is None else int(said["gpus"]),
        nodes=tuple(str(node) for node in said.get("nodes") or ()),
        is_session=said.get("is_session") is True,
        submitted=_moment(said.get("submitted")),
        started=_moment(said.get("started")),
        expected_start=_moment(said.get("expected_start")),
        ends=_moment(said.get("ends")),
    )


def free_from(message: Any) -> tuple[FreeGpus, ...]:
    """Read which GPUs are free; raises ValueError, LookupError or TypeError for anything else."""
    defaults = {row["name"] for row in message["partitions"] if row["is_default"] is True}
    found = free_gpus(message["nodes"])
    return tuple(
        replace(gpus, partitions=tuple(sorted(gpus.partitions, key=lambda n: n not in defaults)))
        for gpus in found
    )


def free_gpus(nodes: Sequence[Mapping[str, Any]]) -> tuple[FreeGpus, ...]:
    """Count the GPUs that are free, and that there are, by type; once for the same nodes."""
    members: dict[str, list[int]] = {}
    for at, node in enumerate(nodes):
        for partition in node["partitions"]:
            members.setdefault(str(partition), []).append(at)
    partitions: dict[tuple[int, ...], list[str]] = {}
    for partition, places in members.items():
        partitions.setdefault(tuple(places), []).append(partition)
    return tuple(
        FreeGpus(tuple(names), gpu_type, states.count("free"), len(states))
        for places, names in partitions.items()
        for gpu_type, states in _states_by_type(nodes[at] for at in places).items()
    )


def _states_by_type(nodes: Iterable[Mapping[str, Any]]) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for node in nodes:
        for gpu in node["gpus"]:
            found.setdefault(_text(gpu["type"]), []).append(str(gpu["state"]))
    return found


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _moment(value: Any) -> float | None:
    return None if value is None else float(value)
