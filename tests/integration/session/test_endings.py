"""However a start or a session ends: no job is left, and the user is told why."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from jupyterhub_gpu_slurm.session.endings import OUTCOMES
from jupyterhub_gpu_slurm.session.reasons import REASONS
from tests import faults
from tests.instance import ADMIN, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.waits

Visit = Callable[[str], Visitor]
USER = USERS[0]
MARKED_SESSION = "0123456789abcdef" * 2


@pytest.fixture
def waiting(portal: Instance, visit: Visit) -> Iterator[tuple[Visitor, str]]:
    """A user whose session waits in the queue, and its job's number."""
    user = visit(USER)
    with portal.gpus_taken():
        assert user.start(gpus=1).status_code == 202
        (job_id,) = until(lambda: portal.jobs(user=USER), seconds=20, what="it is in the queue")
        yield user, job_id


def wait_until_stopped(user: Visitor, seconds: float = 40) -> None:
    until(lambda: user.server() is None, seconds=seconds, what="the hub has seen the end")


# --- while it starts ---


def test_a_start_that_is_cancelled_in_the_queue_leaves_no_job(
    portal: Instance, waiting: tuple[Visitor, str]
) -> None:
    user, _ = waiting
    user.api("DELETE", f"/users/{USER}/server")
    until(lambda: not portal.jobs(user=USER), seconds=20, what="the job is cancelled")
    wait_until_stopped(user)


def test_a_start_goes_on_after_a_logout_and_is_found_again(
    portal: Instance, waiting: tuple[Visitor, str]
) -> None:
    user, job_id = waiting
    user.http.get("/hub/logout?keep=1")
    assert portal.jobs(user=USER) == [job_id]
    user.log_in()
    assert 'id="progress-title"' in user.http.get(f"/hub/spawn-pending/{USER}").text
    user.stop()
    assert portal.jobs(user=USER) == []


def test_the_waiting_page_hears_state_reason_and_advice(
    portal: Instance, waiting: tuple[Visitor, str]
) -> None:
    user, job_id = waiting
    url = f"/hub/api/users/{USER}/server/progress?_xsrf={user.xsrf()}"
    until(lambda: portal.job(job_id)["Reason"] == "Resources", seconds=30, what="Slurm has looked")
    until(
        lambda: portal.job(job_id)["StartTime"] != "Unknown", seconds=30, what="Slurm has estimated"
    )
    heard = ""
    with user.http.stream("GET", url, timeout=30) as events:
        for line in events.iter_lines():
            heard += line
            if '"expected"' in heard:
                break
    assert "PENDING, Resources" in heard
    assert REASONS["Resources"].why in heard
    assert '"advice"' in heard


