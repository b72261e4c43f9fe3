"""A Slurm that the site runs itself is refused before anything changes."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bootstrap
import pytest
import yaml

from tests import roles
from tests.network.sockets import free_port

ROLES = roles.ROLES
OURS = "StateSaveLocation=/var/lib/data-scientist-portal/slurmctld\n"
# The text of slurm.conf, if there is one.
FILES = {
    "new": None,
    "ours": f"# Ansible managed\nClusterName=portal\n{OURS}",
    "theirs": "ClusterName=site\nStateSaveLocation=/var/spool/slurmctld\n",
    "commented": f"#{OURS}StateSaveLocation=/var/spool/slurmctld\n",
}


# Stands for slurmctld: a process of its name that listens, with a file of settings.
LISTENER = """\
import socket, sys, time
open("/proc/self/comm", "w").write("slurmctld")
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def slurmctld(conf: Path) -> Iterator[tuple[int, int]]:
    """Give its port and its process."""
    argv = [sys.executable, "-c", LISTENER, "-f", str(conf)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said to each host that is refused: one for each file, to start Ansible once."""
    folder = tmp_path_factory.mktemp("foreign")
    hosts: dict[str, dict[str, object]] = {}
    for name, text in FILES.items():
        conf = folder / f"{name}.conf"
        hosts[name] = {"slurm_conf": str(conf)}
        if text is not None:
            conf.write_text(text)
    hosts["removed"] = hosts["theirs"] | {"slurm_owner_removes": True}
    variables = {
        "instance_state": "/var/lib/data-scientist-portal",
        "instance_has_systemd": False,
        "slurm_ports_here": [free_port()],
    }
    tasks = [{"import_tasks": str(ROLES / "slurm/tasks/owner.yml")}]
    elsewhere, own = folder / "physics/slurm.conf", folder / "new.conf"
    with slurmctld(elsewhere) as (port, _), slurmctld(own) as (own_port, _):
        hosts["elsewhere"] = hosts["new"] | {"slurm_ports_here": [free_port(), port]}
        hosts["again"] = hosts["new"] | {"slurm_ports_here": [own_port]}
        found = roles.refusals(roles.played(folder, hosts, variables, tasks))
    return {name: " ".join(words.split()) for name, words in found.items()}


def test_a_slurm_of_the_site_is_refused(refusals: dict[str, str]) -> None:
    assert refusals.keys() == {"theirs", "commented", "removed", "elsewhere"}


def test_a_slurm_of_other_settings_is_known_by_the_port(refusals: dict[str, str]) -> None:
    said = refusals["elsewhere"]
    assert re.search(r"its slurmctld, process \d+, listens at a port of this one\.", said)
    assert "keeps no state" not in said


def test_the_refusal_names_the_file_and_says_what_to_do(refusals: dict[str, str]) -> None:
    said = refusals["theirs"]
    assert "theirs.conf keeps no state in /var/lib/data-scientist-portal" in said
    assert "deploy a copy of deploy/ansible/inventories/attach" in said
    assert "docs/how-to/attach-to-your-slurm.md" in said


def test_who_removes_is_told_how_to_leave_that_slurm_out(refusals: dict[str, str]) -> None:
    assert "take its machines out of the inventory" in refusals["removed"]
    assert "inventories/attach" not in refusals["removed"]


def test_both_kinds_of_machine_are_looked_at_with_every_stage() -> None:
    plays = yaml.safe_load((ROLES.parent / "site.yml").read_text())
    imported = {play["import_playbook"]: play["tags"] for play in plays}
    assert imported["stages/owner.yml"] == ["always"]
    places = list(imported)
    assert places.index("stages/owner.yml") < places.index("stages/instance.yml")
    (play,) = yaml.safe_load((ROLES.parent / "stages/owner.yml").read_text())
    assert play["hosts"] == "slurm_controller:slurm_node"


def test_what_stops_and_removes_looks_at_whose_slurm_it_is_before_a_job_is_ended() -> None:
    plays = yaml.safe_load((ROLES.parent / "down.yml").read_text())
    order = [play.get("import_playbook", play["name"]) for play in plays]
    assert order.index("stages/owner.yml") < order.index("No job is left")
    plays = yaml.safe_load((ROLES.parent / "remove.yml").read_text())
    order = [play.get("import_playbook", play["name"]) for play in plays]
    erasing = "Nothing is left that the instances of a machine share"
    assert order.index("down.yml") < order.index(erasing)


def test_a_refused_machine_stops_what_would_change_the_others() -> None:
    (play,) = yaml.safe_load((ROLES.parent / "stages/owner.yml").read_text())
    assert play["any_errors_fatal"] is True


def test_the_attaching_inventory_has_no_machine_of_slurms() -> None:
    file = bootstrap.DEPLOY / "ansible/inventories/attach/hosts.yml"
    groups = yaml.safe_load(file.read_text())["all"]["children"].keys()
    theirs = {"directory", "accounts", "munge"}
    theirs |= {"slurm_controller", "slurm_accounting", "slurm_node"}
    assert not groups & theirs


@pytest.mark.parametrize(
    "system", sorted((ROLES / "packages/vars/systems").glob("*.yml")), ids=lambda file: file.stem
)
def test_the_attaching_inventory_installs_no_package_of_theirs(system: Path) -> None:
    file = bootstrap.DEPLOY / "ansible/inventories/attach/hosts.yml"
    groups = yaml.safe_load(file.read_text())["all"]["children"].keys()
    wanted = {
        package
        for role, packages in yaml.safe_load(system.read_text())["packages_of"].items()
        if any(role == group or role.startswith(f"{group}_") for group in groups)
        for package in packages
    }
    assert "nginx" in wanted
    theirs = re.compile("slurm|munge|sssd|nslcd|ldap")
    assert [package for package in sorted(wanted) if theirs.search(package)] == []
