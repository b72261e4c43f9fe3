import asyncio
from dataclasses import dataclass, field

from spawner.errors import CommandFailed
from spawner.slurm.records import Job, JobState
from spawner.slurm.watcher import JobWatcher


@dataclass
class FakeClient:
    """Stands in for Slurm where the number of questions and the failures must be exact."""

    known: dict[int, Job] = field(default_factory=dict)
    fails: bool = False
    questions: int = 0

    async def jobs(self, job_ids: frozenset[int]) -> dict[int, Job]:
        self.questions += 1
        await asyncio.sleep(0)
        if self.fails:
            raise CommandFailed("no answer")
        return {job_id: job for job_id, job in self.known.items() if job_id in job_ids}


def watcher(client: FakeClient, interval: float = 60.0) -> JobWatcher:
    return JobWatcher(client, interval)  # type: ignore[arg-type]  # a stand-in


def test_many_who_ask_at_once_cost_one_question() -> None:
    client = FakeClient({number: Job(number, "RUNNING") for number in range(100)})

    async def ask() -> list[Job]:
        watch = watcher(client)
        for number in range(100):
            watch.watch(number)
        return list(await asyncio.gather(*(watch.job(number) for number in range(100))))

    jobs = asyncio.run(ask())
    assert all(job.state is JobState.RUNNING for job in jobs)
    assert client.questions == 1


def test_a_failed_query_keeps_the_session() -> None:
    client = FakeClient({1: Job(1, "RUNNING")})

    async def ask() -> list[JobState]:
        watch = watcher(client)
        states = [(await watch.job(1)).state]
        client.fails = True
        states.append((await watch.job(1, max_age=0)).state)
        client.fails = False
        states.append((await watch.job(1, max_age=0)).state)
        return states

    assert asyncio.run(ask()) == [JobState.RUNNING, JobState.UNKNOWN, JobState.RUNNING]


def test_a_job_that_slurm_does_not_know_is_gone() -> None:
    async def ask() -> Job:
        return await watcher(FakeClient()).job(1)

    assert asyncio.run(ask()).state is JobState.GONE


def test_a_new_job_is_asked_for_at_once() -> None:
    client = FakeClient({1: Job(1, "RUNNING"), 2: Job(2, "PENDING")})

    async def ask() -> Job:
        watch = watcher(client)
        await watch.job(1)
        return await watch.job(2)

    assert asyncio.run(ask()).state is JobState.PENDING


def test_a_forgotten_job_is_asked_for_anew() -> None:
    client = FakeClient({1: Job(1, "RUNNING")})

    async def ask() -> Job:
        watch = watcher(client)
        await watch.job(1)
        watch.forget(1)
        return await watch.job(1)

    assert asyncio.run(ask()).state is JobState.RUNNING
