"""A portal attached to a Slurm that the site runs itself: all of it on this machine.

Of the site are a Slurm with an accounting, where jobs are hidden, and what the test instance has
besides its portal: users, a directory, munge. `deploy/up` of the inventory `attach`, with the
values that a reader sets, then makes the portal on top.
"""

import grp
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from tests import faults
from tests.instance import ADMIN, FILLER, IDLER, LIMITED, PREFIX, ROOT, USERS, Instance
from tests.network.sockets import free_ports
from tests.pages import how_to, lines
from tests.servers import accounting
from tests.servers.accounting import AccountedCluster
from tests.visitor import Visitor
from tests.waiting import until

NAME = f"{PREFIX}attached"
ETC = Path(f"/etc/data-scientist-{NAME}")
USER = USERS[0]
PORTS = (
    *("portal_port", "portal_hub_port", "portal_proxy_api_port", "portal_cluster_port"),
    *("monitoring_prometheus_port", "monitoring_alertmanager_port"),
    *("monitoring_node_port", "monitoring_slurm_port"),
)
SLURM_PROGRAMS = (
    *("sacct", "sacctmgr", "sbatch", "scancel", "scontrol"),
    *("sdiag", "sinfo", "squeue", "srun"),
)
# What a site has of Slurm, munge, sssd and nslcd besides the cluster's own folder.
SYSTEM = ("slurm", "munge", "sssd", "nslcd.conf", "nsswitch.conf")
UNITS = ("/etc/systemd/system", "/lib/systemd/system")
THEIRS = ("slurm", "munge", "sssd", "nslcd")


@dataclass(frozen=True)
class Site:
    """The site's Slurm and a portal on top; how the site was before."""

    slurm: AccountedCluster
    portal: Instance
    before: dict[str, str]
    inventory: Path
    bin_dir: Path
    """With the site's programs of Slurm."""
    slurm_port: int
    """Where Slurm's figures are."""
    said: str
    """By the deployment."""


def deploy(program: str, inventory: Path, *arguments: str) -> str:
    return said_by([f"deploy/{program}", str(inventory), *arguments])


def followed(commands: str) -> str:
    """Do what the page says, in the repository."""
    (argv,) = lines(commands)
    return said_by(argv)


