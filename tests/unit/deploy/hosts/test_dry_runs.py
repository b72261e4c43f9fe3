"""A dry run of a first deployment goes past units that it has not written, and packages."""

from pathlib import Path

import pytest
import yaml

from tests import roles
from tests.systemctl import Systemctl

GIVEN: dict[str, object] = {
    "instance_name": "portal-of-a-test",
    "instance_folder_name": "portal-of-a-test",
    "instance_machine": {"stdout_lines": ["here", "systemd"]},
    "instance_address": "127.0.0.1",
    "environments_paths": {"hub": "/hub"},
    "nfs_client_server": "head",
    "nfs_client_packages": [],
    "nfs_server_packages": [],
    "nfs_server_clients": ["192.0.2.1"],
    "infiniband_subnet_manager": True,
    "instance_devices": {"stdout_lines": []},
    "packages_paths": {"nfs_server_unit": "nfs-server.service"},
    "slurm_controller_port": 6817,
}
FILES = [
    ("firewall", "boot"),
    ("portal", "backup"),
    ("nfs_client", "mounts"),
    ("nfs_server", "exports"),
    ("infiniband", "main"),
]


@pytest.mark.parametrize(("role", "file"), FILES)
def test_a_dry_run_asks_for_no_unit_that_is_not_there(role: str, file: str, tmp_path: Path) -> None:
    systemctl = Systemctl(tmp_path, "not-found", "inactive")
    tasks = [
        {"set_fact": {"packages": {}, "os_family": "Debian", "cacheable": True}},
        {"include_role": {"name": role, "tasks_from": file}},
    ]
    said = roles.played(
        tmp_path, {"here": {}}, GIVEN, tasks, "--check", environment={"PATH": systemctl.path}
    )
    assert "failed=0" in said, said
    assert systemctl.told() == []


def test_exports_that_an_interrupted_run_has_written_are_exported_by_the_next() -> None:
    tasks = yaml.safe_load((roles.ROLES / "nfs_server/tasks/exports.yml").read_text())
    exporting = [
        task
        for task in tasks
        if "/usr/sbin/exportfs" in task.get("ansible.builtin.command", {}).get("argv", ())
    ]
    assert [task.get("when") for task in exporting] == [None]
