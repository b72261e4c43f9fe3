"""The hub's SQLite file cannot be written: nobody waits for it, and nothing is lost by it.

Either somebody else holds it, or its disk is full.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import httpx
import pytest

from dsportal.hub.breaker import WORDS
from tests import faults
from tests.instance import LOGS, USERS, Instance, await_hub_log
from tests.visitor import Visitor
from tests.waiting import until

Unwritable = Callable[[Instance], AbstractContextManager[None]]


@pytest.fixture(scope="module", autouse=True)
def hub_on_a_small_disk(portal: Instance) -> Iterator[None]:
    with faults.hub_on_a_small_disk(portal):
        yield


@pytest.fixture(params=[faults.database_locked, faults.hub_disk_full])
def unwritable(request: pytest.FixtureRequest) -> Unwritable:
    made: Unwritable = request.param
    return made


def refuses(user: Visitor) -> bool:
    """Say whether the hub takes no start, with plain words, and at once."""
    headers = {"X-XSRFToken": user.xsrf(), "Referer": f"{user.instance.url}/hub/home"}
    with httpx.Client(base_url=user.instance.url, cookies=user.http.cookies, timeout=5) as http:
        path = f"/hub/api/users/{user.name}/server"
        answer = http.post(path, headers=headers, json={"gpus": 0})
    return answer.status_code == 503 and answer.json()["message"] == WORDS


def test_nobody_is_kept_waiting(
    portal: Instance, visit: Callable[[str], Visitor], unwritable: Unwritable
) -> None:
    user = visit(USERS[0])
    with unwritable(portal):
        assert all(refuses(user) for _ in range(5))
        assert httpx.get(f"{portal.url}/hub/static/css/style.min.css", timeout=5).is_success
    until(lambda: user.http.get("/hub/home").status_code == 200, seconds=20, what="the hub goes on")
    job_id = user.start_and_wait(gpus=0)
    assert portal.jobs(user=user.name) == [job_id]


def test_a_start_that_waits_outlasts_it(
    portal: Instance, visit: Callable[[str], Visitor], unwritable: Unwritable
) -> None:
    waiting, other = visit(USERS[1]), visit(USERS[0])
    with ExitStack() as taken:
        taken.enter_context(portal.gpus_taken())
        assert waiting.start(gpus=1).status_code == 202
        job_ids = until(
            lambda: portal.jobs(user=waiting.name), seconds=20, what="the start is in the queue"
        )
        with unwritable(portal):
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


def test_a_stop_outlasts_it(
    portal: Instance, visit: Callable[[str], Visitor], unwritable: Unwritable
) -> None:
    leaving, other = visit(USERS[1]), visit(USERS[0])
    job_id = leaving.start_and_wait(gpus=0)
    with ExitStack() as frozen:
        frozen.enter_context(faults.frozen("slurmctld"))
        leaving.api("DELETE", f"/users/{leaving.name}/server")
        with unwritable(portal):
            assert refuses(other)
            frozen.close()
            until(
                lambda: job_id not in portal.jobs(user=leaving.name),
                seconds=90,
                what="the job is cancelled",
            )
    until(lambda: leaving.server() is None, seconds=60, what="the hub knows that it is gone")
    leaving.start_and_wait(gpus=0)


def test_a_hub_that_starts_on_a_full_disk_tries_until_there_is_room(
    portal: Instance, visit: Callable[[str], Visitor]
) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=0)
    assert user.session("GET", "/api/status").status_code == 200
    with faults.hub_disk_full(portal):
        since = (LOGS / "hub.log").stat().st_size
        faults.service("restart", "hub")
        await_hub_log("MiB are free", since=since)
        assert user.session("GET", "/api/status").status_code == 200
    faults.wait_for_hub(portal)
    assert portal.jobs(user=user.name) == [job_id]
    server = user.server()
    assert server is not None
    assert server["ready"]
