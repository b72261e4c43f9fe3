"""A host's own services for monitoring are left alone; a port that both want is refused."""

import re
from pathlib import Path

import pytest
import yaml

from tests import roles
from tests.debian import roots

ROLE = roles.ROLES / "monitoring"
UNITS = {"prometheus-node-exporter", "prometheus", "prometheus-alertmanager"}
EXPORTER = ["prometheus-node-exporter"]
PACKAGE_UNITS = [f"monitoring_{kind}_package_units" for kind in ("host", "server", "dcgm")]
OTHER_PORTS: dict[str, object] = {
    "monitoring_node_port": 9101,
    "monitoring_prometheus_port": 9091,
    "monitoring_alertmanager_port": 9094,
}
# What is installed, what systemd says of each of the units, and the host's variables.
HOSTS: dict[str, tuple[list[str], str, dict[str, object]]] = {
    "new": ([], "inactive", {"monitoring_is_server": True}),
    "ours": ([*UNITS], "inactive", {"monitoring_is_server": True}),
    "exporting": (EXPORTER, "inactive", {"monitoring_is_server": True}),
    "node": ([], "inactive", {}),
    "meeting": (EXPORTER, "active", {}),
    "beside": (EXPORTER, "active", OTHER_PORTS),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run says that changes nothing: of all hosts, to start Ansible once."""
    folder = tmp_path_factory.mktemp("monitoring")
    systemctl = folder / "systemctl"
    systemctl.write_text('#!/bin/sh\necho "$SAYS"\n')
    systemctl.chmod(0o755)
    hosts = {
        name: {"installed": {package: [] for package in installed}, "says": says} | variables
        for name, (installed, says, variables) in HOSTS.items()
    }
    given = {
        **yaml.safe_load((ROLE / "defaults/main.yml").read_text()),
        "packages_of": roots.system("debian-12")["packages_of"],
        "monitoring_is_server": False,
    }
    ours = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    given |= {key: value for key, value in ours.items() if key != "monitoring_is_server"}
    tasks = [
        {"set_fact": {"packages": "{{ installed }}", "cacheable": True}},
        {"import_tasks": str(ROLE / "tasks/units.yml")},
        {"import_tasks": str(ROLE / "tasks/validate_units.yml")},
    ]
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "SAYS": "{{ says }}"}
    return roles.played(folder, hosts, given, tasks, "--check", environment=environment)


@pytest.mark.parametrize(
    ("host", "units"),
    [
        ("new", UNITS),
        ("ours", set()),
        ("exporting", UNITS - {*EXPORTER}),
        ("node", {*EXPORTER}),
        ("meeting", set()),
    ],
)
def test_only_the_unit_of_a_new_package_is_masked(said: str, host: str, units: set[str]) -> None:
    assert set(re.findall(rf"^changed: \[{host}\] => \(item=(\S+)\)", said, re.M)) == units


@pytest.mark.parametrize("is_link", [False, True])
def test_a_unit_that_the_site_has_made_itself_stays(is_link: bool, tmp_path: Path) -> None:
    """As of a program that no package has brought: our mask would take its place."""
    own, new = tmp_path / "own.service", tmp_path / "new.service"
    written = tmp_path / "elsewhere" if is_link else own
    written.write_text("[Unit]\n")
    if is_link:
        own.symlink_to(written)
    units = [
        # Found from /etc/systemd/system.
        {"unit": f"../../..{path.with_suffix('')}", "package": path.stem}
        for path in (own, new)
    ]
    tasks = [
        {"set_fact": {"packages": {}, "cacheable": True}},
        {"import_tasks": str(ROLE / "tasks/units.yml")},
    ]
    said = roles.played(tmp_path, {"here": {}}, {"monitoring_package_units": units}, tasks)
    assert "failed=0" in said, said
    assert own.read_text() == "[Unit]\n"
    assert new.readlink() == Path("/dev/null")


def test_a_port_of_a_service_of_the_sites_is_refused(said: str) -> None:
    refused = re.findall(r"^failed: \[(\w+)\] \(item=(\S+)\)(.*?)(?=^\S|\Z)", said, re.M | re.S)
    assert [(host, unit) for host, unit, _ in refused] == [("meeting", *EXPORTER)]
    words = " ".join(refused[0][2].split())
    assert "Set monitoring_node_port to another, for all hosts" in words
    assert "systemctl mask --now prometheus-node-exporter" in words


def test_what_reads_the_gpus_is_not_sealed_off_from_them() -> None:
    tasks = yaml.safe_load((ROLE / "tasks/dcgm.yml").read_text())
    [definition] = tasks[-1]["vars"]["service_definitions"]
    sealed = yaml.safe_load((roles.ROLES / "service/vars/main.yml").read_text())
    # Which of systemd's settings hide or forbid device files.
    hiding = {"PrivateDevices", "ProtectClock"}
    assert hiding <= sealed["service_sealed_further"].keys()
    assert definition["hardening"] == dict.fromkeys(hiding)


def test_no_service_of_the_role_masks_a_unit_itself() -> None:
    for file in ROLE.rglob("*.yml"):
        assert "package_unit:" not in file.read_text(), file
    theirs = yaml.safe_load((roles.ROLES / "instance/vars/main.yml").read_text())
    ours = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    known = {unit["unit"] for key in PACKAGE_UNITS for unit in ours[key]}
    # NVIDIA's: packaging/config-files/systemd of its repository dcgm-exporter.
    assert known == UNITS | {"nvidia-dcgm-exporter"}
    assert set(theirs["instance_package_units"]["monitoring"]) == known
