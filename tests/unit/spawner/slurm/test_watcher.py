import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace

import pytest

from jupyterhub_gpu_slurm.errors import CommandFailed, SlurmError
from jupyterhub_gpu_slurm.slurm import watcher as watcher_module
from jupyterhub_gpu_slurm.slurm.records import Cluster, Job, JobState
from jupyterhub_gpu_slurm.slurm.watcher import ClusterWatcher, JobWatcher, PollIntervals
from tests.unit.loops import without_waiting


@dataclass
class FakeClient:
    """Stands in for Slurm where the number of questions and the failures must be exact."""

    known: dict[int, Job] = field(default_factory=dict)
    fails: bool = False
    unexpected: Exception | None = None
    seconds: float = 0.0
    questions: int = 0
    asked_at: list[float] = field(default_factory=list)
    asked_for: frozenset[int] = frozenset()
    known_otherwise: set[int] = field(default_factory=set)

    async def jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        self.questions += 1
        self.asked_at.append(asyncio.get_running_loop().time())
        self.asked_for = job_ids
        await asyncio.sleep(self.seconds)
        if self.fails:
            raise CommandFailed("no answer")
        if self.unexpected:
            raise self.unexpected
        return {job_id: job for job_id, job in self.known.items() if job_id in job_ids}

    async def knows(self, job_id: int) -> bool:
        return job_id in self.known_otherwise


PACE = PollIntervals(busy=0.02, quiet=60.0)


def watcher(client: FakeClient, pace: PollIntervals = PACE) -> JobWatcher:
    return JobWatcher(client, pace)  # type: ignore[arg-type]  # a stand-in


def test_many_who_ask_at_once_cost_one_question() -> None:
    client = FakeClient({number: Job(number, "RUNNING") for number in range(100)})

    async def ask() -> list[Job]:
        watch = watcher(client)
        return list(await asyncio.gather(*(watch.job(number) for number in range(100))))

    jobs = asyncio.run(ask())
    assert all(job.state is JobState.RUNNING for job in jobs)
    assert client.questions == 1


def test_many_jobs_that_are_new_cost_one_question() -> None:
    client = FakeClient({number: Job(number, "PENDING") for number in range(101)})

    async def ask() -> list[Job]:
        watch = watcher(client, PollIntervals(busy=0.2, quiet=60.0))
        await watch.job(100)
        return list(await asyncio.gather(*(watch.job(number) for number in range(100))))

    assert all(job.state is JobState.PENDING for job in asyncio.run(ask()))
    assert client.questions == 2


def test_however_many_stop_slurm_is_asked_no_more_often_than_the_pace() -> None:
    client = FakeClient({number: Job(number, "COMPLETING") for number in range(20)})
    pace = PollIntervals(busy=0.1, quiet=60.0)

    async def stop(watch: JobWatcher, job_id: int) -> None:
        await asyncio.sleep(job_id * 0.007)
        while (await watch.job(job_id, max_age=0)).state is not JobState.ENDED:
            await asyncio.sleep(0.02)
            if client.questions > 4:
                client.known[job_id] = Job(job_id, "CANCELLED")

    async def stop_all() -> None:
        watch = watcher(client, pace)
        await asyncio.gather(*(stop(watch, number) for number in range(20)))

    asyncio.run(stop_all())
    pauses = [later - earlier for earlier, later in pairwise(client.asked_at)]
    assert min(pauses) >= pace.busy
    assert client.questions <= 9


def test_who_is_in_a_hurry_does_not_wait_for_the_pace_and_others_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = FakeClient({1: Job(1, "PENDING"), 2: Job(2, "PENDING")}, seconds=0.01)

    async def ask() -> None:
        clock = SimpleNamespace(monotonic=asyncio.get_running_loop().time)
        monkeypatch.setattr(watcher_module, "time", clock)
        watch = watcher(client, PollIntervals(busy=0.6, hurried=0.1, quiet=60.0))
        await watch.job(1, max_age=0)
        # Many such cost one question.
        await asyncio.gather(*(watch.job(1, max_age=0, is_hurried=True) for _ in range(20)))
        await watch.job(2, max_age=0)

    with asyncio.Runner(loop_factory=without_waiting) as runner:
        runner.run(ask())
    first, hurried, other = client.asked_at
    assert (hurried - first, other - hurried) == pytest.approx((0.1, 0.6))


async def state_that_is_known(watch: JobWatcher, max_age: float) -> JobState:
    """Ask for job 1 until Slurm tells."""
    for _ in range(1000):
        state = (await watch.job(1, max_age=max_age)).state
        if state is not JobState.UNKNOWN:
            return state
        await asyncio.sleep(0.01)
    raise AssertionError("Slurm never told")


