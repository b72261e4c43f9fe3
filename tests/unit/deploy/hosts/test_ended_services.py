"""What a setting turns off, or moves to another host, ends; other services go on."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import roles
from tests.systemctl import Systemctl

ENDED: dict[str, dict[str, object]] = {
    # The example's settings.
    "wanted": {},
    "subids": {"apptainer_gives_subids": False},
    "homes": {"accounts_makes_homes": False},
    "away": {"accounts_nas": ""},
    "nobody": {"apptainer_subids_groups": [], "accounts_home_groups": []},
}


def ending(task: dict[str, Any]) -> bool:
    asked = task.get("ansible.builtin.include_role", {})
    return (asked.get("name"), asked.get("tasks_from")) == ("service", "end")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Which services end on hosts with these settings."""
    folder = tmp_path_factory.mktemp("ended")
    service = folder / "roles/service/tasks"
    service.mkdir(parents=True)
    (service / "end.yml").write_text('[{debug: {msg: "ends {{ service_ended | join }}"}}]')
    files = ("apptainer/tasks/main.yml", "accounts/tasks/main.yml", "accounts/tasks/nas.yml")
    every = [task for file in files for task in yaml.safe_load((roles.ROLES / file).read_text())]
    given = {
        "apptainer_gives_subids": True,
        "apptainer_subids_groups": ["people"],
        "accounts_makes_homes": True,
        "accounts_home_groups": ["people"],
        "accounts_nas": "/mnt/isilon",
    }
    said = roles.played(folder, ENDED, given, [task for task in every if ending(task)])
    found = re.findall(r"^ok: \[(\w+)\] =>\s+msg: ends (\S+)$", said, re.M)
    return {host: {service for name, service in found if name == host} for host in ENDED}


@pytest.mark.parametrize(
    ("host", "services"),
    [
        ("wanted", set()),
        ("subids", {"subids"}),
        ("homes", {"homes", "nas-folders"}),
        ("away", {"nas-folders"}),
        ("nobody", {"subids", "homes", "nas-folders"}),
    ],
)
def test_what_is_turned_off_ends(ended: dict[str, set[str]], host: str, services: set[str]) -> None:
    assert ended[host] == services


def test_a_unit_that_is_not_wanted_is_stopped_and_removed_once(tmp_path: Path) -> None:
    units = tmp_path / "units"
    units.mkdir()
    for name in ("portal-subids", "portal-hub"):
        (units / f"{name}.service").touch()
    systemctl = Systemctl(tmp_path, "loaded")
    given = {
        "instance_name": "portal",
        "service_units_folder": str(units),
        "service_ended": ["subids", "homes"],
    }
    tasks = [{"import_tasks": str(roles.ROLES / "service/tasks/end_systemd.yml")}]
    environment = {"PATH": systemctl.path}
    for expected in (["disable portal-subids.service", "stop portal-subids.service"], []):
        said = roles.played(tmp_path, {"here": {}}, given, tasks, environment=environment)
        assert "failed=0" in said, said
        told = [line for line in systemctl.told() if line != "daemon-reload"]
        assert told == expected
        assert ("changed=0" in said) == (not expected)
    assert [unit.name for unit in units.iterdir()] == ["portal-hub.service"]


@pytest.mark.parametrize(("has_systemd", "form"), [(True, "portal-{}.service"), (False, "{}.conf")])
def test_a_node_that_is_taken_from_a_host_ends_there(
    has_systemd: bool, form: str, tmp_path: Path
) -> None:
    definitions = tmp_path / "services"
    definitions.mkdir()
    for name in ("slurmd-node001", "slurmd-node002", "slurmctld"):
        (definitions / form.format(name)).touch()
    systemctl = Systemctl(tmp_path, "loaded")
    service = tmp_path / "roles/service"
    (service / "files").mkdir(parents=True)
    (service / "files/supervise.py").touch()
    (service / "tasks").symlink_to(roles.ROLES / "service/tasks")
    given = {
        **yaml.safe_load((roles.ROLES / "slurm_node/vars/main.yml").read_text()),
        "instance_name": "portal",
        "instance_has_systemd": has_systemd,
        "service_units_folder": str(definitions),
        "service_supervisor_folder": str(tmp_path),
        "service_supervised": {},
        "service_programs": Path(sys.executable).parent.as_posix(),
        "slurm_own_nodes": [{"name": "node001"}],
        "slurm_conf": "/etc/slurm/slurm.conf",
        "slurm_node_max_processes": 1024,
        "slurm_digest": "",
    }
    tasks = yaml.safe_load((roles.ROLES / "slurm_node/tasks/main.yml").read_text())
    asked = [task.get("ansible.builtin.include_role", {}).get("tasks_from") for task in tasks]
    ended = tasks[asked.index("end_others")]
    environment = {"PATH": systemctl.path}
    for _ in range(2):
        said = roles.played(tmp_path, {"here": {}}, given, [ended], environment=environment)
        assert "failed=0" in said, said
    assert "changed=0" in said, said
    left = {form.format(name) for name in ("slurmd-node001", "slurmctld")}
    assert {file.name for file in definitions.iterdir()} == left
    stops = "stop portal-slurmd-node002.service"
    assert (stops in systemctl.told()) == has_systemd


def test_logins_are_as_they_were_after_a_run_that_was_interrupted(tmp_path: Path) -> None:
    """It has taken the lines out of PAM's file, and has left logind masked."""
    (tmp_path / "access.conf").touch()
    systemctl = Systemctl(tmp_path, "masked", "inactive", "masked")
    given = {
        "instance_name": "portal-of-a-test",
        "slurm_node_access_file": str(tmp_path / "access.conf"),
    }
    tasks = yaml.safe_load((roles.ROLES / "slurm_node/tasks/no_logins.yml").read_text())
    for task in tasks:
        for module in ("stat", "blockinfile"):
            if f"ansible.builtin.{module}" in task:
                of = task[f"ansible.builtin.{module}"]
                of["path"] = of["path"].replace("/etc/pam.d/sshd", str(tmp_path / "sshd"))
    (tmp_path / "sshd").write_text("account required pam_unix.so\n")
    environment = {"PATH": systemctl.path}
    said = roles.played(tmp_path, {"here": {}}, given, tasks, environment=environment)
    assert systemctl.told() == ["unmask systemd-logind.service"], said
    assert not (tmp_path / "access.conf").exists()
    said = roles.played(tmp_path, {"here": {}}, given, tasks, environment=environment)
    assert systemctl.told() == [], said
