"""A portal on three hosts whose Slurm is the site's own: set up by hand, and left as it is.

`set_up_slurm.sh` makes it, with paths of its own, hidden jobs, typed GPUs and an accounting whose
QOS limits people; sessions and a kernel are software that the site's tool has installed
(`tests.debian.software`). Then `deploy/up` runs with a copy of the inventory ``attach``. The first
run is made while one host is off.
"""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bootstrap
import httpx
import pytest

from dsportal.cluster import words
from tests.debian import software
from tests.debian.hosts import INVENTORY, Hosts, write_inventory
from tests.debian.machines import Machine
from tests.instance import trust
from tests.site.conftest import Site, deployed_without, site_of, visited
from tests.site.recap import changed_tasks, outcome
from tests.visitor import Visitor, session_of
from tests.waiting import until

CONF = "/etc/physics/slurm.conf"
DAEMONS = {"head": 5, "compute1": 3, "compute2": 3}
"""How many of the units below a host runs."""
SET_UP = Path(__file__).with_name("set_up_slurm.sh")
# All that a site has of Slurm and of what Slurm needs, and the daemons that run.
STATE = """
cd /
find etc/physics etc/slurm* etc/default/slurm* etc/munge etc/default/munge etc/mysql etc/sssd \
    etc/nslcd.conf etc/nsswitch.conf etc/pam.d etc/profile.d/slurm.sh usr/sbin/slurm* \
    etc/systemd/system/*physics* etc/systemd/system/*/*physics* lib/systemd/system/slurm* \
    lib/systemd/system/munge* etc/systemd/system/*slurm* etc/systemd/system/*munge* \
    2> /dev/null -printf '%p %m %u %g %T@ %l\n' -type f -exec sha256sum {} + | sort
dpkg-query -W -f '${Package} ${Version} ${Status}\n'
find etc/systemd/system -lname /dev/null
for unit in munge nslcd mariadb physics-slurmdbd physics-slurmctld physics-slurmd; do
    systemctl show -p Id,MainPID,UnitFileState,NRestarts,ActiveState "$unit"
done
"""
# A unit of the distribution's name that runs; what it runs does not matter.
UNIT_RUNS = """
unit=/run/systemd/system/slurmd.service
printf '[Service]\\nExecStart=/bin/sleep infinity\\n' > $unit
systemctl daemon-reload
systemctl start slurmd
"""
UNIT_IS_GONE = """
systemctl stop slurmd
rm /run/systemd/system/slurmd.service
systemctl daemon-reload
"""
# What a portal has outside the shared folder, and its processes.
OURS = """
ls -d /etc/data-scientist-portal* /var/lib/data-scientist-portal* /etc/systemd/system/portal-* \
    /usr/local/libexec/data-scientist-portal* /etc/sudoers.d/*portal* 2> /dev/null
pgrep -f -l '[d]sportal|[p]roxy.mjs'
true
"""

VERSIONS = """
import json
from importlib.metadata import distributions
print(json.dumps([(one.name, one.version) for one in distributions()]))
"""


@dataclass(frozen=True)
class Attached:
    """The hosts, their portal, and what was known of the site before it."""

    hosts: Hosts
    portal: Site
    before: dict[str, str]
    without_one: str
    """What the first deployment said, while a host was off."""


def state_of(host: Machine) -> str:
    return host.run("/bin/sh", "-c", STATE)


def states_of(hosts: Hosts) -> dict[str, str]:
    return {host.name: state_of(host) for host in hosts.all()}


def set_up_slurm(hosts: Hosts) -> None:
    """Run the site's script on each host, as its administrators have, with one key of munge's."""
    key = secrets.token_hex(64)
    for host in hosts.all():
        part = "head" if host is hosts.head else "login" if host in hosts.portals else "compute"
        (host.files / "root/set_up_slurm.sh").write_bytes(SET_UP.read_bytes())
        host.run("/bin/sh", "/root/set_up_slurm.sh", part, stdin=key, seconds=180)
    wait_for_nodes(hosts)


