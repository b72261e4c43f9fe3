import asyncio
from dataclasses import dataclass, field

import pytest

from portal.keeper.rounds import Keeper
from spawner.errors import CommandTimedOut
from spawner.reconciliation import KnownSession

A, B = "a" * 32, "b" * 32


@dataclass
class FakeSlurm:
    """Stands in for Slurm where the questions must be counted and the answers exact."""

    jobs: dict[str, dict[int, str]] = field(default_factory=dict)
    marked: dict[str, set[int]] | None = None
    silent: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    cancelled: list[tuple[str, str]] = field(default_factory=list)

    async def marked_jobs(self, mark: str) -> dict[str, set[int]]:
        assert mark == "portal"
        if self.marked is not None:
            return self.marked
        return {user: set(jobs) for user, jobs in self.jobs.items()}

    async def sessions(self, username: str) -> dict[int, str]:
        self.asked.append(username)
        if username in self.silent:
            raise CommandTimedOut("no answer")
        return self.jobs.get(username, {})

    async def cancel(self, username: str, session: str) -> list[int]:
        self.cancelled.append((username, session))
        return []


@dataclass
class FakeHub:
    """Stands in for the hub: what it knows at each question, the last one from then on."""

    answers: list[list[KnownSession]]
    started: list[tuple[str, str]] = field(default_factory=list)

    async def sessions(self) -> list[KnownSession]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def start(self, username: str, server_name: str) -> None:
        self.started.append((username, server_name))


def one_round(slurm: FakeSlurm, hub: FakeHub) -> None:
    asyncio.run(Keeper(slurm, hub, "portal").round())  # type: ignore[arg-type]  # stand-ins


def known(
    session_id: str = A, job_id: int | None = 7, is_interrupted: bool = False
) -> KnownSession:
    return KnownSession("user1", "", session_id, job_id, is_interrupted)


def test_nobody_is_asked_while_all_is_accounted_for() -> None:
    slurm = FakeSlurm({"user1": {7: A}})
    one_round(slurm, FakeHub([[known()]]))
    assert slurm.asked == []
    assert slurm.cancelled == []


def test_an_orphan_is_cancelled() -> None:
    slurm = FakeSlurm({"user1": {7: A, 8: B}})
    one_round(slurm, FakeHub([[known()]]))
    assert slurm.cancelled == [("user1", B)]


def test_a_session_that_starts_while_slurm_is_asked_is_no_orphan() -> None:
    slurm = FakeSlurm({"user1": {7: A}})
    one_round(slurm, FakeHub([[], [known(job_id=None)]]))
    assert slurm.cancelled == []


def test_an_interrupted_start_is_taken_up_once_its_job_is_seen() -> None:
    hub = FakeHub([[known(job_id=None, is_interrupted=True)]])
    one_round(FakeSlurm(marked={}, jobs={"user1": {7: A}}), hub)
    assert hub.started == [("user1", "")]


def test_an_interrupted_start_without_a_job_is_left_to_its_user() -> None:
    hub = FakeHub([[known(is_interrupted=True)]])
    one_round(FakeSlurm(), hub)
    assert hub.started == []


def test_a_user_whose_jobs_cannot_be_seen_does_not_stop_the_round() -> None:
    slurm = FakeSlurm({"alice": {1: A}, "bob": {2: B}}, silent={"alice"})
    one_round(slurm, FakeHub([[]]))
    assert slurm.cancelled == [("bob", B)]


@pytest.mark.parametrize("name", ["#0", "-s", "root ALL", "../x", "", "x\ny"])
def test_a_forged_user_never_reaches_sudo(name: str) -> None:
    slurm = FakeSlurm(marked={name: {1}})
    one_round(slurm, FakeHub([[]]))
    assert slurm.asked == []
