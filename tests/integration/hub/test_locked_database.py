"""The hub's SQLite file held by somebody else: nobody waits for it, and nothing is lost by it."""

from collections.abc import Callable
from contextlib import ExitStack

import httpx

from dsportal.hub.breaker import WORDS
from tests import faults
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until


def refuses(user: Visitor) -> bool:
    """Say whether the hub takes no start, with plain words, and at once."""
    headers = {"X-XSRFToken": user.xsrf(), "Referer": f"{user.instance.url}/hub/home"}
    with httpx.Client(base_url=user.instance.url, cookies=user.http.cookies, timeout=5) as http:
        path = f"/hub/api/users/{user.name}/server"
        answer = http.post(path, headers=headers, json={"gpus": 0})
    return answer.status_code == 503 and answer.json()["message"] == WORDS


def test_a_locked_file_keeps_nobody_waiting(
    portal: Instance, visit: Callable[[str], Visitor]
) -> None:
    user = visit(USERS[0])
    with faults.database_locked(portal):
        assert all(refuses(user) for _ in range(5))
        assert httpx.get(f"{portal.url}/hub/static/css/style.min.css", timeout=5).is_success
    until(lambda: user.http.get("/hub/home").status_code == 200, seconds=20, what="the hub goes on")
    job_id = user.start_and_wait(gpus=0)
    assert portal.jobs(user=user.name) == [job_id]


def test_a_start_that_waits_outlasts_a_locked_file(
    portal: Instance, visit: Callable[[str], Visitor]
) -> None:
    waiting, other = visit(USERS[1]), visit(USERS[0])
    with ExitStack() as taken:
        taken.enter_context(portal.gpus_taken())
        assert waiting.start(gpus=1).status_code == 202
        job_ids = until(
            lambda: portal.jobs(user=waiting.name), seconds=20, what="the start is in the queue"
        )
        with faults.database_locked(portal):
            assert refuses(other)
            taken.close()
            until(
                lambda: portal.job(job_ids[0])["JobState"] == "RUNNING",
                seconds=30,
                what="the job has started",
            )
    waiting.wait_until_ready()
    assert portal.jobs(user=waiting.name) == job_ids
    assert waiting.session("GET", "/api/status").status_code == 200


def test_a_stop_outlasts_a_locked_file(portal: Instance, visit: Callable[[str], Visitor]) -> None:
    leaving, other = visit(USERS[1]), visit(USERS[0])
    job_id = leaving.start_and_wait(gpus=0)
    with ExitStack() as frozen:
        frozen.enter_context(faults.frozen("slurmctld"))
        leaving.api("DELETE", f"/users/{leaving.name}/server")
        with faults.database_locked(portal):
            assert refuses(other)
            frozen.close()
            until(
                lambda: job_id not in portal.jobs(user=leaving.name),
                seconds=90,
                what="the job is cancelled",
            )
    until(lambda: leaving.server() is None, seconds=60, what="the hub knows that it is gone")
    leaving.start_and_wait(gpus=0)
