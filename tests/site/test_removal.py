"""The machines of a site after `deploy/remove`: what is left is what the page says.

Beside a Slurm of the site's own: `test_attach`. A machine alone: `tests/machine/test_remove.py`.
"""

import re

import pytest

from tests.debian.hosts import Hosts
from tests.debian.machines import Machine
from tests.machine.test_remove import PROGRAMS, named_like_ours, there
from tests.site.conftest import Site
from tests.visitor import Visitor

GONE = (
    "/etc/slurm",
    "/etc/exports.d/data-scientist-portal.exports",
    "/etc/systemd/system/home.mount",
    "/etc/nslcd.conf",
    "/etc/tmpfiles.d/data-scientist-portal.conf",
)
LEFT = "/etc/munge/munge.key"
MOUNTED = {"/opt/data-scientist-portal", "/var/cache/data-scientist-portal"}
"""In these the test has mounted what it lends to the hosts."""
# Users of a directory, firewall rules, mounts of other hosts, and exports.
LOOK = """
grep -E '^(passwd|group):.*ldap' /etc/nsswitch.conf
nft list tables
findmnt --noheadings --output TARGET,SOURCE --types nfs,nfs4
exportfs -s
true
"""


def running(host: Machine) -> str:
    """Return the command lines of what runs on a host."""
    return host.run("/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true")


@pytest.fixture
def removed(hosts: Hosts, portal: Site) -> Hosts:
    """The hosts without their portal: conftest.py runs this after all that need it."""
    visitor = Visitor(portal, "user3")
    visitor.log_in().raise_for_status()
    visitor.start_and_wait(gpus=0)
    visitor.close()
    nodes = (hosts.compute1, hosts.compute2)
    assert any("dsportal.session" in running(node) for node in nodes)
    hosts.remove()
    return hosts


@pytest.mark.timeout(900)
def test_nothing_is_left_on_any_machine_but_what_the_page_names(removed: Hosts) -> None:
    for host in removed.all():
        assert not re.search(PROGRAMS, running(host)), host.name
        assert set(named_like_ours(host)) <= MOUNTED, host.name
        assert there(host, *GONE, LEFT) == [LEFT], host.name
        assert host.run("/bin/sh", "-c", LOOK) == "", host.name
