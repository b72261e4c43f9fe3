import asyncio
from dataclasses import dataclass, field

import pytest

from jupyterhub_gpu_slurm.errors import AccountUnavailable, CommandTimedOut
from jupyterhub_gpu_slurm.reconciler.reconciliation import KnownSession
from jupyterhub_gpu_slurm.reconciler.rounds import Reconciler

A, B = "a" * 32, "b" * 32


@dataclass
class FakeSlurm:
    """Stands in for Slurm where the questions must be counted and the answers exact."""

    jobs: dict[str, dict[int, str]] = field(default_factory=dict)
    marked: dict[str, set[int]] | None = None
    silent: set[str] = field(default_factory=set)
    unmoved: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    cancelled: list[tuple[str, str]] = field(default_factory=list)
    deleted: dict[int, str] = field(default_factory=dict)
    """Jobs of accounts that are no more, for which squeue names nobody."""
    looked_at: list[int] = field(default_factory=list)
    ended: list[tuple[str, str, int]] = field(default_factory=list)
    operator: str = "slurm"

    async def marked_jobs(self, mark: str) -> dict[str, set[int]]:
        assert mark == "portal"
        if self.marked is not None:
            return self.marked
        return {user: set(jobs) for user, jobs in self.jobs.items()}

    async def sessions(self, username: str) -> dict[int, str]:
        self.asked.append(username)
        if username == "nobody":
            raise AccountUnavailable("not known")
        if username in self.silent:
            raise CommandTimedOut("no answer")
        return self.jobs.get(username, {})

    async def cancel(self, username: str, session: str) -> list[int]:
        self.cancelled.append((username, session))
        if username in self.unmoved:
            raise CommandTimedOut("no answer")
        return []

    async def session_of(self, job_id: int, mark: str) -> str | None:
        assert mark == "portal"
        self.looked_at.append(job_id)
        return self.deleted.get(job_id)

    async def end(self, username: str, session: str, job_id: int) -> list[int]:
        self.ended.append((username, session, job_id))
        return [job_id]


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
    reconciler = Reconciler(slurm, hub, "portal")  # type: ignore[arg-type]  # stand-ins
    asyncio.run(reconciler.round())


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


def test_an_interrupted_start_that_its_user_has_meanwhile_stopped_stays_stopped() -> None:
    there = [known(job_id=None, is_interrupted=True)]
    hub = FakeHub([there, there, []])
    one_round(FakeSlurm(marked={}, jobs={"user1": {7: A}}), hub)
    assert hub.started == []


def test_an_interrupted_start_without_a_job_is_left_to_its_user() -> None:
    hub = FakeHub([[known(is_interrupted=True)]])
    one_round(FakeSlurm(), hub)
    assert hub.started == []


def test_a_user_whose_jobs_cannot_be_seen_does_not_stop_the_round() -> None:
    slurm = FakeSlurm({"alice": {1: A}, "bob": {2: B}}, silent={"alice"})
    one_round(slurm, FakeHub([[]]))
    assert slurm.cancelled == [("bob", B)]


def test_in_some_rounds_every_strange_job_is_looked_at() -> None:
    users = {f"user{number}" for number in range(120)}
    slurm, hub = FakeSlurm({user: {number: A} for number, user in enumerate(users)}), FakeHub([[]])
    rounds = 0
    while set(slurm.asked) != users:
        one_round(slurm, hub)
        rounds += 1
        assert rounds < 100
        # A round takes no longer the more there are.
        assert len(slurm.asked) <= 50 * rounds


@pytest.mark.parametrize("name", ["#0", "-s", "root ALL", "../x", "", "x\ny"])
def test_a_forged_user_never_reaches_sudo(name: str) -> None:
    slurm = FakeSlurm(marked={name: {1}})
    one_round(slurm, FakeHub([[]]))
    assert slurm.asked == []


@pytest.mark.parametrize("name", ["nobody", "19018"])
def test_the_operator_ends_an_orphan_of_a_deleted_account(name: str) -> None:
    slurm = FakeSlurm(marked={name: {8}}, deleted={8: B})
    one_round(slurm, FakeHub([[known()]]))
    assert slurm.ended == [(name, B, 8)]


def test_while_the_directory_is_silent_no_session_that_a_server_has_is_ended() -> None:
    # Then squeue names nobody for everybody's jobs.
    slurm = FakeSlurm(marked={"nobody": {7, 8}}, deleted={7: A, 8: B})
    one_round(slurm, FakeHub([[known(job_id=7), known(session_id=B, job_id=None)]]))
    assert slurm.ended == []
    assert slurm.looked_at == [8]


def test_a_session_that_starts_while_a_deleted_account_is_looked_at_is_no_orphan() -> None:
    slurm = FakeSlurm(marked={"nobody": {8}}, deleted={8: B})
    one_round(slurm, FakeHub([[], [known(session_id=B, job_id=None)]]))
    assert slurm.ended == []


def test_a_job_that_is_no_session_is_not_ended() -> None:
    slurm = FakeSlurm(marked={"nobody": {8}})
    one_round(slurm, FakeHub([[]]))
    assert slurm.ended == []


def test_without_an_operator_the_administrators_are_told(caplog: pytest.LogCaptureFixture) -> None:
    slurm = FakeSlurm(marked={"nobody": {8}}, deleted={8: B}, operator="")
    one_round(slurm, FakeHub([[]]))
    assert slurm.ended == []
    assert "Jobs 8 of nobody belong to no server: cancel them" in caplog.text


def test_an_orphan_that_cannot_be_cancelled_does_not_stop_the_round() -> None:
    slurm = FakeSlurm({"alice": {1: A}, "bob": {2: B}}, unmoved={"alice", "bob"})
    one_round(slurm, FakeHub([[]]))
    assert sorted(slurm.cancelled) == [("alice", A), ("bob", B)]
