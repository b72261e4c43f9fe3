"""A job with cgroups of version 2, as most machines have today: what confines and what reads it.

Slurm and the kernel are real (``tests.uml``), its cgroup.conf is the role's. Devices that every
kernel has stand in the place of GPUs, as this machine has none.
"""

import re
from typing import Any

import pytest

from tests import roles, uml
from tests.instance import ROOT

Found = dict[str, Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What was seen of one job."""
    folder = tmp_path_factory.mktemp("cgroup2")
    folder.chmod(0o755)
    variables = {"slurm_machine": {"cgroup_v1": False}, "slurm_constrain_cores": False}
    conf = folder / "cgroup.conf"
    template = {"src": str(roles.ROLES / "slurm/templates/cgroup.conf.j2"), "dest": str(conf)}
    roles.played(folder, {"node": {}}, variables, [{"template": template}])
    assert "CgroupPlugin=autodetect" in conf.read_text()
    return uml.run(ROOT / "tests/cgroup2/machine.py", folder, seconds=180)


def test_a_job_opens_its_own_gpus_and_no_others(found: Found) -> None:
    assert found["said"]["opened"] == ["gpu0"]


def test_a_job_that_takes_too_much_memory_is_ended_and_slurm_says_so(found: Found) -> None:
    assert found["said"]["ended_by"] == 9
    assert found["state"] == "OUT_OF_MEMORY"


def test_a_session_reads_its_memory_limit_use_and_kills(found: Found) -> None:
    said = found["said"]
    assert said["limit_gib"] == 200 / 1024
    assert 50e6 <= said["grown"] < 60e6
    assert said["kills"] == 1


def test_a_sessions_processes_are_told_from_others_by_their_group(found: Found) -> None:
    assert re.fullmatch(r"0::/\S+_slurmstepd\.scope/job_\d+/\S+\n", found["said"]["cgroups"])
    assert found["said"]["job"] == found["job_id"]


def test_what_a_job_left_behind_is_ended_and_others_are_not(found: Found) -> None:
    assert (found["stray"], found["others"]) == (-15, None)
    assert f"job {found['job_id']} of user" in found["log"]
    assert "left 1 processes behind" in found["log"]
