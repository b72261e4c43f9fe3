import pytest

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition, queue_positions


def test_places_are_by_priority_in_each_partition_and_then_by_age() -> None:
    found = queue_positions(
        "12|100|sxm2|Priority\n9|300|sxm2|Resources\n11|100|sxm2|Priority\n13|900|shareq|Priority\n"
    )
    assert found == {
        9: QueuePosition(1, 3, "sxm2"),
        11: QueuePosition(2, 3, "sxm2"),
        12: QueuePosition(3, 3, "sxm2"),
        13: QueuePosition(1, 1, "shareq"),
    }


def test_a_job_for_two_partitions_has_its_better_place() -> None:
    found = queue_positions("7|5|a|Priority\n8|4|a|Priority\n8|4|b|Priority\n")
    assert found[8] == QueuePosition(1, 1, "b")


@pytest.mark.parametrize(
    "line",
    ["5|0|a|JobHeldUser", "5|99|a|Dependency", "5|99|a|BeginTime"],
)
def test_jobs_that_slurm_does_not_consider_stand_in_nobodys_way(line: str) -> None:
    assert queue_positions(f"{line}\n8|4|a|Priority\n") == {8: QueuePosition(1, 1, "a")}


def test_an_array_has_one_line() -> None:
    assert queue_positions("5_[1-40%2]|9|a|Priority\n8|4|a|Priority\n")[8].position == 2


def test_a_heterogeneous_job_has_a_line_for_each_part() -> None:
    found = queue_positions("13+0|9|a|Priority\n13+1|9|b|Priority\n8|4|a|Priority\n")
    assert found[13].position == 1
    assert found[8] == QueuePosition(2, 2, "a")


def test_an_empty_queue_has_no_places() -> None:
    assert queue_positions("") == {}


@pytest.mark.parametrize("text", ["squeue: error: x", "a|1|b|c", "1|N/A|b|c", "1|2|b"])
def test_what_is_no_queue_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        queue_positions(text)