def test_two_starts_at_once_are_one(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    answers: list[httpx.Response] = []
    both = [threading.Thread(target=lambda: answers.append(user.start(gpus=0))) for _ in range(2)]
    for start in both:
        start.start()
    for start in both:
        start.join()
    assert {answer.status_code for answer in answers} <= {201, 202, 400}
    user.wait_until_ready()
    assert len(portal.jobs(user=USER)) == 1


@pytest.fixture(scope="class")
def program(portal: Instance) -> Iterator[Path]:
    """A program of ours in JupyterLab's place, and a hub that does not wait long for it.

    For a class, since one restart of the hub is enough for its tests.
    """
    limits = {"launch_timeout": 8.0, "queue_timeout": 10.0}
    lines = [f"c.GpuSlurmSpawner.{name} = {value}\n" for name, value in limits.items()]
    with faults.session_program(portal, "", "".join(lines)) as program:
        yield program


class TestImpatientHub:
    """With its own limits, and sessions that never become one."""

    def test_a_job_that_fails_at_once_shows_slurms_state_and_the_end_of_its_log(
        self, portal: Instance, visit: Visit, program: Path
    ) -> None:
        lines = ['echo "a first line"', 'echo "<b>no module named fnord</b>" >&2', "exit 3"]
        program.write_text("\n".join(["#!/bin/bash", *lines, ""]))
        user = visit(USER)
        user.start(gpus=0)
        wait_until_stopped(user)
        page = user.http.get(f"/hub/spawn-pending/{USER}").text
        assert "FAILED" in page
        assert "a first line" in page
        # A log is anybody's words.
        assert "&lt;b&gt;no module named fnord" in page
        assert "<b>no module" not in page
        assert portal.jobs(user=USER) == []

    def test_a_start_that_takes_too_long_is_cancelled_and_says_so(
        self, portal: Instance, visit: Visit, program: Path
    ) -> None:
        program.write_text("#!/bin/bash\necho waiting for nothing\nexec sleep 300\n")
        user = visit(USER)
        user.start(gpus=0)
        wait_until_stopped(user)
        page = user.http.get(f"/hub/spawn-pending/{USER}").text
        assert "within 8 seconds" in page
        assert "waiting for nothing" in page
        assert portal.jobs(user=USER) == []

    @pytest.mark.usefixtures("program")
    def test_a_start_that_waits_too_long_in_the_queue_is_cancelled_and_says_so(
        self, portal: Instance, visit: Visit
    ) -> None:
        user = visit(USER)
        with portal.gpus_taken():
            user.start(gpus=1)
            wait_until_stopped(user)
            assert "waited in the queue" in user.http.get(f"/hub/spawn-pending/{USER}").text
            assert portal.jobs(user=USER) == []


# --- when the hub ends while it starts ---


def test_a_hub_killed_between_sbatch_and_its_answer_takes_the_job_over(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USER)
    user.http.get("/hub/spawn")
    with faults.frozen("slurmctld"):
        # sbatch hangs, so the hub ends before it hears the job's number; sbatch does not end.
        assert user.start(gpus=0).status_code == 202
        faults.kill("hub")
    faults.wait_for_hub(portal)
    (job_id,) = until(lambda: portal.jobs(user=USER), seconds=40, what="sbatch got through")
    until(lambda: (user.server() or {}).get("ready"), seconds=60, what="the session is ready")
    assert portal.jobs(user=USER) == [job_id]
    assert user.run("print(6 * 7)").strip() == "42"
    user.stop()
    assert portal.jobs(user=USER) == []


def test_a_hub_killed_while_a_start_waits_keeps_its_place_in_the_queue(
    portal: Instance, waiting: tuple[Visitor, str]
) -> None:
    user, job_id = waiting
    faults.kill("hub")
    faults.wait_for_hub(portal)
    until(lambda: (user.server() or {}).get("pending") == "spawn", seconds=30, what="it goes on")
    assert portal.jobs(user=USER) == [job_id]
    assert 'id="progress-title"' in user.http.get(f"/hub/spawn-pending/{USER}").text
    user.stop()
    assert portal.jobs(user=USER) == []


def test_other_options_after_an_interruption_replace_the_job(
    portal: Instance, waiting: tuple[Visitor, str]
) -> None:
    user, _ = waiting
    faults.service("stop", "hub")
    faults.service("start", "hub")
    faults.wait_for_hub(portal)
    # Quicker than the reconciler, or refused because it was quicker: either way one job is left.
    answer = user.start(gpus=0)
    assert answer.status_code in (201, 202, 400)
    jobs = until(lambda: portal.jobs(user=USER), seconds=30, what="there is a job")
    assert len(jobs) == 1
    user.stop()
    assert portal.jobs(user=USER) == []


# --- while it runs ---


@pytest.mark.long
def test_a_session_whose_time_is_up_says_so(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    user.start_and_wait(gpus=0, hours=1 / 60)
    wait_until_stopped(user, seconds=180)
    assert "TIMEOUT" in user.note()
    assert OUTCOMES["TIMEOUT"] in user.note()
    assert portal.jobs(user=USER) == []


def test_a_session_that_is_out_of_memory_says_so(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    user.start_and_wait(gpus=0)
    folder = Path(user.run("import os; print(os.environ['JUPYTER_RUNTIME_DIR'])").strip())
    assert folder.is_dir()
    user.run(faults.EXHAUST_MEMORY)
    wait_until_stopped(user, seconds=60)
    assert "OUT_OF_MEMORY" in user.note()
    assert OUTCOMES["OUT_OF_MEMORY"] in user.note()
    until(lambda: not folder.exists(), seconds=30, what="its folder is gone")
    assert portal.jobs(user=USER) == []


def test_a_session_that_is_preempted_says_so(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    user.start_and_wait(gpus=1)
    urgent = portal.slurm(
        *("sbatch", "--parsable", "--partition=urgent", "--nodes=3", "--gres=gpu:4", "--mem=1G"),
        *("--time=5", "--output=/dev/null", "--wrap=exec sleep 300"),
        user=ADMIN,
    ).strip()
    try:
        wait_until_stopped(user)
        assert "PREEMPTED" in user.note()
        assert portal.jobs(user=USER) == []
    finally:
        portal.cancel(urgent)


def test_a_session_that_is_requeued_ends_and_says_so(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    job_id = user.start_and_wait(gpus=0)
    portal.slurm("scontrol", "update", f"JobId={job_id}", "Requeue=1")
    portal.slurm("scontrol", "requeue", job_id)
    wait_until_stopped(user)
    assert "put back" in user.note() or "is over" in user.note()
    until(lambda: not portal.jobs(user=USER), seconds=30, what="the job is gone")


def test_a_session_whose_node_goes_down_says_so(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    node = portal.job(user.start_and_wait(gpus=0))["NodeList"]
    with faults.node_state(portal, node, "DOWN"):
        wait_until_stopped(user)
        assert "NODE_FAIL" in user.note()
        assert OUTCOMES["NODE_FAIL"] in user.note()
        assert portal.jobs(user=USER) == []


def test_a_session_on_a_drained_node_goes_on_and_ends_as_usual(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USER)
    job_id = user.start_and_wait(gpus=0)
    with faults.node_state(portal, portal.job(job_id)["NodeList"], "DRAIN"):
        assert user.run("print(6 * 7)").strip() == "42"
        assert portal.jobs(user=USER) == [job_id]
        user.stop()
        assert portal.jobs(user=USER) == []


# --- when the account is no more ---


def test_the_session_of_a_deleted_account_is_stopped(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[2])
    job_id = user.start_and_wait(gpus=1)
    with faults.account_deleted(user.name):
        user.api("DELETE", f"/users/{user.name}/server")
        until(lambda: job_id not in portal.jobs(), seconds=40, what="the job is ended")
        wait_until_stopped(user)


def test_a_start_of_a_deleted_account_names_the_directory(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[2])
    user.http.get("/hub/spawn")
    with faults.account_deleted(user.name):
        user.start(gpus=0)
        wait_until_stopped(user)
        page = user.http.get(f"/hub/spawn-pending/{user.name}").text
    assert f"cannot find the account {user.name}" in page
    assert "directory" in page
    assert portal.jobs(user=user.name) == []


@pytest.mark.long
def test_a_start_while_the_directory_is_silent_ends_and_names_it(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[2])
    user.http.get("/hub/spawn")
    # In the place of a sudo that waits for the directory; this instance's accounts are local.
    waits = "c.GpuSlurmSpawner.launcher_cmd = ['/usr/bin/sleep', '600']\n"
    with faults.site_file(portal, waits):
        user.start(gpus=0)
        wait_until_stopped(user)
        page = user.http.get(f"/hub/spawn-pending/{user.name}").text
    assert "does not answer" in page
    assert "directory" in page
    assert portal.jobs(user=user.name) == []


def test_an_orphan_of_a_deleted_account_is_ended(portal: Instance) -> None:
    name = USERS[2]
    asks = ["sbatch", "--parsable", "--time=10", "--mem=100M", "--output=/dev/null"]
    named = [f"--job-name={portal.mark}-{name}", f"--comment={portal.mark}:{MARKED_SESSION}"]
    job_id = portal.slurm(*asks, *named, "--wrap=exec sleep 600", user=name).strip()
    with faults.account_deleted(name):
        faults.restart_hub(portal)
        until(lambda: job_id not in portal.jobs(), seconds=60, what="the orphan is ended")


# --- jobs that belong to no server ---


def test_a_job_with_this_hubs_mark_and_no_server_is_cancelled_and_no_other_is(
    portal: Instance,
) -> None:
    def submit(user: str, name: str, comment: str) -> str:
        return portal.slurm(
            *("sbatch", "--parsable", "--time=10", "--mem=100M", "--output=/dev/null"),
            *(f"--job-name={name}", f"--comment={comment}", "--wrap=exec sleep 600"),
            user=user,
        ).strip()

    mark = portal.mark
    orphan = submit(USER, f"{mark}-{USER}", f"{mark}:{MARKED_SESSION}")
    others = [
        submit(USER, f"{mark}-{USER}", ""),
        submit(USER, f"{mark}-{USER}", f"another-{mark}:{MARKED_SESSION}"),
        submit(USER, f"{mark}-{USER}", f"{mark}:not a session"),
        submit(USERS[1], "train", f"{mark}:{MARKED_SESSION}"),
        # A line in somebody else's name.
        submit(USERS[1], f"x\n{orphan}|{USERS[2]}|{mark}-{USERS[2]}", ""),
    ]
    try:
        faults.restart_hub(portal)
        until(lambda: orphan not in portal.jobs(), seconds=60, what="the orphan is cancelled")
        # The reconciler has been round once; what it leaves alone then, it leaves alone.
        time.sleep(5)
        assert set(others) <= set(portal.jobs())
    finally:
        portal.cancel(orphan, *others)


@pytest.mark.long
def test_a_session_that_runs_is_no_orphan(portal: Instance, visit: Visit) -> None:
    user = visit(USER)
    job_id = user.start_and_wait(gpus=0)
    with faults.site_file(portal, ""):
        time.sleep(15)
        assert portal.jobs(user=USER) == [job_id]


def test_the_token_of_a_stopped_session_is_revoked_after_a_restart_too(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USER)
    user.start_and_wait(gpus=0)
    token = user.run("import os; print(os.environ['JUPYTERHUB_API_TOKEN'])").strip()
    headers = {"Authorization": f"token {token}"}
    assert portal.hub("GET", "/api/user", headers=headers).status_code == 200
    faults.restart_hub(portal)
    user.stop()
    assert portal.hub("GET", "/api/user", headers=headers).status_code == 403
