"""The reconciliation plan: which jobs to cancel and which interrupted starts to continue."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownSession:
    """A session as the hub's records have it."""

    username: str
    server_name: str
    """Empty for the user's default server."""
    session_id: str
    job_id: int | None
    is_interrupted: bool
    """Its start did not come to its end, and nobody is at it."""


@dataclass(frozen=True)
class Orphan:
    """A session of this hub in Slurm that belongs to no server."""

    username: str
    session_id: str
    job_ids: tuple[int, ...]


@dataclass(frozen=True)
class ReconciliationPlan:
    """Jobs to cancel, and starts to continue."""

    orphans: tuple[Orphan, ...]
    """To be cancelled."""
    interrupted: tuple[KnownSession, ...]
    """To be started again, which takes their jobs over."""


def users_to_ask(
    marked: Mapping[str, Iterable[int]], known: Iterable[KnownSession]
) -> frozenset[str]:
    """Return whose jobs are worth a closer look.

    ``marked`` are the jobs, by user, that look like this hub's; a job that the hub knows by its
    number needs no look.
    """
    known = list(known)
    accounted = {(session.username, session.job_id) for session in known}
    strange = {
        user for user, jobs in marked.items() if any((user, job) not in accounted for job in jobs)
    }
    return frozenset(strange | {session.username for session in known if session.is_interrupted})


def ownerless(
    seen: Mapping[str, Mapping[int, str]], known: Iterable[KnownSession]
) -> tuple[Orphan, ...]:
    """Return which of the sessions that were seen belong to no server, a job each.

    While the directory does not answer, nobody's name is to be trusted: a session that any server
    has is left alone.
    """
    ours = {session.session_id for session in known}
    return tuple(
        Orphan(username, session_id, (job_id,))
        for username, jobs in sorted(seen.items())
        for job_id, session_id in sorted(jobs.items())
        if session_id not in ours
    )


def plan(
    listed: Mapping[str, Mapping[int, str]], known: Iterable[KnownSession]
) -> ReconciliationPlan:
    """Compare.

    ``listed`` has, by user, the jobs that carry this hub's mark and their sessions. ``known`` must
    be younger than it: a start saves its session before it submits, so whatever is listed and still
    unknown afterwards belongs to nobody.
    """
    known = list(known)
    ours = {(session.username, session.session_id) for session in known}
    strays: dict[tuple[str, str], list[int]] = {}
    alive: set[tuple[str, str]] = set()
    for username, jobs in listed.items():
        for job_id, session_id in jobs.items():
            if (username, session_id) in ours:
                alive.add((username, session_id))
            else:
                strays.setdefault((username, session_id), []).append(job_id)
    return ReconciliationPlan(
        tuple(
            Orphan(username, session_id, tuple(sorted(job_ids)))
            for (username, session_id), job_ids in sorted(strays.items())
        ),
        tuple(
            session
            for session in known
            if session.is_interrupted and (session.username, session.session_id) in alive
        ),
    )
