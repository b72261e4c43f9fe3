"""In a session's terminal and kernels, Slurm and what looks for Slurm work as on a login node."""

import json
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.instance import USERS, Instance
from tests.processes import running
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER = USERS[2]
PAPERS = "srun -N 1 -n 8 -p shareq --gres=gpu:2 --mem=96G -t 8:00:00 --pty bash"
"""The papers' line, as users type it."""
DIGITS = "module load shared/digits/6.1.1", "DIGITS_JOBS_DIR=~/digits-logs digits-devserver"
"""What they type then; what runs here is the project's stand-in for DIGITS."""
TASKS = "srun -N 2 --ntasks-per-node=2 -p shareq --mem=200M -t 5 bash -c 'echo \"$SLURM_JOB_ID\"'"
ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USER, gpus=1) as visitor:
        yield visitor


def test_srun_in_a_terminal_gets_an_allocation_of_its_own(portal: Instance, user: Visitor) -> None:
    (session,) = portal.jobs(user=USER)
    ask = 'echo "in"" job $SLURM_JOB_ID, $SLURM_NTASKS tasks, GPUs $CUDA_VISIBLE_DEVICES."; exit\r'
    # Typed ahead, which the shell on the other node reads.
    screen = user.type_in_terminal(
        f'{PAPERS}; echo ov""er', "over", answers={"--pty bash": ask}, seconds=60
    )
    told = re.search(r"in job (\d+), (\d+) tasks, GPUs ([\d,]*)\.", screen)
    assert told, screen
    job, tasks, gpus = told.groups()
    assert job != session
    assert (tasks, gpus) == ("8", "0,1")
    until(lambda: portal.jobs(user=USER) == [session], seconds=30, what="its job is over")


def test_digits_runs_in_an_allocation_as_long_as_its_shell(portal: Instance, user: Visitor) -> None:
    (session,) = portal.jobs(user=USER)
    folder = Path(pwd.getpwnam(USER).pw_dir, "digits-logs")
    portal.slurm("/bin/rm", "-rf", str(folder), user=USER)
    load, start = DIGITS
    page = "http://127.0.0.1:5000"
    typed = (
        load,
        f"{start} &",
        f"curl -s --retry 60 --retry-delay 1 --retry-connrefused {page}/",
        f"curl -s --data '' {page}/jobs",
        'echo "in"" $(grep -o "job_$SLURM_JOB_ID" /proc/$!/cgroup | sort -u)."',
        "exit",
    )
    answers = {"--pty bash": "".join(f"{line}\r" for line in typed)}
    screen = user.type_in_terminal(f'{PAPERS}; echo ov""er', "over", answers=answers, seconds=90)
    job = re.search(r"in job_(\d+)\.", screen)
    assert job, screen
    assert job[1] != session
    assert f"Jobs in <code>{folder}</code>" in screen
    (made,) = folder.iterdir()
    assert made.name.endswith("-job")
    assert made.owner() == USER
    until(lambda: portal.jobs(user=USER) == [session], seconds=30, what="its job is over")
    until(lambda: not running("digits-devserver", user=USER), seconds=30, what="DIGITS is gone")


def test_srun_in_a_kernel_reaches_several_nodes(portal: Instance, user: Visitor) -> None:
    (session,) = portal.jobs(user=USER)
    printed = user.run(f"!{TASKS}").split()
    assert len(printed) == 4
    assert len(set(printed)) == 1
    assert printed[0] != session


def test_a_notebook_is_not_taken_for_a_process_of_a_job(portal: Instance, user: Visitor) -> None:
    (session,) = portal.jobs(user=USER)
    environment = json.loads(user.run(ENVIRONMENT))
    of_slurm = {name for name in environment if name.startswith(("SLURM", "PMI", "SBATCH"))}
    assert of_slurm == {"SLURM_CONF"}
    assert environment["PORTAL_JOB_ID"] == session
    assert environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert session in user.run("!squeue --me --noheader --format=%i")