def wait_for_nodes(hosts: Hosts) -> None:
    def all_idle() -> bool:
        ask = ("sinfo", "--noheader", "--Node", "--format=%T")
        try:
            said = hosts.head.run("/usr/bin/env", f"SLURM_CONF={CONF}", *ask)
        except RuntimeError:
            return False  # slurmctld does not listen yet
        return said.split() == ["idle", "idle"]

    until(all_idle, seconds=120, what="both nodes are idle")


@pytest.fixture(scope="module")
def attached(suite: str) -> Iterator[Attached]:
    with visited("attach", suite) as hosts:
        set_up_slurm(hosts)
        before = states_of(hosts)
        without_one = deployed_without(hosts, "compute2")
        hosts.deploy()
        wait_for_nodes(hosts)
        yield Attached(hosts, site_of(hosts), before, without_one)


@pytest.fixture
def user(attached: Attached) -> Iterator[Visitor]:
    visitor = Visitor(attached.portal, "user1")
    visitor.log_in().raise_for_status()
    yield visitor
    visitor.leave()
    visitor.close()


def test_one_host_that_is_off_does_not_keep_the_others_from_being_deployed(
    attached: Attached,
) -> None:
    found = outcome(attached.without_one)
    assert found["compute2"]["unreachable"] == 1, attached.without_one
    for host in ("head", "compute1"):
        assert (found[host]["failed"], found[host]["unreachable"]) == (0, 0), attached.without_one


def test_nothing_of_the_sites_was_changed(attached: Attached) -> None:
    for host, before in attached.before.items():
        assert "etc/physics/slurm.conf" in before
        assert before.count("ActiveState=active") == DAEMONS[host], before
        assert state_of(getattr(attached.hosts, host)) == before, host


@pytest.mark.timeout(300)
def test_one_starts_keeps_extends_and_ends_a_session(attached: Attached, user: Visitor) -> None:
    portal = attached.portal
    job_id = user.start_and_wait(gpus=2, hours=1, gpu_type="a100")
    assert portal.node_of(user) == "compute2"
    job = portal.slurm("scontrol", "show", "job", "--oneliner", job_id)
    assert "Account=ml QOS=interactive" in job.replace("  ", " ")
    assert user.run("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])") == "0,1\n"
    # The accounting keeps the job's script, and the script no secret.
    ask = ("sacct", "--batch-script", f"--jobs={job_id}")
    until(lambda: "#!/bin" in portal.slurm(*ask), seconds=30, what="the script is kept")
    token = user.run("import os; print(os.environ['JUPYTERHUB_API_TOKEN'])").strip()
    assert len(token) > 20
    assert token not in portal.slurm(*ask)
    # It is hidden from others, and the hub sees it all the same.
    assert portal.slurm("squeue", "--noheader", user="user2") == ""
    # Nor does the cluster page see any job, and says so: JupyterLab asks Slurm as the user.
    own = user.session("GET", "/portal/jobs").json()
    assert own["source"] == "slurm"
    assert job_id in [job["id"] for job in own["jobs"]]
    headers = {"Authorization": f"token {user.token()}"}
    address = f"{portal.host_of('cluster--service')}/services/cluster/api/v1/jobs"

    def tells_no_job() -> bool:
        seen = httpx.get(address, headers=headers, verify=trust()).raise_for_status().json()
        assert seen["jobs"] == []
        return bool(seen["trouble"] == words.JOBS_HIDDEN)

    until(tells_no_job, seconds=30, what="the page says that jobs are hidden")
    kernel = user.open_kernel()
    user.run_in(kernel, "kept = 6 * 7")
    attached.hosts.head.run("/bin/systemctl", "restart", "portal-hub", seconds=120)
    until(lambda: user.api("GET", "/").is_success, seconds=60, what="the hub answers")
    assert user.server() is not None
    assert user.run_in(kernel, "print(kept)") == "42\n"
    extended = user.session("POST", "/portal/clock/extend", json={"minutes": 30})
    assert extended.status_code == 200, extended.text
    assert "TimeLimit=01:30:00" in portal.slurm("scontrol", "show", "job", "--oneliner", job_id)
    user.stop()
    assert portal.jobs(user=user.name) == []


