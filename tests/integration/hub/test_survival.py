"""Whatever ends or stops answering, live sessions stay usable and every record stays right.

Five sessions with a kernel each are started once; after each fault every kernel must still have its
state, and Slurm and the hub must agree on the jobs.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import pytest

from tests import faults
from tests.instance import USERS, Instance, trust
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Living:
    """A session that must survive."""

    user: Visitor
    job_id: str
    kernel_id: str

    def is_well(self) -> bool:
        """Say whether the kernel still has its state and the hub still has the session."""
        server = self.user.server()
        return (
            server is not None
            and server["ready"]
            and self.user.run_in(self.kernel_id, "print(kept)").strip() == self.user.name
        )


@pytest.fixture(scope="module")
def five(portal: Instance) -> Iterator[list[Living]]:
    """Five live sessions, each with a kernel that has a state."""
    with ExitStack() as leaving:
        living = []
        for name in USERS:
            user = Visitor(portal, name)
            leaving.callback(user.close)
            user.log_in().raise_for_status()
            leaving.callback(user.leave)
            job_id = user.start_and_wait(gpus=0)
            kernel_id = user.open_kernel()
            user.run_in(kernel_id, f"kept = {name!r}")
            living.append(Living(user, job_id, kernel_id))
        yield living


def assert_all_are_well(portal: Instance, five: list[Living]) -> None:
    """Every session is usable, and Slurm has exactly their jobs."""
    for living in five:
        assert living.is_well(), living.user.name
        assert portal.jobs(user=living.user.name) == [living.job_id]


def test_a_restart_of_the_hub_keeps_every_session(portal: Instance, five: list[Living]) -> None:
    faults.restart_hub(portal)
    assert_all_are_well(portal, five)


def test_a_killed_hub_keeps_every_session(portal: Instance, five: list[Living]) -> None:
    faults.kill("hub")
    faults.wait_for_hub(portal)
    assert_all_are_well(portal, five)


def test_a_killed_proxy_keeps_every_session(portal: Instance, five: list[Living]) -> None:
    faults.kill("proxy")
    faults.wait_for_hub(portal)

    def has_its_routes() -> bool:
        return all(living.user.session("GET", "/api/status").status_code == 200 for living in five)

    until(has_its_routes, seconds=30, what="the proxy has its routes again")
    assert_all_are_well(portal, five)


def test_a_killed_proxy_has_its_routes_before_the_hub_looks_for_them(
    portal: Instance, five: list[Living]
) -> None:
    with faults.site_file(portal, "c.JupyterHub.last_activity_interval = 3600\n"):
        faults.kill("proxy")

        def has_its_routes() -> bool:
            try:
                answers = [living.user.session("GET", "/api/status") for living in five]
            # While there is no proxy the front says so.
            except httpx.HTTPStatusError:
                return False
            return all(answer.status_code == 200 for answer in answers)

        until(has_its_routes, seconds=30, what="the proxy has its routes again")
        assert_all_are_well(portal, five)


def test_a_proxy_without_its_routes_says_not_now_by_itself(
    portal: Instance, five: list[Living]
) -> None:
    """However many ask for them: the hub, which is to tell the routes, hears nothing of it."""

    def asked(path: str) -> httpx.Response:
        return httpx.get(f"{portal.url}{path}", verify=trust(), timeout=5)

    def says_so() -> bool:
        return "just started" in asked("/services/cluster/").text

    with faults.frozen("hub"):
        faults.kill("proxy")
        until(says_so, seconds=10, what="the proxy answers")
        for path in ("/services/cluster/", f"/user/{five[0].user.name}/lab"):
            answer = asked(path)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3")
    faults.wait_for_hub(portal)
    assert_all_are_well(portal, five)
    # Once it was told all, the hub answers for what is not there.
    assert asked("/services/no-such").is_redirect


def test_a_killed_cluster_service_keeps_every_session(portal: Instance, five: list[Living]) -> None:
    before = until(
        lambda: faults.service_of_hub("dsportal.cluster"),
        seconds=20,
        what="the cluster service runs",
    )
    os.kill(before, signal.SIGKILL)
    until(
        lambda: faults.service_of_hub("dsportal.cluster") not in (0, before),
        seconds=20,
        what="the cluster service is started again",
    )
    faults.wait_for_hub(portal)
    assert_all_are_well(portal, five)


@pytest.mark.parametrize("name", ["hub", "proxy"])
def test_one_that_stands_still_is_started_again_and_keeps_every_session(
    portal: Instance, five: list[Living], name: str
) -> None:
    pid = faults.pid_of(name)
    faults.stop(pid)
    until(
        lambda: faults.service("pid", name) not in ("0", str(pid)),
        seconds=150,
        every=1,
        what=f"the watchdog has ended the {name}",
    )
    faults.wait_for_hub(portal)
    assert_all_are_well(portal, five)


def test_slurmctld_away_for_90_s_keeps_every_session(portal: Instance, five: list[Living]) -> None:
    faults.service("stop", "slurmctld")
    try:
        away_until = time.monotonic() + 90
        while time.monotonic() < away_until:
            for living in five:
                assert living.is_well(), living.user.name
            time.sleep(5)
    finally:
        faults.service("start", "slurmctld")
    until(lambda: len(portal.jobs()) == len(five), seconds=30, what="slurmctld is back")
    faults.wait_for_nodes(portal)
    assert_all_are_well(portal, five)


def test_a_restart_of_slurmctld_keeps_a_waiting_start(portal: Instance, five: list[Living]) -> None:
    waiting = five[0].user
    waiting.stop()
    with portal.gpus_taken():
        assert waiting.start(gpus=1).status_code == 202
        (job_id,) = until(
            lambda: portal.jobs(user=waiting.name), seconds=20, what="the start is in the queue"
        )
        faults.service("restart", "slurmctld")
        until(lambda: job_id in portal.jobs(user=waiting.name), seconds=30, what="it is back")
        faults.wait_for_nodes(portal)
        server = waiting.server()
        assert server is not None
        assert server["pending"] == "spawn"
    waiting.wait_until_ready()
    assert portal.jobs(user=waiting.name) == [job_id]
    kernel_id = waiting.open_kernel()
    waiting.run_in(kernel_id, f"kept = {waiting.name!r}")
    five[0] = Living(waiting, job_id, kernel_id)
    assert_all_are_well(portal, five)


def test_an_sbatch_that_hangs_for_30_s_costs_one_start_and_no_session(
    portal: Instance, five: list[Living]
) -> None:
    starting = five[0].user
    starting.stop()
    with faults.frozen("slurmctld"):
        assert starting.start(gpus=0).status_code == 202
        for living in five[1:]:
            assert living.is_well(), living.user.name
        time.sleep(32)
    until(lambda: starting.server() is None, seconds=60, what="the failed start is over")
    page = starting.http.get(f"/hub/spawn-pending/{starting.name}").text
    assert "Slurm could not do this" in page
    assert portal.jobs(user=starting.name) == []
    job_id = starting.start_and_wait(gpus=0)
    kernel_id = starting.open_kernel()
    starting.run_in(kernel_id, f"kept = {starting.name!r}")
    five[0] = Living(starting, job_id, kernel_id)
    assert_all_are_well(portal, five)


@pytest.mark.parametrize("words", ["fnord\n", "99999|COMPLETED|None|x|y|z|N/A|N/A\n"])
def test_an_squeue_that_prints_garbage_keeps_every_session(
    portal: Instance, five: list[Living], words: str
) -> None:
    with faults.stand_in_for_squeue(portal, words) as flag:
        flag.touch()
        # Longer than two of the hub's polls (10 s) at the quiet pace.
        time.sleep(25)
        flag.unlink()
        assert_all_are_well(portal, five)


def test_a_database_that_is_locked_for_a_while_loses_nothing(
    portal: Instance, five: list[Living]
) -> None:
    user = five[0].user
    with faults.database_locked(portal):
        until(
            lambda: user.api("POST", f"/users/{user.name}/tokens").status_code == 503,
            seconds=20,
            what="the hub has noticed",
        )
    faults.wait_for_hub(portal)
    assert_all_are_well(portal, five)