def test_a_failed_query_keeps_the_session() -> None:
    client = FakeClient({1: Job(1, "RUNNING")})

    async def ask() -> list[JobState]:
        watch = watcher(client)
        states = [(await watch.job(1)).state]
        client.fails = True
        states.append((await watch.job(1, max_age=0)).state)
        client.fails = False
        await state_that_is_known(watch, 0)
        return states

    assert asyncio.run(ask()) == [JobState.RUNNING, JobState.UNKNOWN]


def test_what_nobody_had_thought_of_is_no_answer_and_the_watcher_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = FakeClient({1: Job(1, "RUNNING")})

    async def ask() -> list[JobState]:
        watch = watcher(client)
        states = [(await watch.job(1)).state]
        client.unexpected = KeyError("fnord")
        states += [(await watch.job(1, max_age=0)).state, (await watch.job(1)).state]
        client.unexpected = None
        return [*states, await state_that_is_known(watch, 0)]

    assert asyncio.run(ask()) == [
        JobState.RUNNING,
        JobState.UNKNOWN,
        JobState.UNKNOWN,
        JobState.RUNNING,
    ]
    assert "KeyError: 'fnord'" in caplog.records[0].message


def test_slurm_that_does_not_answer_is_asked_less_and_less() -> None:
    client = FakeClient(fails=True)

    async def ask() -> None:
        watch = watcher(client, PollIntervals(busy=0.02, longest=0.2))
        while client.questions < 5:
            assert (await watch.job(1, max_age=0)).state is JobState.UNKNOWN
            await asyncio.sleep(0.001)

    asyncio.run(ask())
    pauses = [later - earlier for earlier, later in pairwise(client.asked_at)]
    # A pause that doubles, up to the longest.
    assert all(pause >= least for pause, least in zip(pauses, (0.04, 0.08, 0.16, 0.2), strict=True))


def test_who_asks_waits_no_longer_than_the_patience() -> None:
    client = FakeClient({1: Job(1, "RUNNING")}, seconds=30)

    async def ask() -> list[JobState]:
        watch = watcher(client, PollIntervals(patience=0.01))
        return [(await watch.job(1)).state for _ in range(3)]

    assert asyncio.run(ask()) == [JobState.UNKNOWN] * 3
    assert client.questions == 1


def test_an_answer_that_comes_late_is_used() -> None:
    client = FakeClient({1: Job(1, "RUNNING")}, seconds=0.05)

    async def ask() -> JobState:
        watch = watcher(client, PollIntervals(patience=0.01))
        return await state_that_is_known(watch, 60)

    assert asyncio.run(ask()) is JobState.RUNNING
    assert client.questions == 1


def test_a_job_that_slurm_twice_does_not_know_is_gone() -> None:
    client = FakeClient()

    async def ask() -> Job:
        return await watcher(client).job(1)

    assert asyncio.run(ask()).state is JobState.GONE
    assert client.questions == 2


def test_a_job_that_scontrol_knows_is_not_gone() -> None:
    client = FakeClient(known_otherwise={1})

    async def ask() -> Job:
        return await watcher(client).job(1)

    assert asyncio.run(ask()).state is JobState.UNKNOWN


def test_a_job_that_slurm_misses_once_is_not_gone() -> None:
    client = FakeClient()

    async def ask() -> Job:
        asking = asyncio.create_task(watcher(client).job(1))
        await asyncio.sleep(0.002)  # the first answer is there, the second not yet asked for
        assert client.questions == 1
        client.known[1] = Job(1, "RUNNING")
        return await asking

    assert asyncio.run(ask()).state is JobState.RUNNING


def test_a_new_job_is_asked_for_at_once() -> None:
    client = FakeClient({1: Job(1, "RUNNING"), 2: Job(2, "PENDING")})

    async def ask() -> Job:
        watch = watcher(client)
        await watch.job(1)
        return await watch.job(2)

    assert asyncio.run(ask()).state is JobState.PENDING


def test_a_forgotten_job_is_asked_for_no_more() -> None:
    client = FakeClient({number: Job(number, "RUNNING") for number in (1, 2)})

    async def ask() -> None:
        watch = watcher(client)
        await asyncio.gather(watch.job(1), watch.job(2))
        assert client.asked_for == {1, 2}
        watch.forget(1)
        await watch.job(2, max_age=0)

    asyncio.run(ask())
    assert client.asked_for == {2}


@pytest.mark.parametrize("has_others", [False, True], ids=["alone", "asked_without_it"])
def test_a_forgotten_job_is_asked_for_anew(has_others: bool) -> None:
    client = FakeClient({number: Job(number, "RUNNING") for number in (1, 2)})

    async def ask() -> JobState:
        watch = watcher(client)
        await watch.job(1)
        watch.forget(1)
        if has_others:
            await watch.job(2)
            assert client.asked_for == {2}
        client.known[1] = Job(1, "CANCELLED")
        async with asyncio.timeout(5):
            # Others' answer is new enough, but says nothing of this job.
            return (await watch.job(1, max_age=None if has_others else 0)).state

    assert asyncio.run(ask()) is JobState.ENDED
    assert client.asked_for == ({1, 2} if has_others else {1})


