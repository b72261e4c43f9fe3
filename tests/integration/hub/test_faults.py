"""What happens when something of the real stack stops answering."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import faults
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.long

Visit = Callable[[str], Visitor]


@pytest.fixture
def freeze_slurmctld(portal: Instance) -> Iterator[Callable[[bool], None]]:
    """Stop the real controller with SIGSTOP, and let it go on."""
    config = portal.slurm("scontrol", "show", "config")
    line = next(line for line in config.splitlines() if line.startswith("SlurmctldPidFile"))
    pid = int(Path(line.split("=")[1].strip()).read_text())

    def freeze(is_frozen: bool) -> None:
        os.kill(pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    yield freeze
    freeze(False)


def test_a_frozen_slurmctld_costs_no_session(
    visit: Visit, freeze_slurmctld: Callable[[bool], None]
) -> None:
    user = visit(USERS[0])
    user.start_and_wait(gpus=0)
    freeze_slurmctld(True)
    # Longer than the hub's polls (10 s) and than its patience with squeue take together.
    with pytest.raises(AssertionError, match="lost"):
        until(lambda: user.server() is None, seconds=35, every=1, what="the session is lost")
    assert user.run("print(6 * 7)").strip() == "42"
    freeze_slurmctld(False)
    server = user.server()
    assert server is not None
    assert server["ready"]


def test_a_stop_while_slurmctld_is_frozen_is_carried_out_later(
    portal: Instance, visit: Visit, freeze_slurmctld: Callable[[bool], None]
) -> None:
    user = visit(USERS[0])
    user.start_and_wait(gpus=1)
    freeze_slurmctld(True)
    user.api("DELETE", f"/users/{USERS[0]}/server")
    freeze_slurmctld(False)
    until(lambda: not portal.jobs(user=USERS[0]), seconds=60, what="the job is cancelled")
    until(lambda: user.server() is None, seconds=30, what="the hub has seen it")


def test_a_start_while_slurmctld_is_frozen_leaves_no_job(
    portal: Instance, visit: Visit, freeze_slurmctld: Callable[[bool], None]
) -> None:
    user = visit(USERS[0])
    user.http.get("/hub/spawn")
    freeze_slurmctld(True)
    assert user.start(gpus=1).status_code == 202
    # The launcher gives sbatch 30 s.
    time.sleep(32)
    freeze_slurmctld(False)
    until(lambda: user.server() is None, seconds=60, what="the failed start is over")
    page = user.http.get(f"/hub/spawn-pending/{USERS[0]}").text
    assert "Slurm could not do this" in page
    assert "Traceback" not in page
    until(lambda: not portal.jobs(user=USERS[0]), seconds=60, what="the late job is cancelled")


@pytest.mark.usefixtures("waiting_queue")
def test_a_slurmctld_that_crashes_keeps_a_session_that_has_just_begun(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    before = faults.backfilled(portal)
    job_id = user.start_and_wait(gpus=1)
    assert faults.backfilled(portal) > before
    kernel_id = user.open_kernel()
    user.run_in(kernel_id, "kept = 42")
    # slurmctld writes what has changed at most every five seconds.
    time.sleep(7)
    faults.kill("slurmctld")
    faults.wait_for_nodes(portal)
    assert portal.jobs(user=user.name) == [job_id]
    assert user.run_in(kernel_id, "print(kept)").strip() == "42"


def test_a_restart_of_the_hub_keeps_a_session_and_its_kernel(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=1)
    pid = user.run("import os; print(os.getppid())").strip()
    faults.restart_hub(portal)
    assert portal.jobs(user=USERS[0]) == [job_id]
    assert user.run("import os; print(os.getppid())").strip() == pid
    user.stop()
    assert portal.jobs(user=USERS[0]) == []


def test_a_stop_before_an_interrupted_start_goes_on_ends_it(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    with portal.gpus_taken():
        assert user.start(gpus=1).status_code == 202
        until(lambda: portal.jobs(user=user.name), seconds=20, what="the start is in the queue")
        faults.service("restart", "hub")
        reconciler = until(
            lambda: faults.service_of_hub("dsportal.reconciler"),
            seconds=60,
            every=0.1,
            what="it runs",
        )
        # It would go on with the start before anybody can stop it, a second after it has begun.
        faults.stop(reconciler)
        try:
            faults.wait_for_hub(portal)
            assert user.server() is None
            assert user.api("DELETE", f"/users/{user.name}/server").status_code == 204
            until(lambda: not portal.jobs(user=user.name), seconds=20, what="the job is cancelled")
        finally:
            os.kill(reconciler, signal.SIGCONT)
    with pytest.raises(AssertionError, match="starts all the same"):
        until(lambda: portal.jobs(user=user.name), seconds=20, what="it starts all the same")
