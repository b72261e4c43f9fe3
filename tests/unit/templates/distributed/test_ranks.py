"""How the processes of a training find their places and each other."""

import threading

import pytest
from ranks import Rank, cores_of_task, free_port, meet, own_gpu, place, port_of

STEP = {
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_LAUNCH_NODE_IPADDR": "10.1.2.3",
}


def test_a_process_finds_its_place_by_slurms_variables() -> None:
    here = place(STEP)
    assert (here.rank, here.ranks, here.local_rank, here.local_ranks) == (5, 8, 1, 4)
    assert here.node == 1
    assert here.address == "10.1.2.3"
    assert 61_000 <= here.port < 65_000


@pytest.mark.parametrize(
    ("allowed", "asked", "cores"),
    [
        pytest.param(32, "8", 8, id="a node's tasks are not bound"),
        pytest.param(8, "8", 8, id="each task is bound to its own"),
        pytest.param(2, "8", 2, id="a node that has fewer"),
        pytest.param(32, None, 8, id="nobody said how many"),
        pytest.param(2, None, 1, id="more tasks than cores"),
    ],
)
def test_a_process_has_its_own_cores_however_slurm_binds_it(
    allowed: int, asked: str | None, cores: int
) -> None:
    more = {} if asked is None else {"SLURM_CPUS_PER_TASK": asked}
    assert cores_of_task(allowed, place(STEP).local_ranks, STEP | more) == cores


def test_a_batch_script_without_srun_is_one_process() -> None:
    names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID")
    assert place({name: STEP[name] for name in names}).ranks == 1


def test_all_learn_where_all_are_whoever_comes_first() -> None:
    port = free_port()
    places = [Rank(rank, 3, 0, 1, rank, "127.0.0.1", port) for rank in range(3)]
    found: dict[int, list[str]] = {}

    def come(here: Rank) -> None:
        found[here.rank] = meet(here, 1000 + here.rank)

    threads = [threading.Thread(target=come, args=(here,)) for here in reversed(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    everybody = ["127.0.0.1:1000", "127.0.0.1:1001", "127.0.0.1:1002"]
    assert found == {rank: everybody for rank in range(3)}


def test_the_first_does_not_wait_for_ever() -> None:
    with pytest.raises(TimeoutError):
        meet(Rank(0, 2, 0, 1, 0, "127.0.0.1", free_port()), 1000, patience_seconds=0.1)


def test_the_others_do_not_wait_for_ever() -> None:
    with pytest.raises(ConnectionRefusedError):
        meet(Rank(1, 2, 0, 1, 1, "127.0.0.1", free_port()), 1000, patience_seconds=0.1)


def test_jobs_beside_each_other_never_listen_on_the_same_port() -> None:
    ports = [{port_of(job, step) for step in range(200)} for job in range(1000, 1065)]
    assert len(set().union(*ports)) == sum(map(len, ports))
    assert all(61_000 <= port < 65_536 for those in ports for port in those)


def test_jobs_that_run_long_meet_no_later_one_on_their_port() -> None:
    assert len({port_of(job, 0) for job in range(7, 4_400)}) == 4_393


@pytest.mark.parametrize(
    ("seen", "gpu"), [("0,1,2,3", 3), ("3", 0), ("GPU-5a,GPU-5b", 1), ("", 3), (None, 3)]
)
def test_a_task_that_sees_one_gpu_takes_that(seen: str | None, gpu: int) -> None:
    assert own_gpu(3, {} if seen is None else {"CUDA_VISIBLE_DEVICES": seen}) == gpu
