"""What Prometheus is told."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from traitlets.config import Application, Config

from jupyterhub_gpu_slurm import metrics
from jupyterhub_gpu_slurm.errors import CommandTimedOut, NoSuchJob
from jupyterhub_gpu_slurm.metrics import ClusterSample, Moment, SessionSample
from jupyterhub_gpu_slurm.registration import cluster_sample
from jupyterhub_gpu_slurm.session.idle import IdleReport
from jupyterhub_gpu_slurm.session.state import SessionState
from jupyterhub_gpu_slurm.slurm import launcher
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Job, Node, Partition
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from jupyterhub_gpu_slurm.traits import SpawnerTraits
from tests.unit.spawner.stand_in import spawner_of

READY = SessionState("a" * 32, gpus=2, is_ready=True)
RUNNING = Job(12, "RUNNING", start=datetime.now(UTC))


def told(*sessions: SessionSample, cluster: ClusterSample | None = None) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Moment(lambda: sessions, lambda: cluster))
    return registry


def test_sessions_and_their_gpus_are_counted_when_asked_for() -> None:
    registry = told(
        SessionSample("running", 2, "used"),
        SessionSample("running", 4, "idle"),
        SessionSample("waiting", 0, "unknown", waited_seconds=30),
        SessionSample("waiting", 0, "unknown", waited_seconds=90),
    )

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"gpu_spawner_{name}", labels)

    assert [value("sessions", state=state) for state in metrics.STATES] == [2, 0, 2, 0, 0]
    assert [value("session_gpus", use=use) for use in metrics.USES] == [2, 4, 0]
    assert value("session_longest_wait_seconds") == 90


def test_where_nothing_is_known_of_the_cluster_nothing_is_said() -> None:
    for cluster, up in ((None, None), (ClusterSample(False, {}), 0.0)):
        registry = told(cluster=cluster)
        assert registry.get_sample_value("gpu_spawner_slurm_up") == up
        gpus = [metric for metric in registry.collect() if metric.name.endswith("cluster_gpus")]
        assert [metric.samples for metric in gpus] == [[]]


def test_failures_of_each_of_the_launchers_verbs_are_known_from_the_start() -> None:
    assert set(metrics.LAUNCHER_VERBS) == {*launcher.VERBS, *launcher.OPERATOR_VERBS}


def test_a_failure_is_counted_and_its_time_too() -> None:
    time = "gpu_spawner_slurm_query_duration_seconds_count"
    failures = "gpu_spawner_slurm_query_failures_total"

    def counted() -> list[float]:
        """Say how many questions, and how many of them failed."""
        asked = {"program": "sacct"}
        labels = {time: asked, failures: {**asked, "reason": "slurm_timeout"}}
        return [REGISTRY.get_sample_value(name, each) or 0 for name, each in labels.items()]

    before = counted()
    with (
        pytest.raises(CommandTimedOut),
        metrics.timed(metrics.QUERY, metrics.QUERY_FAILURES, "sacct"),
    ):
        raise CommandTimedOut("no answer")
    assert counted() == [number + 1 for number in before]


def test_that_slurm_does_not_know_a_job_is_no_failure() -> None:
    with (
        pytest.raises(NoSuchJob),
        metrics.timed(metrics.QUERY, metrics.QUERY_FAILURES, "asked"),
    ):
        raise NoSuchJob("no such job")
    labels = {"program": "asked", "reason": "slurm_command"}
    assert REGISTRY.get_sample_value("gpu_spawner_slurm_query_failures_total", labels) is None


def node(name: str, *gres: Gres, is_up: bool = True) -> Node:
    return Node(name, "127.0.0.1", gres, 40, 384 * 1024, is_up)


def test_gpus_of_a_node_in_two_partitions_are_counted_once() -> None:
    nodes = (
        node("n1", Gres("gpu", "v100", 4, used=1)),
        node("n2", Gres("gpu", "v100", 4, used=1), is_up=False),
        node("n3", Gres("gpu", "a100", 8), Gres("shard", "a100", 80, used=2)),
        node("n4", Gres("gpu", None, 2)),
    )
    partitions = tuple(Partition(name, True, True, None, None, nodes) for name in "ab")
    assert Cluster(partitions).gpus_by_state() == {
        ("v100", "free"): 3,
        ("v100", "held"): 2,
        ("v100", "unavailable"): 3,
        ("a100", "free"): 6,
        ("a100", "held"): 2,
        ("a100", "unavailable"): 0,
        ("gpu", "free"): 2,
        ("gpu", "held"): 0,
        ("gpu", "unavailable"): 0,
    }


def test_gpus_are_free_only_where_a_partition_takes_jobs() -> None:
    alone = node("n1", Gres("gpu", "v100", 4, used=1))
    shared = node("n2", Gres("gpu", "a100", 2))
    closed = Partition("closed", False, False, None, None, (alone, shared))
    opened = Partition("opened", True, True, None, None, (shared,))
    assert Cluster((closed, opened)).gpus_by_state() == {
        ("v100", "free"): 0,
        ("v100", "held"): 1,
        ("v100", "unavailable"): 3,
        ("a100", "free"): 2,
        ("a100", "held"): 0,
        ("a100", "unavailable"): 0,
    }


@pytest.fixture
def session() -> Iterator[Any]:
    """The spawner of a session with two GPUs, in the queue."""
    with spawner_of("ada") as spawner:
        spawner.record.state = SessionState("a" * 32, gpus=2)
        yield spawner


def test_a_session_that_waits_holds_no_gpus(session: Any) -> None:
    # Since before this hub began, too.
    asked_at = (datetime.now(UTC) - timedelta(minutes=1)).timestamp()
    session.record.state = SessionState("a" * 32, gpus=2, asked_at=asked_at)
    sample = session.sample()
    assert (sample.state, sample.gpus) == ("waiting", 0)
    assert sample.waited_seconds >= 60


def test_one_whose_job_runs_holds_them(session: Any) -> None:
    session.reporter.note_job(RUNNING)
    assert session.sample() == SessionSample("starting", 2, "unknown")


def test_one_that_another_hub_started_holds_them(session: Any) -> None:
    session.record.state = READY
    assert session.sample() == SessionSample("running", 2, "unknown")


def test_one_that_is_stopped_holds_them_until_it_is_gone(session: Any) -> None:
    session.record.state, session._stop_pending = READY, True
    assert session.sample() == SessionSample("stopping", 2, "unknown")
    session.clear_state()
    assert session.sample() is None


def test_an_interrupted_start_is_called_so(session: Any) -> None:
    session.record.is_interrupted = True
    assert session.sample().state == "interrupted"


@pytest.mark.parametrize(("minutes", "use"), [(0, "used"), (29, "used"), (30, "idle")])
def test_gpus_are_idle_as_the_session_says(session: Any, minutes: int, use: str) -> None:
    session.record.state = READY
    idle = timedelta(minutes=minutes)
    session.idle_tracker.report = IdleReport(idle, datetime.now(UTC), limit=None)
    assert session.sample().use == use


def test_a_spawner_that_jupyterhub_has_let_go_of_does_not_count(session: Any) -> None:
    assert session.sample() is not None
    session.user.spawners.pop("")
    assert session.sample() is None
    # JupyterHub makes another, which does not bring the first one back.
    assert session.user.spawners[""] is not session
    assert session.sample() is None


def test_whoever_reads_the_metrics_has_slurm_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    nodes = SimpleNamespace(look=lambda: looks.append(1), is_answering=None, last=None)
    monkeypatch.setattr(SpawnerTraits, "_connection", SimpleNamespace(nodes=nodes))
    assert cluster_sample() is None
    nodes.is_answering = False
    assert cluster_sample() == ClusterSample(False, {})
    assert len(looks) == 2


def test_a_hub_that_has_met_no_user_knows_its_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hub(Application):
        spawner_class = GpuSlurmSpawner

    async def look() -> object:
        return cluster_sample()

    monkeypatch.setattr(SpawnerTraits, "_connection", None)
    hub = Hub.instance(config=Config({"GpuSlurmSpawner": {"slurm_bin_dir": "/no/such/folder"}}))
    try:
        assert asyncio.run(look()) is None
        assert hub.spawner_class._connection is not None
        assert hub.spawner_class._connection.client.bin_dir == "/no/such/folder"
    finally:
        Hub.clear_instance()