@pytest.mark.timeout(300)
def test_a_session_waits_while_its_qos_is_used_up(attached: Attached, user: Visitor) -> None:
    portal = attached.portal
    # The QOS allows a user 4 GPUs.
    other = portal.slurm(
        *("sbatch", "--parsable", "--account=ml", "--qos=interactive", "--gpus=3"),
        *("--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 600"),
        user=user.name,
    ).strip()
    assert user.start(gpus=2, hours=1).status_code in (201, 202)
    until(
        lambda: "QOSMaxGRESPerUser" in portal.slurm("squeue", "--noheader", "--format=%r"),
        seconds=60,
        what="Slurm holds the session back",
    )
    portal.slurm("scancel", other)
    user.wait_until_ready()


@pytest.mark.timeout(300)
def test_what_nobody_uses_is_culled(attached: Attached) -> None:
    with session_of(attached.portal, "admin1", gpus=1, hours=1) as admin:
        until(lambda: admin.server() is None, seconds=120, what="the unused session ended")
        assert attached.portal.jobs(user=admin.name) == []


@pytest.mark.timeout(300)
def test_sessions_and_kernels_are_what_the_sites_own_tool_has_installed(
    attached: Attached, user: Visitor
) -> None:
    said = attached.hosts.compute1.run(str(software.SESSION / "bin/python"), "-Ic", VERSIONS)
    has = {(re.sub("[._]", "-", name).lower(), version) for name, version in json.loads(said)}
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", bootstrap.lock_file("session").read_text(), re.M)
    assert len(locked) > 100
    assert set(locked) - has == set()
    extension = "share/jupyter/labextensions/data-scientist-portal/package.json"
    attached.hosts.compute1.run("/usr/bin/test", "-f", str(software.SESSION / extension))
    user.start_and_wait(gpus=1, hours=1)
    assert user.run("import sys; print(sys.prefix)") == f"{software.SESSION}\n"
    specs = user.session("GET", "/api/kernelspecs").json()["kernelspecs"]
    # The machines have Debian's R kernel besides.
    assert set(specs) - {"ir"} == {"python3", "analysis"}
    kernel = user.open_kernel(kernel="analysis")
    said = user.run_in(kernel, "import os, sys; print(sys.prefix, os.environ['LOADEDMODULES'])")
    assert said.split() == [str(software.FOLDER / "analysis"), "analysis/1.0"]


def test_every_host_has_the_users_command(attached: Attached) -> None:
    for host in attached.hosts.all():
        assert "7,200 MB/s" in host.run("/usr/local/bin/portal", "size", "--gpus", "80"), host.name


@pytest.mark.timeout(900)
def test_a_second_run_changes_nothing(attached: Attached) -> None:
    again = attached.hosts.deploy()
    assert {numbers["changed"] for numbers in outcome(again).values()} == {0}, changed_tasks(again)
    assert states_of(attached.hosts) == attached.before


def test_a_deployment_with_a_slurm_of_its_own_is_refused_on_every_host(attached: Attached) -> None:
    hosts, inventory = attached.hosts, INVENTORY.with_name(f"{INVENTORY.name}-with-slurm")
    write_inventory(hosts.enclosure, "example", inventory)
    hosts.compute2.run("/bin/sh", "-ec", UNIT_RUNS)
    with pytest.raises(RuntimeError) as refused:
        hosts.deploy(inventory=inventory)
    hosts.compute2.run("/bin/sh", "-ec", UNIT_IS_GONE)
    said = " ".join(str(refused.value).split())
    for host, daemon in {"head": "slurmctld", "compute1": "slurmd", "compute2": "slurmd"}.items():
        begin = f"{host} has a Slurm that this deployment has not set up"
        assert re.search(rf"{begin}: .*?its {daemon}, process \d+, listens at a port", said), said
    assert "its slurmctld.service or slurmd.service runs; its slurmd, process" in said
    assert states_of(hosts) == attached.before


@pytest.mark.timeout(900)
def test_the_portal_is_removed_and_the_sites_is_as_it_was(attached: Attached) -> None:
    attached.hosts.remove()
    assert states_of(attached.hosts) == attached.before
    for host in attached.hosts.all():
        assert host.run("/bin/sh", "-c", OURS) == "", host.name
