"""The hub's clock is an hour ahead of all others, and is set right again."""

import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from tests import faults
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until


@pytest.fixture(scope="module", autouse=True)
def own_clock(portal: Instance) -> Iterator[None]:
    with faults.hub_with_its_own_clock(portal):
        yield


def ahead(portal: Instance) -> timedelta:
    said = portal.hub("GET", "/api/").headers["Date"]
    return parsedate_to_datetime(said) - datetime.now(UTC)


def test_sessions_go_on_and_others_start_whatever_the_hubs_clock_says(
    portal: Instance, visit: Callable[[str], Visitor]
) -> None:
    user, other = visit(USERS[0]), visit(USERS[1])
    job_id = user.start_and_wait(gpus=0)
    kernel_id = user.open_kernel()
    user.run_in(kernel_id, "kept = 6 * 7")

    def is_well() -> bool:
        server = user.server()
        return (
            server is not None
            and server["ready"]
            and portal.jobs(user=user.name) == [job_id]
            and user.run_in(kernel_id, "print(kept)").strip() == "42"
        )

    with faults.hub_clock_ahead(portal):
        until(lambda: ahead(portal) > timedelta(minutes=59), seconds=10, what="it is ahead")
        # Who has logged in before still is, and the session is believed after the next polls.
        assert user.http.get("/hub/home").url.path == "/hub/home"
        other.log_in().raise_for_status()
        other.start_and_wait(gpus=0)
        assert other.session("GET", "/api/status").status_code == 200
        assert is_well()
    until(lambda: ahead(portal) < timedelta(minutes=1), seconds=10, what="it is right again")
    assert other.http.get("/hub/home").url.path == "/hub/home"
    other.stop()
    other.start_and_wait(gpus=0)
    assert other.session("GET", "/api/status").status_code == 200
    assert is_well()
    # Nor does the hub wait for the hour to come again before it looks after its services.
    before = faults.service_of_hub("dsportal.cluster")
    os.kill(before, signal.SIGKILL)
    until(
        lambda: faults.service_of_hub("dsportal.cluster") not in (0, before),
        seconds=30,
        what="the hub has started its service again",
    )
