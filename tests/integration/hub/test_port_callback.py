"""The one thing that a session may tell the hub: its port, with its own token."""

import json
import pwd
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.instance import USERS, Instance
from tests.processes import running
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]
SESSION_TOKEN = "import os; print(os.environ['JUPYTERHUB_API_TOKEN'])"


def report(portal: Instance, body: object, token: str | None) -> httpx.Response:
    headers = {} if token is None else {"Authorization": f"token {token}"}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return portal.hub("POST", "/api/gpu-session/port", content=content, headers=headers)


def inputs(portal: Instance, name: str) -> set[Path]:
    """Return the files in which inputs are kept for a user's sessions that have not begun.

    One whose job a test has cancelled past the hub is kept for an hour.
    """
    folder = Path(pwd.getpwnam(name).pw_dir, ".local/state/data-scientist-portal")
    return set(folder.glob(f"input-{portal.mark}-*.json"))


@pytest.fixture(scope="module")
def waiting(portal: Instance) -> Iterator[tuple[Visitor, str]]:
    """A user whose session waits in the queue, and that session's token, as it is kept for it."""
    user = Visitor(portal, USERS[3])
    user.log_in()
    before = inputs(portal, USERS[3])
    with portal.gpus_taken():
        user.start(gpus=4)
        until(lambda: portal.jobs(user=USERS[3]), seconds=10, what="the job is in the queue")
        (file,) = inputs(portal, USERS[3]) - before
        yield user, json.loads(file.read_text())["environment"]["JUPYTERHUB_API_TOKEN"]
        if user.server() is not None:
            user.stop()
    user.close()


@pytest.mark.parametrize(
    "body",
    [
        {"port": 40000, "cmd": ["/bin/sh", "-c", "id"]},
        {"cmd": ["/bin/sh"]},
        {"port": "40000"},
        {"port": 80},
        {"port": True},
        [40000],
        b"port=40000",
        b"",
    ],
)
def test_it_takes_a_port_and_nothing_else(
    portal: Instance, waiting: tuple[Visitor, str], body: object
) -> None:
    assert report(portal, body, waiting[1]).status_code == 400


def test_it_takes_nobody_elses_token(portal: Instance, waiting: tuple[Visitor, str]) -> None:
    user, _ = waiting
    assert report(portal, {"port": 40000}, user.token()).status_code == 403
    assert report(portal, {"port": 40000}, "0" * 32).status_code == 403
    assert report(portal, {"port": 40000}, None).status_code == 403
    assert user.api("POST", "/gpu-session/port", json={"port": 40000}).status_code == 403
    server = user.server()
    assert server is not None
    assert server["pending"] == "spawn"


def test_another_sessions_token_reports_nothing(portal: Instance, visit: Visit) -> None:
    other = visit(USERS[0])
    other.start_and_wait(gpus=0)
    token = other.run(SESSION_TOKEN).strip()
    assert report(portal, {"port": 40000}, token).status_code == 409
    assert report(portal, {"port": 40000}, other.token()).status_code == 403


def test_it_takes_the_port_once(portal: Instance, waiting: tuple[Visitor, str]) -> None:
    assert report(portal, {"port": 40000}, waiting[1]).status_code == 204
    assert report(portal, {"port": 40001}, waiting[1]).status_code in (403, 409)


def test_no_other_callback_is_among_the_routes(portal: Instance) -> None:
    answer = portal.hub("POST", "/api/batchspawner", json={"port": 40000})
    assert answer.status_code == 404


def test_the_token_is_in_no_job_record_and_on_no_command_line(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=0)
    token = user.run(SESSION_TOKEN).strip()
    assert len(token) >= 32
    assert token not in portal.slurm("scontrol", "show", "job", "-dd", job_id)
    assert running(token) == []


def test_what_slurm_stores_of_a_session_holds_no_secret(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=0)
    token = user.run(SESSION_TOKEN).strip()
    spool = Path(portal.settings["hub"]["state_dir"]).parent / "slurmd"
    scripts = [script.read_text() for script in spool.glob(f"*/job*{job_id}/slurm_script")]
    assert scripts
    # What AccountingStoreFlags=job_script would put into Slurm's database.
    scripts.append(portal.slurm("scontrol", "write", "batch_script", job_id, "-", user=USERS[0]))
    for script in scripts:
        assert "-m dsportal.session" in script
        assert token not in script
        assert "PRIVATE KEY" not in script
        assert "JUPYTERHUB" not in script
    # The session has read it, and keeps it in no file.
    assert not any(token in file.read_text() for file in inputs(portal, USERS[0]))


def test_a_session_that_is_cancelled_in_the_queue_leaves_no_input(
    portal: Instance, visit: Visit, waiting: tuple[Visitor, str]
) -> None:
    # No GPU is free while the other one waits.
    user = visit(USERS[0])
    before = inputs(portal, USERS[0])
    user.start(gpus=4)
    until(lambda: portal.jobs(user=USERS[0]), seconds=10, what="the job is in the queue")
    (file,) = inputs(portal, USERS[0]) - before
    status = file.stat()
    assert status.st_uid == pwd.getpwnam(USERS[0]).pw_uid
    assert stat.S_IMODE(status.st_mode) == 0o600
    user.stop()
    until(lambda: not file.exists(), seconds=30, what="its input is gone")
