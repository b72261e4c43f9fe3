"""In a session's terminal and kernels, Slurm and what looks for Slurm work as on a login node."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER = USERS[2]
PAPERS = "srun -N 1 -n 8 -p shareq --gres=gpu:2 --mem=96G -t 8:00:00 --pty bash"
"""The papers' line, as users type it."""
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