@pytest.mark.parametrize("max_age", [None, 0], ids=["any_answer", "a_new_answer"])
def test_who_waits_is_told_of_a_job_that_another_forgets_meanwhile(max_age: float | None) -> None:
    client = FakeClient({1: Job(1, "CANCELLED")}, seconds=0.05)

    async def ask() -> JobState:
        watch = watcher(client)

        async def ask_and_forget() -> None:
            await watch.job(1)
            watch.forget(1)

        async def ask_later() -> JobState:
            await asyncio.sleep(0.02)
            return (await watch.job(1, max_age=max_age)).state

        async with asyncio.timeout(5):
            _, state = await asyncio.gather(ask_and_forget(), ask_later())
        return state

    assert asyncio.run(ask()) is JobState.ENDED
    assert client.questions == (1 if max_age is None else 2)


@dataclass
class FakeNodes:
    """Stands in for Slurm where it must fail or be slow at a given moment."""

    fails: bool = False
    unexpected: Exception | None = None
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    questions: int = 0

    async def cluster(self) -> Cluster:
        self.questions += 1
        await self.answers.wait()
        if self.fails:
            raise CommandFailed("no answer")
        if self.unexpected:
            raise self.unexpected
        return Cluster(())


def nodes(client: FakeNodes, interval: float, patience: float = 0.01) -> ClusterWatcher:
    client.answers.set()
    return ClusterWatcher(client, interval, patience)  # type: ignore[arg-type]  # a stand-in


def test_many_viewers_cost_one_look_at_the_nodes() -> None:
    client = FakeNodes()

    async def look() -> list[Cluster]:
        watch = nodes(client, interval=60)
        seen = await asyncio.gather(*(watch.cluster() for _ in range(20)))
        return [*seen, await watch.cluster()]

    assert len(asyncio.run(look())) == 21
    assert client.questions == 1


def test_a_slow_look_at_the_nodes_shows_what_was_seen_last() -> None:
    client = FakeNodes()

    async def look() -> tuple[Cluster, Cluster, Cluster]:
        watch = nodes(client, interval=0)
        first = await watch.cluster()
        client.answers.clear()
        meanwhile = await watch.cluster()
        await watch.cluster()
        client.answers.set()
        return first, meanwhile, await watch.cluster()

    first, meanwhile, last = asyncio.run(look())
    assert meanwhile is first
    assert last is not first
    assert client.questions == 2


def test_a_failed_look_at_the_nodes_shows_what_was_seen_last() -> None:
    client = FakeNodes()

    async def look() -> bool:
        watch = nodes(client, interval=0)
        first = await watch.cluster()
        client.fails = True
        return await watch.cluster() is first

    assert asyncio.run(look())


def test_nodes_that_were_never_seen_are_an_error_and_asked_for_again() -> None:
    client = FakeNodes(fails=True)

    async def look() -> Cluster:
        watch = nodes(client, interval=60)
        with pytest.raises(SlurmError):
            await watch.cluster()
        client.fails = False
        return await watch.cluster()

    assert asyncio.run(look()) == Cluster(())
    assert client.questions == 2


async def until_answered() -> None:
    """Let the question run to its end: the stand-in waits for nothing."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_look_waits_for_nothing_and_asks_once_in_an_interval() -> None:
    client = FakeNodes()

    async def look() -> list[bool | None]:
        watch = nodes(client, interval=60)
        seen = [watch.is_answering]
        for _ in range(3):
            watch.look()
        await until_answered()
        watch.look()
        return [*seen, watch.is_answering]

    assert asyncio.run(look()) == [None, True]
    assert client.questions == 1


def test_what_was_seen_before_a_failure_is_not_what_is() -> None:
    client = FakeNodes()

    async def look() -> list[tuple[bool | None, bool]]:
        watch = nodes(client, interval=0)
        seen = []
        for client.fails in (False, True, False):
            watch.look()
            await until_answered()
            seen.append((watch.is_answering, watch.last is not None))
        return seen

    assert asyncio.run(look()) == [(True, True), (False, False), (True, True)]


def test_a_failure_that_goes_on_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeNodes()

    async def look() -> None:
        watch = nodes(client, interval=0)
        await watch.cluster()
        client.fails = True
        for _ in range(3):
            await watch.cluster()

    asyncio.run(look())
    assert len(caplog.records) == 1


def test_nodes_are_old_after_what_nobody_had_thought_of() -> None:
    client = FakeNodes()

    async def look() -> list[bool]:
        watch = nodes(client, interval=0)
        seen = []
        for client.unexpected in (None, ValueError("fnord"), None):
            await watch.cluster()
            seen.append(watch.last is not None)
        return seen

    assert asyncio.run(look()) == [True, False, True]
