"""The generated answers of a large cluster are such as the portal reads."""

import pytest

from benchmarks.portal import large_cluster
from jupyterhub_gpu_slurm.slurm import parsing, queue


@pytest.fixture(scope="module")
def nodes() -> str:
    return "\n".join(large_cluster.node_lines(8))


def test_three_quarters_of_the_gpus_are_taken(nodes: str) -> None:
    found = parsing.nodes(nodes)["sxm2"]
    assert len(found) == 8
    gpus = [one for node in found for one in node.gres if one.name == "gpu"]
    assert sum(one.count for one in gpus) == 32
    assert sum(one.used for one in gpus) == 24


def test_a_quarter_of_the_jobs_waits() -> None:
    text = "\n".join(large_cluster.job_lines(8, nodes=3)).replace("@WORD@", "w" * 32)
    jobs = queue.jobs(text, "w" * 32)
    assert [job.slurm_state for job in jobs].count("PENDING") == 2
    assert {job.nodes for job in jobs} == {(), ("node00001",), ("node00002",), ("node00003",)}
    assert all(job.gpus == 1 for job in jobs)
