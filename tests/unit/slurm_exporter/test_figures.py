"""What Prometheus is told of Slurm."""

from pathlib import Path

import pytest

from dsportal.slurm_exporter import scheduler
from dsportal.slurm_exporter.figures import Answer, Figures
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Node, Partition, QueuedJob

DATA = Path(__file__).parents[1] / "data"
SDIAG = (DATA / "sdiag_of_slurm_22.05.txt").read_text(encoding="utf-8")


def node(name: str, state: str, used: int, *, is_up: bool = True) -> Node:
    return Node(name, name, (Gres("gpu", "v100", 4, used),), 40, 1024, is_up, 8, 512, state)


def job(partition: str, state: str, gpus: int, label: str = "1") -> QueuedJob:
    return QueuedJob(1, label, state, "eve", partition, (), gpus, None, None, None, None, "eve's")


NODES = (
    node("n1", "MIXED", 3),
    node("n2", "IDLE+DRAIN", 1, is_up=False),
    node("n3", "DOWN*", 0, is_up=False),
    node("n4", "IDLE", 0),
)
CLUSTER = Cluster(
    (
        Partition("a", True, True, None, None, NODES),
        Partition("b", False, True, None, None, NODES[:1]),
    )
)
JOBS = (
    job("a", "RUNNING", 3),
    job("a", "PENDING", 4),
    job("b", "PENDING", 2),
    job("a", "PENDING", 0),
)
ANSWER = Answer(CLUSTER, JOBS, scheduler.read(SDIAG))


def samples(answer: Answer | None) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        family.name: {(*one.labels.values(),): one.value for one in family.samples}
        for family in Figures(answer).collect()
    }


def test_nodes_and_gpus_are_counted_by_their_state() -> None:
    found = samples(ANSWER)
    # None of what rules look back at is 0, too.
    none = {("fail",): 0, ("inval",): 0, ("unknown",): 0}
    there = {("mixed",): 1, ("drained",): 1, ("down",): 1, ("idle",): 1}
    assert found["slurm_nodes"] == {**there, **none}
    gpus = found["slurm_partition_gpus"]
    assert {key[1]: value for key, value in gpus.items() if key[0] == "a"} == {
        "free": 5,
        "held": 4,
        "unavailable": 7,
    }
    assert gpus["b", "held"] == 3
    assert found["slurm_node_gpus"]["n2", "unavailable"] == 3
    assert found["slurm_node_memory_held_bytes"]["n1",] == 512 * 2**20


@pytest.mark.parametrize(
    ("state", "saves"),
    [
        ("IDLE+CLOUD+POWERED_DOWN", 1),
        ("IDLE+CLOUD+POWERING_DOWN", 1),
        ("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", 1),
        ("MIXED+CLOUD+POWER_DOWN", 0),
        ("DOWN+CLOUD+NOT_RESPONDING", 0),
    ],
)
def test_a_node_that_is_turned_off_to_save_power_is_told(state: str, saves: int) -> None:
    part = Partition("a", True, True, None, None, (node("n", state, 0),))
    found = samples(Answer(Cluster((part,)), (), scheduler.read("")))
    assert found["slurm_node_power_saving"] == {("n",): saves}


def test_nobody_can_have_the_gpus_of_a_closed_partition() -> None:
    closed = Partition("closed", False, False, None, None, NODES[3:])
    found = samples(Answer(Cluster((closed,)), (), scheduler.read("")))
    unavailable = {"free": 0, "held": 0, "unavailable": 4}
    assert found["slurm_partition_gpus"] == {
        ("closed", state): count for state, count in unavailable.items()
    }
    assert found["slurm_node_gpus"] == {
        ("n4", state): count for state, count in unavailable.items()
    }
    both = Cluster((Partition("open", True, True, None, None, NODES[3:]), closed))
    found = samples(Answer(both, (), scheduler.read("")))
    assert found["slurm_partition_gpus"]["open", "free"] == 4
    assert found["slurm_partition_gpus"]["closed", "free"] == 0
    assert found["slurm_node_gpus"]["n4", "free"] == 4


def test_jobs_are_counted_and_nobody_is_named() -> None:
    found = samples(ANSWER)
    assert found["slurm_jobs"] == {
        ("a", "running"): 1,
        ("a", "pending"): 2,
        ("b", "pending"): 1,
    }
    assert found["slurm_gpus_waited_for"] == {("a",): 4, ("b",): 2}
    assert "eve" not in str(found)


def test_a_list_of_partitions_is_no_partition() -> None:
    jobs = (job("a,b", "PENDING", 2), job("b,a", "PENDING", 1), job("b,a,b", "PENDING", 1))
    found = samples(Answer(CLUSTER, jobs, scheduler.read("")))
    assert found["slurm_jobs"] == {("a", "pending"): 1, ("b", "pending"): 2}
    assert found["slurm_gpus_waited_for"] == {("a",): 2, ("b",): 2}


@pytest.mark.parametrize(
    ("label", "tasks"),
    [
        ("12", 1),
        ("12_3", 1),
        ("12_[4]", 1),
        ("12_[1-100%4]", 100),
        ("12_[1,3-5]", 4),
        ("12_[0-9:3]", 4),
        ("12_[1,3,...]", 2),
        ("12_[1,3,12", 3),
    ],
)
def test_each_task_of_an_array_that_waits_is_a_job(label: str, tasks: int) -> None:
    found = samples(Answer(CLUSTER, [job("a", "PENDING", 2, label)], scheduler.read(SDIAG)))
    assert found["slurm_jobs"] == {("a", "pending"): tasks}
    assert found["slurm_gpus_waited_for"] == {("a",): 2 * tasks}


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("IDLE*", "down"),
        ("IDLE+NOT_RESPONDING", "down"),
        ("IDLE+INVALID_REG", "inval"),
        ("MIXED+NOT_RESPONDING+DRAIN", "drained"),
        ("IDLE+CLOUD+POWERED_DOWN", "idle"),
        # One that boots for a job, and one that did not come up in time (both of Slurm 21.08).
        ("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP", "mixed"),
        ("DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING", "down"),
        ("IDLE+MAINTENANCE", "maint"),
        ("IDLE+MAINTENANCE+RESERVED", "maint"),
        ("IDLE+RESERVED", "reserved"),
        ("ALLOCATED+MAINTENANCE", "allocated"),
        ("DOWN+MAINTENANCE", "down"),
        ("IDLE+PLANNED", "idle"),
    ],
)
def test_a_node_that_slurm_does_not_reach_or_take_is_not_idle(state: str, word: str) -> None:
    cluster = Cluster((Partition("a", True, True, None, None, (node("n1", state, 0),)),))
    found = samples(Answer(cluster, (), scheduler.read("")))["slurm_nodes"]
    assert {state: count for state, count in found.items() if count} == {(word,): 1}


def test_a_slurm_that_does_not_answer_has_no_figures() -> None:
    assert samples(None) == {"slurm_up": {(): 0.0}}


def test_the_scheduler_is_read_from_its_own_sections() -> None:
    found = scheduler.read(SDIAG)
    assert found.server_threads is not None
    assert found.last_cycle_seconds != found.backfill_last_cycle_seconds
    assert scheduler.read("") == scheduler.Scheduler(*[None] * 7)