def said_by(argv: list[str]) -> str:
    done = subprocess.run(
        argv,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def state_of(slurm: AccountedCluster) -> dict[str, str]:
    """Give a checksum of each of the site's files, its packages, and its daemons."""
    files = [Path("/etc", name) for name in SYSTEM]
    files += [
        unit for name in THEIRS for folder in UNITS for unit in Path(folder).rglob(f"*{name}*")
    ]
    files += [*slurm.conf.parent.glob("*.conf"), *slurm.conf.parent.glob("*.cnf")]
    found = {}
    for file in files:
        for one in [file, *file.rglob("*")]:
            if one.is_symlink():
                found[str(one)] = str(one.readlink())
            elif one.is_file():
                status = one.stat()
                owned = f"{status.st_mode} {status.st_uid} {status.st_mtime_ns} "
                found[str(one)] = owned + hashlib.sha256(one.read_bytes()).hexdigest()
    asks = ["/usr/bin/dpkg-query", "-W", "-f=${Package} ${Version} ${Status}\n"]
    answer = subprocess.run(
        [*asks, *(f"*{name}*" for name in THEIRS)], capture_output=True, text=True, check=False
    )
    found["packages"] = answer.stdout
    found["daemons"] = " ".join(daemons())
    found["munged"] = str(faults.pid_of("munged"))
    return found


def daemons() -> list[str]:
    """Give the numbers of the cluster's processes, which this one has started."""
    argv = ["/usr/bin/pgrep", "--parent", str(os.getpid()), "-x", "slurm(ctld|d|dbd)"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()


def slurm_programs(slurm: AccountedCluster) -> Path:
    """Make a folder of the site's own with Slurm's programs."""
    folder = slurm.conf.parent / "programs"
    folder.mkdir()
    for name in SLURM_PROGRAMS:
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return folder


def write_inventory(
    folder: Path, portal: Instance, slurm: AccountedCluster, bin_dir: Path, ports: list[int]
) -> None:
    """Copy the inventory, and set what it says."""
    shutil.copytree(ROOT / "deploy/ansible/inventories/attach", folder)
    hosts = yaml.safe_load((folder / "hosts.yml").read_text())
    for name in ("head_node", "compute_nodes"):
        hosts["all"]["children"][name]["hosts"] = {"head": {"ansible_connection": "local"}}
    hosts["all"]["children"]["monitoring"] = {"children": {"head_node": {}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
    directory = portal.settings["authentication"]["ldap"]
    values = {
        "instance_name": NAME,
        "instance_folder_name": f"data-scientist-{NAME}",
        "instance_keep": False,
        "doctor_hub_url": "",
        "portal_hub_user": f"hub-{NAME}"[:31],
        "portal_address": "127.0.0.1",
        **dict(zip(PORTS, ports, strict=True)),
        "portal_public_name": "127.0.0.1",
        "portal_slurm_conf": str(slurm.conf),
        "portal_slurm_bin_dir": str(bin_dir),
        "portal_directory_servers": directory["servers"],
        "portal_directory_base": directory["user_base"].partition(",")[2],
        "portal_allowed_groups": portal.settings["authentication"]["allowed_groups"],
        "portal_admin_groups": portal.settings["authentication"]["admin_groups"],
        "portal_nas_folder": "/srv",
        "environments_cuda": False,
    }
    # A value that is replaced is no longer the example's.
    for file in (folder / "group_vars/all").glob("*.yml"):
        given = yaml.safe_load(file.read_text())
        given |= {key: values.pop(key) for key in list(values) if key in given}
        file.write_text(yaml.safe_dump(given))
    (folder / "group_vars/all/here.yml").write_text(json.dumps(values))


@pytest.fixture(scope="module")
def site(portal: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site, with a portal on top."""
    with ExitStack() as stack:
        slurm = stack.enter_context(accounting.running(portal, "PrivateData=jobs"))
        group = grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name
        slurm.register(accounts=[{"name": group}], qos=[])
        inventory = tmp_path_factory.mktemp("attach") / "site"
        bin_dir, ports = slurm_programs(slurm), free_ports(len(PORTS))
        write_inventory(inventory, portal, slurm, bin_dir, ports)
        before = state_of(slurm)
        stack.callback(deploy, "down", inventory)
        here = {"~/site": str(inventory)}
        followed(how_to("attach-to-your-slurm.md", 1, here))
        said = followed(how_to("attach-to-your-slurm.md", 2, here))
        settings = tomllib.loads((ETC / "portal.toml").read_text())
        words = " ".join(said.split())
        yield Site(slurm, Instance(settings), before, inventory, bin_dir, ports[-1], words)


@pytest.fixture
def user(site: Site) -> Iterator[Visitor]:
    visitor = Visitor(site.portal, USER)
    visitor.log_in().raise_for_status()
    yield visitor
    visitor.leave()
    visitor.close()


@pytest.mark.timeout(900)
def test_nothing_of_the_sites_was_changed(site: Site) -> None:
    assert str(site.slurm.conf) in site.before
    assert len(site.before["daemons"].split()) == 3
    assert state_of(site.slurm) == site.before


def test_the_deployment_says_what_to_know_of_the_sites_slurm(site: Site) -> None:
    refused = ", ".join(sorted((ADMIN, IDLER, LIMITED)))
    assert "warning accounts: AccountingStorageEnforce=" in site.said
    assert f"Slurm refuses the sessions of {refused}, who have no account" in site.said
    assert "warning confinement: " in site.said


def test_what_is_measured_is_the_sites_slurm(site: Site) -> None:
    said = httpx.get(f"http://127.0.0.1:{site.slurm_port}/metrics").text
    assert re.search(r'^slurm_nodes\{.*state="idle".*\} [1-9]', said, re.M), said


def test_a_session_finds_slurm_where_the_site_has_it(site: Site, user: Visitor) -> None:
    user.start_and_wait(gpus=0)
    found = user.run("import shutil; print(shutil.which('sbatch'), shutil.which('srun'))")
    assert found.split() == [str(site.bin_dir / name) for name in ("sbatch", "srun")]


def test_the_doctor_asks_the_sites_slurm(site: Site) -> None:
    argv = [f"/usr/local/sbin/{NAME}", "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    states = {line["check"]: line["state"] for line in json.loads(done.stdout)}
    assert states["slurmctld"] == states["slurm.conf"] == "ok"
    assert "munge" not in states


def test_the_installed_doctor_says_it_all(site: Site) -> None:
    group = grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name
    argv = [f"/usr/local/sbin/{NAME}", "doctor", "--json", "--attach", str(site.slurm.conf)]
    done = subprocess.run(
        [*argv, "--groups", group], capture_output=True, text=True, check=False, timeout=120
    )
    found = {line["check"]: (line["state"], line["found"]) for line in json.loads(done.stdout)}
    assert found["accounts"][0] == "ok"
    assert f"everybody of {group} has an account" in found["accounts"][1]
    assert found["clusters"] == ("ok", "accounted alone")
    assert found["mixed partitions"][0] == "ok"
    assert "alike" in found["mixed partitions"][1]
    assert found["features"] == ("ok", "no node has one")
    assert found["reservations"] == ("ok", "none now")
    assert found["logins to nodes"][0] == found["job launch"][0] == "ok"
    assert "neither scripts nor environments" in found["stored scripts"][1]
    assert done.returncode == 0


@pytest.mark.timeout(300)
def test_hidden_jobs_need_an_operator_and_limits_names_that_slurm_has(
    site: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "without"
    shutil.copytree(site.inventory, folder)
    limits = {"default": {"account": "no-such", "qos": "normal", "partitions": ["sxm2"]}}
    values = {"portal_slurm_operator": "", "portal_settings": {"limits": limits}}
    (folder / "group_vars/all/zz_without.yml").write_text(json.dumps(values))
    with pytest.raises(AssertionError) as refusal:
        deploy("up", folder, "--stage", "validate")
    said = " ".join(str(refusal.value).split())
    assert "set portal_slurm_operator" in said
    assert "limits name the account no-such, unknown to Slurm" in said


@pytest.mark.timeout(600)
def test_one_starts_keeps_extends_and_ends_a_session(site: Site, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=2, hours=1)

    def job() -> str:
        return site.slurm.slurm("scontrol", "show", "job", "--oneliner", job_id)

    assert f"JobName={NAME}-{USER}" in job()
    assert "gres/gpu=2" in job()
    assert user.run("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])").strip() == "0,1"
    # A stranger sees nothing.
    assert site.slurm.slurm("squeue", "--noheader", user=FILLER) == ""
    faults.service("restart", "hub", ETC)
    until(lambda: user.api("GET", "/").status_code == 200, seconds=60, what="the hub answers")
    assert user.server() is not None
    assert user.session("GET", "/api/status").status_code == 200
    extended = user.session("POST", "/portal/clock/extend", json={"minutes": 30})
    assert extended.status_code == 200, extended.text
    assert "TimeLimit=01:30:00" in job()
    user.stop()
    assert site.portal.jobs(user=USER) == []


@pytest.mark.long  # An attached site's hosts are deployed again, too.
@pytest.mark.timeout(600)
def test_a_second_run_changes_nothing(site: Site) -> None:
    assert "changed=0" in deploy("up", site.inventory)
    assert state_of(site.slurm) == site.before


@pytest.mark.timeout(600)
def test_what_would_deploy_or_remove_a_slurm_is_refused_there(site: Site, tmp_path: Path) -> None:
    # By a name of its own: nothing of the instance is at stake where it is not refused.
    named = {"instance_name": "portal-over", "instance_folder_name": "data-scientist-portal-over"}
    port = re.search(r"(?m)^SlurmctldPort=(\d+)", site.slurm.conf.read_text())
    assert port is not None
    places: dict[str, dict[str, object]] = {
        "settings": {"slurm_conf_dir": str(site.slurm.conf.parent)},
        "port": {"slurm_conf_dir": str(tmp_path / "none"), "slurm_controller_port": int(port[1])},
    }
    for place, values in places.items():
        shutil.copytree(ROOT / "deploy/ansible/inventories/test", tmp_path / place)
        over = json.dumps({**named, **values})
        (tmp_path / place / "group_vars/all/zz_over.yml").write_text(over)
    signs = {
        "settings": f"{site.slurm.conf} keeps no state in",
        "port": "its slurmctld, process",
    }
    programs = (
        ("settings", ["up"]),
        ("port", ["up", "--stage", "slurm"]),
        ("settings", ["down"]),
        ("port", ["remove", "--keep-data"]),
    )
    for place, (program, *asked) in programs:
        with pytest.raises(AssertionError) as refusal:
            deploy(program, tmp_path / place, *asked)
        said = " ".join(str(refusal.value).split())
        assert "has a Slurm that this deployment has not set up" in said
        assert signs[place] in said
        way_out = "a copy of deploy/ansible/inventories/attach"
        assert (way_out if program == "up" else "take its machines out of the") in said
        assert state_of(site.slurm) == site.before
