"""As many tasks of a job array as Slurm lets a user submit, with limits of a real slurmdbd."""

import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.instance import ROOT, USERS, Instance
from tests.servers import accounting
from tests.servers.accounting import AccountedCluster

USER = USERS[0]
MAX_ARRAY_SIZE = 50
"""Slurm's limit for the number of a task, which begin with 1 here."""
SUBMIT = """
import sys
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/{name}" for name in ("distributed", "slurm")]
import jobs
from plans import Plan
from runs.job_array import JobArray

calls, run = [], jobs._slurm

def counted(program, *arguments, **given):
    calls.append(arguments[0])
    return run(program, *arguments, **given)

jobs._slurm = counted
folder, tasks = Path(sys.argv[2]), int(sys.argv[3])
plan = Plan(nodes=1, gpus_per_node=0, settings={}, words=("/bin/true",), partition="sxm2",
            cores_per_process=1, memory_mb_per_process=10, modules=(), array=tasks)
try:
    number = JobArray(folder).submit(plan)
    print(number, *calls)
except jobs.SlurmCommandError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def accounted(portal: Instance) -> Iterator[AccountedCluster]:
    lines = ("AccountingStorageEnforce=associations,limits", f"MaxArraySize={MAX_ARRAY_SIZE}")
    with accounting.running(portal, *lines) as cluster:
        cluster.slurm("sacctmgr", "--immediate", "add", "account", "physics")
        cluster.slurm("sacctmgr", "--immediate", "add", "user", USER, "account=physics")
        # Nothing starts, so that the jobs that are there stay.
        cluster.slurm("scontrol", "update", "partitionname=sxm2", "state=down")
        yield cluster


@pytest.fixture
def folder(portal: Instance) -> Iterator[Path]:
    """A folder of the user's for an array."""
    folder = Path(pwd.getpwnam(USER).pw_dir, "array-test")
    portal.slurm("/bin/mkdir", str(folder), user=USER)
    yield folder
    portal.slurm("/bin/rm", "-rf", str(folder), user=USER)


@pytest.fixture(autouse=True)
def no_jobs(accounted: AccountedCluster) -> Iterator[None]:
    """End what a test has submitted."""
    yield
    accounted.slurm("scancel", "--user", USER)


def limit(accounted: AccountedCluster, jobs: int) -> None:
    """Let the user have so many jobs."""
    change = ("modify", "user", USER, "set", f"maxsubmitjobs={jobs}")
    accounted.slurm("sacctmgr", "--immediate", *change)


def submitted(accounted: AccountedCluster, folder: Path, tasks: int) -> str:
    """Submit an array as the user; return what is printed."""
    argv = ["/usr/sbin/runuser", "-u", USER, "--", "/usr/bin/python3", "-B", "-c", SUBMIT]
    templates = str(ROOT / "notebook_templates")
    done = subprocess.run(
        [*argv, templates, str(folder), str(tasks)], capture_output=True, text=True, check=False,
        env={"SLURM_CONF": str(accounted.conf), "PATH": "/usr/bin:/bin"}, cwd="/", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def tasks_of(accounted: AccountedCluster, number: str) -> int:
    """Count the tasks that an array has."""
    argv = ("squeue", "--noheader", "--array", f"--jobs={number}")
    return len(accounted.slurm(*argv).splitlines())


@pytest.mark.parametrize(
    ("allowed", "tasks", "tried"), [(9, 9, 1), (3, 9, 5), (8, 9, 6), (1, 9, 5)]
)
def test_a_user_has_as_many_tasks_as_the_limit_allows(
    accounted: AccountedCluster, folder: Path, allowed: int, tasks: int, tried: int
) -> None:
    limit(accounted, allowed)
    number, *calls = submitted(accounted, folder, tasks).split()
    assert tasks_of(accounted, number) == allowed
    assert (folder / "job.txt").read_text().split() == [number]
    assert len(calls) == tried


def test_jobs_that_are_there_count_and_none_is_left_over(
    accounted: AccountedCluster, folder: Path
) -> None:
    limit(accounted, 3)
    first, *_ = submitted(accounted, folder, 1).split()
    second, *_ = submitted(accounted, folder, 9).split()
    assert (tasks_of(accounted, first), tasks_of(accounted, second)) == (1, 2)
    # Where not even one is allowed, Slurm's own words are shown.
    assert "job submit limit" in submitted(accounted, folder, 9)


def test_an_array_is_as_large_as_slurm_knows_them(
    accounted: AccountedCluster, folder: Path
) -> None:
    limit(accounted, 1000)
    number, *calls = submitted(accounted, folder, 200).split()
    assert tasks_of(accounted, number) == MAX_ARRAY_SIZE - 1
    assert len(calls) < 12
