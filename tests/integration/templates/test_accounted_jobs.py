"""Jobs of the templates in a Slurm with accounts: whose they are, and how many tasks of an array.

Accounts, QOS and limits are those of a real slurmdbd.
"""

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
START = """
import sys
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/{name}" for name in ("distributed", "slurm")]
import runs

plan = runs.Plan(nodes=1, gpus_per_node=0, settings={}, words=("/bin/true",), partition="sxm2",
                 cores_per_process=1, memory_mb_per_process=10, modules=(), name="run",
                 account=sys.argv[3], qos=sys.argv[4])
try:
    run = runs.start(plan, Path(sys.argv[2]))
    print(run.folder.name, run.job.number)
except runs.jobs.SlurmCommandError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def accounted(portal: Instance) -> Iterator[AccountedCluster]:
    lines = ("AccountingStorageEnforce=associations,limits,qos", f"MaxArraySize={MAX_ARRAY_SIZE}")
    with accounting.running(portal, *lines) as cluster:
        cluster.enrol(USER, high_in="teaching")
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


def said_by(accounted: AccountedCluster, program: str, *arguments: object) -> str:
    """Run a program as the user, who has the templates; return what it prints."""
    argv = ["/usr/sbin/runuser", "-u", USER, "--", "/usr/bin/python3", "-B", "-c", program]
    argv += [str(ROOT / "notebook_templates"), *map(str, arguments)]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False,
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
    number, *calls = said_by(accounted, SUBMIT, folder, tasks).split()
    assert tasks_of(accounted, number) == allowed
    assert (folder / "job.txt").read_text().split() == [number]
    assert len(calls) == tried


def test_jobs_that_are_there_count_and_none_is_left_over(
    accounted: AccountedCluster, folder: Path
) -> None:
    limit(accounted, 3)
    first, *_ = said_by(accounted, SUBMIT, folder, 1).split()
    second, *_ = said_by(accounted, SUBMIT, folder, 9).split()
    assert (tasks_of(accounted, first), tasks_of(accounted, second)) == (1, 2)
    # Where not even one is allowed, Slurm's own words are shown.
    assert "job submit limit" in said_by(accounted, SUBMIT, folder, 9)


def test_an_array_is_as_large_as_slurm_knows_them(
    accounted: AccountedCluster, folder: Path
) -> None:
    limit(accounted, 1000)
    number, *calls = said_by(accounted, SUBMIT, folder, 200).split()
    assert tasks_of(accounted, number) == MAX_ARRAY_SIZE - 1
    assert len(calls) < 12


@pytest.mark.parametrize(
    ("account", "qos", "theirs"),
    [("", "", ("physics", "normal")), ("teaching", "high", ("teaching", "high"))],
)
def test_a_job_is_the_accounts_that_the_notebook_names(
    accounted: AccountedCluster, folder: Path, account: str, qos: str, theirs: tuple[str, str]
) -> None:
    limit(accounted, 10)
    _, number = said_by(accounted, START, folder, account, qos).split()
    told = accounted.slurm("scontrol", "--oneliner", "show", "job", number)
    assert " Account={} QOS={} ".format(*theirs) in told


def test_an_account_or_qos_that_is_not_the_users_is_refused_in_slurms_words(
    accounted: AccountedCluster, folder: Path
) -> None:
    limit(accounted, 10)
    refused = "sbatch: error: Batch job submission failed: Invalid "
    for account, qos, reason in (
        ("medicine", "", "account or account/partition combination specified"),
        ("physics", "high", "qos specification"),
    ):
        assert said_by(accounted, START, folder, account, qos).splitlines()[-1] == refused + reason
    # With a right one it is the same run.
    assert said_by(accounted, START, folder, "physics", "").split()[0] == "run"
    assert [one.name for one in folder.iterdir()] == ["run"]
