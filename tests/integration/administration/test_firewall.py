"""The firewall's rules, loaded by the deployment into a network namespace, and real packets."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT, SETTINGS
from tests.waiting import until

NAME = f"{SETTINGS.parent.name.removeprefix('data-scientist-')}-fw"
HOST, PEER = f"{NAME}-host", f"{NAME}-peer"
# All of them the peer's, one at a time. Nobody outside has these addresses.
HEAD, NODE, MONITOR = "10.78.0.10", "10.78.0.11", "10.78.0.14"
ADMIN, STRANGER = "10.78.1.12", "10.78.2.13"
PEERS = (HEAD, NODE, MONITOR, ADMIN, STRANGER)
HERE = "10.78.0.1"
SSH, PORTAL, SLURMCTLD, SLURMD, HUB, SESSION, OTHER = 22, 8000, 6817, 6818, 8081, 40000, 5000
EXPORTER = 9100
PORTS = (SSH, PORTAL, SLURMCTLD, SLURMD, HUB, SESSION, OTHER, EXPORTER)
LISTEN = """
import socket, sys
listening = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
"""
CONNECT = """
import json, socket, sys
here, *sources = json.loads(sys.argv[1])
def found(source, port):
    try:
        socket.create_connection((here, port), 5, (source, 0)).close()
        return "open"
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:
        return str(error)
print(json.dumps([[source, port, found(source, port)] for source in sources
                  for port in json.loads(sys.argv[2])]))
"""


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd="/")
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def inside(space: str, *argv: str) -> str:
    return run("/usr/sbin/ip", "netns", "exec", space, *argv)


@dataclass(frozen=True)
class Wire:
    """A host, and a peer that has everybody else's addresses."""

    folder: Path

    def deploy(self, verb: str, *more: str, **variables: Any) -> str:
        """Run the role in the host's namespace."""
        host = {"ansible_connection": "local"}
        groups: dict[str, Any] = {"firewall": {"hosts": {"wall": {}}}}
        content = {"all": {"hosts": {"wall": host}, "children": groups}}
        given = {
            "instance_name": NAME,
            "instance_folder_name": NAME,
            "instance_keep": False,
            "firewall_head_addresses": [HEAD],
            "firewall_node_addresses": [NODE],
            "firewall_monitoring_addresses": [MONITOR],
            "firewall_ssh_networks": ["10.78.1.0/24", "fd00:78::/64"],
        }
        (self.folder / "group_vars").mkdir(exist_ok=True)
        (self.folder / "hosts.yml").write_text(json.dumps(content))
        (self.folder / "group_vars" / "all.yml").write_text(json.dumps(given | variables))
        return inside(HOST, str(ROOT / "deploy" / verb), str(self.folder), *more)

    def up(self, **variables: Any) -> str:
        """Load the rules."""
        return self.deploy("up", "--stage=firewall", **variables)

    def reached(self) -> set[tuple[str, int]]:
        """Connect from every address to every port; what is not open must be refused at once."""
        asked = json.dumps([HERE, *PEERS])
        words = inside(PEER, sys.executable, "-Ic", CONNECT, asked, json.dumps(PORTS))
        found = json.loads(words)
        assert {how for _, _, how in found} <= {"open", "refused"}, found
        return {(source, port) for source, port, how in found if how == "open"}


@pytest.fixture
def wire(hosts: Wire) -> Wire:
    """Two hosts, one of which has nothing but a table of somebody else's."""
    table = "add table inet somebodys; add set inet somebodys kept { type mark; }"
    inside(HOST, "/usr/sbin/nft", f"flush ruleset; {table}")
    return hosts


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with contextlib.ExitStack() as leaving:
        for space in (HOST, PEER):
            run("/usr/sbin/ip", "netns", "add", space)
            leaving.callback(run, "/usr/sbin/ip", "netns", "del", space)
            inside(space, "/usr/sbin/ip", "link", "set", "lo", "up")
        inside(HOST, "/usr/sbin/ip", "link", "add", "w0", "type", "veth", "peer", "w1")
        inside(HOST, "/usr/sbin/ip", "link", "set", "w1", "netns", PEER)
        for space, link, addresses in (
            (HOST, "w0", [HERE]),
            (PEER, "w1", PEERS),
        ):
            for address in addresses:
                inside(space, "/usr/sbin/ip", "address", "add", f"{address}/16", "dev", link)
            inside(space, "/usr/sbin/ip", "link", "set", link, "up")
        leaving.enter_context(listening())
        yield Wire(tmp_path_factory.mktemp("wall"))


@contextlib.contextmanager
def listening() -> Iterator[None]:
    argv = ["/usr/sbin/ip", "netns", "exec", HOST, sys.executable, "-Ic", LISTEN, *map(str, PORTS)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.terminate()


def test_a_head_lets_in_browsers_and_its_cluster_and_a_foreign_table_stays(wire: Wire) -> None:
    every = {(source, port) for source in PEERS for port in PORTS}
    until(lambda: wire.reached() == every, seconds=10, what="everything is open without rules")
    wire.up(firewall_is_head=True)
    cluster = {(source, port) for source in (HEAD, NODE) for port in (SLURMCTLD, HUB, SESSION)}
    browsers = {(source, PORTAL) for source in PEERS}
    assert wire.reached() == cluster | browsers | {(ADMIN, SSH), (MONITOR, EXPORTER)}
    assert "set kept" in inside(HOST, "/usr/sbin/nft", "list", "table", "inet", "somebodys")


def test_a_node_lets_the_head_to_its_sessions_and_other_nodes_to_everything(wire: Wire) -> None:
    # And what a site adds.
    given = {"firewall_is_node": True, "firewall_extra_rules": [f"tcp dport {PORTAL} accept"]}
    wire.up(**given)
    from_head = {(HEAD, port) for port in (SLURMD, SESSION)}
    from_nodes = {(NODE, port) for port in PORTS}
    added = {(source, PORTAL) for source in (HEAD, MONITOR, ADMIN, STRANGER)}
    assert wire.reached() == from_head | from_nodes | added | {(ADMIN, SSH), (MONITOR, EXPORTER)}


def test_rules_that_nftables_does_not_take_change_nothing(wire: Wire) -> None:
    wire.up(firewall_is_node=True)
    before = wire.reached()
    with pytest.raises(RuntimeError, match="nonsense"):
        wire.up(firewall_is_head=True, firewall_extra_rules=["tcp dport nonsense accept"])
    assert wire.reached() == before


def test_deploy_down_takes_away_its_own_table_only(wire: Wire) -> None:
    wire.up(firewall_is_head=True)
    wire.deploy("down")
    assert inside(HOST, "/usr/sbin/nft", "list", "tables").split("\n")[:-1] == [
        "table inet somebodys"
    ]
