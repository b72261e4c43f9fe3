"""Two machines that may run one hub, beside a site's own Slurm and PostgreSQL, and one is lost.

`set_up_slurm.sh` and `set_up_database.sh` make what is the site's; then `deploy/up` runs with a
copy of the inventory ``attach`` whose group ``portal`` has two machines.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import WebSocketException

from tests.debian import hosts as five
from tests.debian.hosts import Hosts
from tests.debian.machines import Machine
from tests.pages import how_to, lines
from tests.site.conftest import Site, arguments, site_of, visited
from tests.site.recap import changed_tasks, outcome
from tests.site.test_attach import set_up_slurm
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.long

SET_UP = Path(__file__).with_name("set_up_database.sh")
HUB_UID = 970
NETWORK = "10.77.0.0/24"
WAITS = "this one is on standby"


@dataclass(frozen=True)
class Living:
    """A session with a kernel that remembers something."""

    user: Visitor
    kernel: str
    jobs: list[str]

    def is_well(self) -> bool:
        """Say whether the hub knows the session, and its kernel what it knew."""
        # The hub answers a moment before its proxy has all routes.
        with suppress(httpx.HTTPError, WebSocketException):
            server = self.user.server()
            if server is not None and server["ready"]:
                return self.user.run_in(self.kernel, "print(known)") == "42\n"
        return False


def set_up_database(hosts: Hosts) -> None:
    """Run the site's script on the head; give the password to the hub's user, who is to be."""
    password = secrets.token_hex(16)
    (hosts.head.files / "root/set_up_database.sh").write_bytes(SET_UP.read_bytes())
    address = five.ADDRESSES["head"]
    argv = ("/bin/sh", "/root/set_up_database.sh", address, NETWORK)
    hosts.head.run(*argv, stdin=f"{password}\n", seconds=120)
    file = "/mnt/shared/database.pgpass"
    install = ("/usr/bin/install", "-m", "600", "-o", str(HUB_UID), "/dev/stdin", file)
    hosts.portals[0].run(*install, stdin=f"{address}:5432:portal:portal:{password}\n")


def has_address(machine: Machine) -> bool:
    """Say whether the address that moves is at a machine."""
    return f" {five.MOVING}/" in machine.run("/sbin/ip", "-oneline", "-4", "address", "show")


def log_of(machine: Machine) -> str:
    """Return what its hub has said."""
    return machine.run("/bin/journalctl", "--unit=portal-hub", "--output=cat", "--no-pager")


def waits(machine: Machine) -> bool:
    """Say whether its hub is on standby, and has said nothing since."""
    return log_of(machine).rstrip().endswith(WAITS)


@pytest.fixture(scope="module")
def hosts(suite: str) -> Iterator[Hosts]:
    with visited("standby", suite) as booted:
        set_up_slurm(booted)
        set_up_database(booted)
        yield booted


@pytest.fixture(scope="module")
def portal(hosts: Hosts) -> Site:
    (argv,) = lines(how_to("add-a-standby.md", 1))
    hosts.deploy(*arguments(argv))
    return site_of(hosts)


@pytest.fixture(scope="module")
def living(portal: Site) -> Iterator[Living]:
    user = Visitor(portal, "user1")
    user.log_in().raise_for_status()
    user.start_and_wait(gpus=1, hours=1)
    kernel = user.open_kernel()
    user.run_in(kernel, "known = 6 * 7")
    yield Living(user, kernel, portal.jobs(user="user1"))
    user.leave()
    user.close()


def by_role(hosts: Hosts) -> tuple[Machine, Machine]:
    """Return the machine whose hub runs, and the other one."""
    having = [machine for machine in hosts.portals if has_address(machine)]
    assert len(having) == 1
    (other,) = (machine for machine in hosts.portals if machine not in having)
    return having[0], other


def test_one_runs_the_hub_and_the_other_waits(hosts: Hosts, living: Living) -> None:
    leader, other = by_role(hosts)
    assert WAITS in log_of(other)
    assert WAITS not in log_of(leader)


@pytest.mark.timeout(900)
def test_a_second_run_changes_nothing(hosts: Hosts, living: Living) -> None:
    again = hosts.deploy()
    assert {numbers["changed"] for numbers in outcome(again).values()} == {0}, changed_tasks(again)


@pytest.mark.timeout(400)
def test_the_hub_moves_when_its_services_are_stopped(hosts: Hosts, living: Living) -> None:
    leader, other = by_role(hosts)
    (argv,) = lines(how_to("add-a-standby.md", 0))
    leader.run(*argv, seconds=120)
    until(living.is_well, seconds=120, what="the other machine's hub has the session")
    leader.run(argv[0], "start", *argv[2:])
    until(lambda: waits(leader), seconds=60, what="its hub waits")
    assert by_role(hosts) == (other, leader)


@pytest.mark.timeout(400)
def test_a_machine_that_is_lost_is_replaced_and_waits_when_it_comes_back(
    hosts: Hosts, portal: Site, living: Living
) -> None:
    leader, other = by_role(hosts)
    hosts.plug(leader.name, "down")
    lost_at = time.monotonic()
    leader.lose_power()
    until(living.is_well, seconds=120, what="the other machine's hub has the session")
    print(f"nobody reached the portal for {time.monotonic() - lost_at:.1f} s")  # noqa: T201 - for the report
    assert has_address(other)
    assert portal.jobs(user="user1") == living.jobs
    newcomer = Visitor(portal, "user2")
    newcomer.log_in().raise_for_status()
    newcomer.start_and_wait(gpus=1, hours=1)
    newcomer.leave()
    newcomer.close()
    leader.boot()
    until(lambda: waits(leader), seconds=60, what="its hub waits")
    assert by_role(hosts) == (other, leader)
    assert living.is_well()


@pytest.mark.timeout(400)
def test_a_machine_that_is_cut_off_from_the_database_hands_over(
    hosts: Hosts, living: Living
) -> None:
    leader, other = by_role(hosts)
    away = ("blackhole", f"{five.ADDRESSES['head']}/32")
    leader.run("/sbin/ip", "route", "add", *away)
    try:
        until(lambda: has_address(other), seconds=120, what="the other machine has the address")
        until(living.is_well, seconds=60, what="its hub has the session")
        # The one that is cut off still listens, and knows no better.
        assert not waits(leader)
    finally:
        leader.run("/sbin/ip", "route", "delete", *away)
    until(lambda: waits(leader), seconds=60, what="its hub waits")
    assert by_role(hosts) == (other, leader)
    assert living.is_well()
