"""Two machines that may run the hub: here two processes, with one database and one folder of state.

The second is started as the service starts the first, and waits for its turn.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import faults, hub_database
from tests.hub_database import sql
from tests.instance import LOGS, USERS, Instance, await_hub_log
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.long

WAITS = "this one is on standby"
TAKES_ITS_PLACE = "this machine is taking over"
ENDS = "has taken over the hub"
HOLDERS = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"


@pytest.fixture(scope="module")
def leading(portal: Instance) -> Iterator[Instance]:
    """The portal whose hub has the lock in its database."""
    with hub_database.on_postgresql(portal, standby=True):
        yield portal


@pytest.fixture
def living(leading: Instance) -> Iterator[tuple[Visitor, str]]:
    """A user with a live session, and a kernel in it that has a state."""
    user = Visitor(leading, USERS[0])
    user.log_in().raise_for_status()
    user.start_and_wait(gpus=0)
    kernel = user.open_kernel()
    user.run_in(kernel, "state = 'is there'")
    yield user, kernel
    user.leave()
    user.close()


@contextmanager
def standby(portal: Instance, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a second hub, which waits."""
    hub = Path("/proc", str(faults.pid_of("hub")))
    argv = (hub / "cmdline").read_text().rstrip("\0").split("\0")
    variables = (hub / "environ").read_text().rstrip("\0").split("\0")
    state = Path(portal.settings["hub"]["state_dir"])
    with (
        log.open("wb") as output,
        subprocess.Popen(
            argv,
            env=dict(variable.split("=", 1) for variable in variables),
            cwd=state,
            user=state.owner(),
            group=state.group(),
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            until(lambda: WAITS in log.read_text(), seconds=30, what="the second hub waits")
            yield process
        finally:
            process.terminate()


def is_well(user: Visitor, kernel: str) -> bool:
    """Say whether the hub knows the session, and the session its state."""
    server = user.server()
    assert server
    return server["ready"] and user.run_in(kernel, "print(state)").strip() == "is there"


def test_another_takes_the_place_of_a_hub_that_is_gone_and_no_session_ends(
    leading: Instance, living: tuple[Visitor, str], tmp_path: Path
) -> None:
    user, kernel = living
    jobs = leading.jobs(user=user.name)
    log = tmp_path / "second.log"
    before = (LOGS / "hub.log").stat().st_size
    with standby(leading, log) as second:
        # One that is restarted stays the hub.
        faults.restart_hub(leading)
        assert TAKES_ITS_PLACE not in log.read_text()
        faults.service("stop", "hub")
        faults.wait_for_hub(leading)
        assert TAKES_ITS_PLACE in log.read_text()
        assert is_well(user, kernel)
        user.log_in().raise_for_status()
        # The first is there again, and waits.
        faults.service("start", "hub")
        await_hub_log(WAITS, since=before, seconds=30)
        second.terminate()
        second.wait(30)
    faults.wait_for_hub(leading)
    await_hub_log(TAKES_ITS_PLACE, since=before)
    assert is_well(user, kernel)
    assert leading.jobs(user=user.name) == jobs


def test_a_broken_connection_costs_nothing(leading: Instance, living: tuple[Visitor, str]) -> None:
    user, kernel = living
    hub, holder = faults.pid_of("hub"), sql(HOLDERS)
    sql(f"SELECT pg_terminate_backend({holder})")
    until(lambda: sql(HOLDERS) not in ("", holder), seconds=10, what="the hub has the lock again")
    assert is_well(user, kernel)
    assert faults.pid_of("hub") == hub


def test_a_hub_whose_lock_another_has_ends_and_waits(
    leading: Instance, living: tuple[Visitor, str]
) -> None:
    user, kernel = living
    hub, holder = faults.pid_of("hub"), sql(HOLDERS)
    key = sql(
        "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory'"
    )
    before = (LOGS / "hub.log").stat().st_size
    # In one transaction: the lock is taken as soon as it is free, and kept for these seconds.
    sql(f"SELECT pg_terminate_backend({holder}), pg_advisory_lock({key}), pg_sleep(20)")
    await_hub_log(ENDS, since=before)
    await_hub_log(TAKES_ITS_PLACE, since=before, seconds=40)
    faults.wait_for_hub(leading)
    assert faults.pid_of("hub") != hub
    assert is_well(user, kernel)
