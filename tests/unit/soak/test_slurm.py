"""Slurm's answers, read without the portal's own code."""

from pathlib import Path

import pytest

from benchmarks.portal.soak import slurm
from benchmarks.portal.soak.slurm import ListedJob

DATA = Path(__file__).parents[1] / "data"
ALLOCATED = (DATA / "allocated_jobs_of_slurm_22.05.txt").read_text()


def test_running_jobs_have_the_gpus_that_slurm_names() -> None:
    found = {one.job_id: one.gpus for one in slurm.parsed_allocations(ALLOCATED)}
    two_nodes = {("node001", 0), ("node001", 1), ("node002", 0), ("node002", 1)}
    assert found == {"13": two_nodes, "14": {("node001", 2)}, "15": set()}


def test_the_messages_of_one_user_are_counted() -> None:
    shown = (DATA / "sdiag_by_user_of_slurm_22.05.txt").read_text()
    assert slurm.parsed_questions(shown, "jupyterhub-test") == 311
    assert slurm.parsed_questions(shown, "nobody") == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("node001", ["node001"]),
        ("node[001-003]", ["node001", "node002", "node003"]),
        ("a[08-10,12],b,c[1]", ["a08", "a09", "a10", "a12", "b", "c1"]),
    ],
)
def test_a_list_of_nodes_is_read(words: str, expected: list[str]) -> None:
    assert list(slurm.hosts(words)) == expected


@pytest.mark.parametrize(("state", "is_over"), [("RUNNING", False), ("COMPLETING", True)])
def test_a_job_that_slurm_ends_is_over(state: str, is_over: bool) -> None:
    assert ListedJob("1", "anna", state, "portal-anna").is_over is is_over
