"""Three hosts with the example's portal on them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import httpx
import pytest

from tests import names
from tests.debian import hosts as three
from tests.debian.hosts import Hosts
from tests.instance import Instance
from tests.pages import how_to, lines
from tests.visitor import Visitor, session_of

SUITES = ("bookworm", pytest.param("trixie", marks=pytest.mark.long))
# slurmctld asks a node that was silent again after a third of slurm_node_timeout_seconds (420):
# up to 140 s later, and more on a busy machine.
ASKED_AGAIN_SECONDS = 300
READ_SETTINGS = (
    "import json, tomllib; "
    "print(json.dumps(tomllib.load(open('/etc/data-scientist-portal/portal.toml', 'rb'))))"
)


@dataclass(frozen=True)
class Site(Instance):
    """The portal of the three hosts."""

    hosts: Hosts

    def slurm(self, *argv: str, user: str | None = None, stdin: str = "", home: str = "/") -> str:
        """Run one of Slurm's programs on the head, as root or as a user."""
        prefix = [] if user is None else ["/usr/sbin/runuser", "-u", user, "--"]
        conf = self.slurm_environment["SLURM_CONF"]
        env = ("/usr/bin/env", f"--chdir={home}", f"SLURM_CONF={conf}")
        return self.hosts.head.run(*prefix, *env, *argv, stdin=stdin)

    def states(self) -> dict[str, str]:
        """Return what Slurm thinks of each node."""
        lines = self.slurm("sinfo", "--noheader", "--Node", "-o", "%N %T").splitlines()
        return dict(line.split() for line in lines)

    def node_of(self, visitor: Visitor) -> str:
        """Return where somebody's only session runs."""
        return self.slurm("squeue", "--noheader", "-o", "%N", f"--user={visitor.name}").strip()


def site_of(hosts: Hosts) -> Site:
    """Return the portal that was deployed."""
    machine = hosts.portals[0] if hosts.portals else hosts.head
    return Site(json.loads(machine.run("/usr/bin/python3", "-c", READ_SETTINGS)), hosts)


def deployed_without(hosts: Hosts, name: str, *arguments: str) -> str:
    """Deploy while a host is off; return what is said, which ends with an error."""
    hosts.plug(name, "down")
    try:
        with pytest.raises(RuntimeError) as raised:
            hosts.deploy(*arguments)
    finally:
        hosts.plug(name, "up")
    return str(raised.value)


@contextmanager
def visited(inventory: str, suite: str) -> Iterator[Hosts]:
    """Boot hosts on which nothing was deployed, and be in their network."""
    with (
        three.booted(inventory, suite) as booted,
        booted.enclosure.network(),
        names.resolved(three.DOMAIN, three.MOVING if booted.portals else three.ADDRESSES["head"]),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SSL_CERT_FILE", str(booted.enclosure.path(three.AUTHORITY)))
        yield booted


def _suite_of(item: pytest.Item) -> str:
    return str(item.callspec.params.get("suite", "")) if hasattr(item, "callspec") else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all with the hosts of one Debian before those with the next: files share them.

    What removes the portal from them comes last.
    """
    items.sort(key=lambda item: (_suite_of(item), "removed" in item.fixturenames))  # type: ignore[attr-defined]


@pytest.fixture(scope="session", params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    """The Debian that the hosts have: each test runs with each."""
    suite = str(request.param)
    # Before any fixture is in the network of its hosts, which leads nowhere else.
    three.prepared(suite)
    return suite


@pytest.fixture(scope="session")
def hosts(suite: str) -> Iterator[Hosts]:
    """Three hosts for a whole cluster."""
    with visited("example", suite) as booted:
        yield booted


@pytest.fixture(scope="session")
def without_one(hosts: Hosts) -> str:
    """What a first deployment said while one host was off."""
    return deployed_without(hosts, "compute2")


@pytest.fixture(scope="session")
def half_way(hosts: Hosts) -> str:
    """What a deployment said that failed on one host, which had none before."""
    daemon = hosts.compute2.files / "usr/sbin/slurmd"
    away = daemon.rename(daemon.with_name("slurmd.away"))
    with pytest.raises(RuntimeError) as raised:
        hosts.deploy()
    away.rename(daemon)
    return str(raised.value)


@pytest.fixture(scope="session")
def portal(hosts: Hosts, half_way: str) -> Site:
    """The portal, after the deployment was repeated."""
    (argv,) = lines(how_to("deploy-a-cluster.md", 1))
    hosts.deploy(*arguments(argv))
    return site_of(hosts)


def arguments(argv: list[str]) -> list[str]:
    """Return what a page's command gives to ``deploy/up`` besides its inventory."""
    assert argv[:2] == ["deploy/up", "~/site"]
    return argv[2:]


@pytest.fixture(scope="session")
def user(portal: Site) -> Iterator[Visitor]:
    """Somebody with a session on the first node, until the end, or until the portal is removed."""
    portal.slurm("scontrol", "update", "NodeName=compute2", "State=DRAIN", "Reason=test")
    with suppress(httpx.ConnectError), session_of(portal, "user1") as visitor:
        portal.slurm("scontrol", "update", "NodeName=compute2", "State=RESUME")
        yield visitor


@pytest.fixture(scope="session")
def neighbour(portal: Site, user: Visitor) -> Iterator[Visitor]:
    """Somebody else with a session on the second node."""
    portal.slurm("scontrol", "update", "NodeName=compute1", "State=DRAIN", "Reason=test")
    with suppress(httpx.ConnectError), session_of(portal, "user2") as visitor:
        portal.slurm("scontrol", "update", "NodeName=compute1", "State=RESUME")
        yield visitor
