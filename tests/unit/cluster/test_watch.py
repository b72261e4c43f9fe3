"""How often Slurm is asked, and what is shown when it does not answer."""

import asyncio
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from dsportal.cluster import watch as watch_module
from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.watch import Watch
from dsportal.cluster.words import JOBS_HIDDEN, SLURM_SILENT
from jupyterhub_gpu_slurm.errors import CommandFailed, SlurmError
from jupyterhub_gpu_slurm.slurm.records import Cluster, GpuAllocation, QueuedJob
from tests.unit.cluster.snapshots import ADAS, SHARES, snapshot
from tests.unit.loops import without_waiting


@dataclass
class FakeClient:
    """Stands in for Slurm where the number of questions and the failures must be exact."""

    fails: bool = False
    unexpected: Exception | None = None
    has_json: bool = True
    hides_jobs: bool = False
    asked: dict[str, int] = field(default_factory=dict)

    async def cluster(self) -> Cluster:
        self._count("cluster")
        (first, *rest) = snapshot().cluster.partitions
        busy = tuple(replace(node, cores_used=8) for node in first.nodes)
        return Cluster((replace(first, nodes=busy), *rest))

    async def queue(self) -> tuple[QueuedJob, ...]:
        self._count("queue")
        return () if self.hides_jobs else (ADAS,)

    async def gpu_allocations(self) -> dict[int, tuple[GpuAllocation, ...]]:
        self._count("gpu_allocations")
        if not self.has_json:
            raise CommandFailed("no json")
        return SHARES

    def _count(self, what: str) -> None:
        self.asked[what] = self.asked.get(what, 0) + 1
        if self.fails:
            raise CommandFailed("no answer")
        if self.unexpected:
            raise self.unexpected


def watch(client: FakeClient, interval: float = 60.0) -> Watch:
    return Watch(client, "portal", interval)  # type: ignore[arg-type]  # a stand-in


def test_hundreds_who_look_at_once_cost_one_round() -> None:
    client = FakeClient()

    async def look() -> list[SharedView]:
        shared = watch(client)
        return list(await asyncio.gather(*(shared.shared() for _ in range(500))))

    views = asyncio.run(look())
    assert client.asked == {"cluster": 1, "queue": 1, "gpu_allocations": 1}
    assert all(shared is views[0] for shared in views)


def test_nobody_who_looks_costs_nothing() -> None:
    client = FakeClient()

    async def leave() -> None:
        shared = watch(client, interval=0.01)
        async for _ in shared.views():
            break
        await asyncio.sleep(0.1)

    asyncio.run(leave())
    assert client.asked["queue"] == 1


def test_all_who_follow_get_each_picture_of_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeClient()

    async def follow(shared: Watch) -> list[SharedView]:
        got: list[SharedView] = []
        async for view in shared.views():
            if view is not None:
                got.append(view)
            if len(got) == 3:
                return got
        raise AssertionError

    async def all_follow() -> list[list[SharedView]]:
        clock = asyncio.get_running_loop().time
        monkeypatch.setattr(watch_module, "time", SimpleNamespace(monotonic=clock))
        shared = watch(client, interval=0.6)
        shared._answer._now = clock
        return list(await asyncio.gather(*(follow(shared) for _ in range(100))))

    with asyncio.Runner(loop_factory=without_waiting) as runner:
        got = runner.run(all_follow())
    assert client.asked["queue"] == 3
    assert all(views == got[0] for views in got)


def test_the_last_picture_stays_with_words_when_slurm_does_not_answer() -> None:
    client = FakeClient()

    async def look() -> tuple[SharedView, SharedView, SharedView]:
        shared = watch(client, interval=0.0)
        before = await shared.shared()
        client.fails = True
        during = await shared.shared()
        client.fails = False
        return before, during, await shared.shared()

    before, during, after = asyncio.run(look())
    assert during.snapshot is before.snapshot
    assert during.trouble == SLURM_SILENT
    assert after.trouble is None


def test_a_slurm_that_hides_jobs_is_said_to_and_a_moment_without_is_not() -> None:
    client = FakeClient(hides_jobs=True)

    async def look() -> list[str | None]:
        shared = watch(client, interval=0.0)
        seen = [(await shared.shared()).jobs_trouble for _ in range(3)]
        client.hides_jobs = False
        seen.append((await shared.shared()).jobs_trouble)
        # As between two jobs: the next look finds cores in use, and no job yet.
        client.hides_jobs = True
        seen.append((await shared.shared()).jobs_trouble)
        return seen

    assert asyncio.run(look()) == [None, JOBS_HIDDEN, JOBS_HIDDEN, None, None]


def test_without_any_picture_the_failure_is_told() -> None:
    async def look() -> None:
        await watch(FakeClient(fails=True)).shared()

    with pytest.raises(SlurmError, match="no answer"):
        asyncio.run(look())


def test_who_follows_a_slurm_that_has_never_answered_wakes_nobody_to_ask_again() -> None:
    client = FakeClient(fails=True)

    async def follow(shared: Watch) -> None:
        views = shared.views()
        for _ in range(50):
            await anext(views)

    async def follow_for(seconds: float) -> None:
        shared = watch(client)
        following = []
        for _ in range(3):
            following.append(asyncio.create_task(follow(shared)))
            # Each comes when the one before has been told of the failure.
            await asyncio.sleep(1)
        await asyncio.sleep(seconds)
        for one in following:
            one.cancel()

    with asyncio.Runner(loop_factory=without_waiting) as runner:
        runner.run(follow_for(10))
    assert client.asked["queue"] == 1


def test_a_slurm_without_json_shows_the_cluster_and_is_not_asked_for_it_each_time() -> None:
    client = FakeClient(has_json=False)

    async def look() -> SharedView:
        shared = watch(client, interval=0.0)
        for _ in range(3):
            view = await shared.shared()
        return view

    assert asyncio.run(look()).snapshot.shares == {}
    assert client.asked == {"cluster": 3, "queue": 3, "gpu_allocations": 1}


def test_what_nobody_had_thought_of_makes_the_picture_old_and_the_watch_goes_on() -> None:
    client = FakeClient()

    async def look() -> list[bool]:
        shared = watch(client, interval=0)
        seen = []
        for client.unexpected in (None, KeyError("fnord"), None):
            seen.append((await shared.shared()).trouble is not None)
        return seen

    assert asyncio.run(look()) == [False, True, False]
