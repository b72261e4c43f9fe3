"""What a real Slurm 24.11.5 printed, and what all that ask it make of that.

Printed on three hosts with Debian 13, set up as in ``tests/site``: two nodes with GPUs of a type,
one of them drained for a reason that looks like Slurm's own words; jobs of two users that run,
wait, failed, were killed and cancelled, one with a name of two lines. Of squeue's JSON only what
is read is kept, of its answer about jobs those that are no arrays; the kernel's name is shortened.
"""

from datetime import timedelta
from pathlib import Path

from dsportal.session.jobs.slurm import jobs_from
from dsportal.slurm_exporter import scheduler
from jupyterhub_gpu_slurm.slurm import accounting, parsing, queue
from jupyterhub_gpu_slurm.slurm.records import GpuAllocation, JobState

DATA = Path(__file__).parent / "data/slurm_24.11"
WORD = "MARK"


def printed(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_nodes_have_their_gpus_and_what_is_free_of_them() -> None:
    nodes = parsing.nodes(printed("nodes.txt"))
    (batch,) = parsing.cluster(nodes, parsing.partitions(printed("partitions.txt"))).partitions
    assert (batch.name, batch.is_default, batch.max_time) == ("batch", True, timedelta(days=2))
    found = {node.name: (node.gpus(), node.gpus_free(), node.gpus_in_use) for node in batch.nodes}
    assert found == {
        "compute1": (4, 2, frozenset({0, 1})),
        # Drained: its fourth GPU is no new job's.
        "compute2": (4, 0, frozenset({0, 1, 2})),
    }
    drained = batch.nodes[1]
    assert (drained.state, drained.is_up) == ("MIXED+DRAIN", False)
    assert (drained.reason or "").startswith("fan: State=IDLE Gres=gpu:9")
    assert (drained.cores_used, drained.memory_used_mb, drained.address) == (1, 1000, "10.77.0.12")


def test_the_queue_is_read_whatever_jobs_are_called() -> None:
    jobs = {job.label: job for job in queue.jobs(printed("queue.txt"), WORD)}
    assert list(jobs) == ["9", "5_[2-4%1]", "6", "1", "2", "5_1"]
    assert {label: job.gpus for label, job in jobs.items()} == {
        **{"9": 8, "5_[2-4%1]": 0, "6": 1},
        **{"1": 2, "2": 3, "5_1": 0},
    }
    assert (jobs["2"].user, jobs["2"].nodes, jobs["2"].name) == (
        "user2",
        ("compute2",),
        "two",
    )
    assert jobs["6"].reason == "JobHeldUser"


def test_which_gpus_jobs_hold_is_known_by_number() -> None:
    found = queue.gpu_allocations(printed("allocations.json"))
    assert {job: shares for job, shares in found.items() if shares} == {
        1: (GpuAllocation(2, frozenset({0, 1})),),
        2: (GpuAllocation(3, frozenset({0, 1, 2})),),
    }


def test_a_sessions_job_is_followed_to_its_end() -> None:
    jobs = parsing.jobs(printed("jobs.txt"))
    assert jobs[1].state is JobState.RUNNING
    assert jobs[6].state is JobState.PENDING
    assert {number for number, job in jobs.items() if job.state.is_over} == {3, 4, 8}


def test_a_users_jobs_say_how_they_ended() -> None:
    jobs = {job.id: job for job in jobs_from(printed("own_jobs.txt"))}
    how = {label: (job.state, job.exit_code, job.signal) for label, job in jobs.items()}
    assert how["3"] == ("FAILED", 3, None)
    assert how["4"] == ("FAILED", None, 9)
    assert how["8"][0] == "CANCELLED"
    assert {label: job.gpus for label, job in jobs.items() if job.gpus} == {"9": 8, "6": 1, "1": 2}


def test_the_accounting_says_who_held_how_many_gpus() -> None:
    found = {job.job_id: (job.user, job.gpus) for job in accounting.read(printed("sacct.txt"))}
    # Those that waited, or ended in the second in which they began, held none.
    assert found == {1: ("user1", 2), 2: ("user2", 3), 7: ("user1", 0)}
    assert accounting.counts_gpus(printed("config.txt"))


def test_it_is_known_that_others_jobs_are_hidden() -> None:
    assert parsing.hides_jobs(printed("config.txt"))


def test_how_the_scheduler_is_can_be_read() -> None:
    found = scheduler.read(printed("sdiag.txt"))
    assert (found.server_threads, found.agent_queue) == (1, 0)
    assert found.last_cycle_seconds == 36e-6
    assert found.mean_cycle_seconds == 1815e-6
