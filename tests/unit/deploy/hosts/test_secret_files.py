"""Secrets that the deployment writes are never open to others, nor in what it says."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import roles

SETTINGS: dict[str, object] = {
    "portal_hub_user": "root",
    "portal_directory_bind_dn": "cn=portal",
    "portal_directory_bind_password": "a password",
}
PUBLIC = {"{{ slurm_conf }}", "{{ portal_state }}/note", "{{ doctor_folder }}/portal.json"}
"""What is read of a host and is no secret."""


def written(folder: Path, file: str, name: str, **variables: object) -> Path:
    """Have the role portal write a secret into a folder; return its file."""
    path = folder / "secret"
    given = {
        **SETTINGS,
        "portal_directory_password_file": str(path),
        "portal_secret": {"path": str(path), "before": "TOKEN="},
    }
    tasks = [{"import_tasks": str(roles.ROLES / "portal/tasks" / file)}]
    roles.played(folder, {name: {}}, given | variables, tasks)
    return path


@pytest.mark.parametrize("file", ["secret.yml", "directory.yml"])
def test_a_secret_is_closed_before_it_is_written(file: str, tmp_path: Path) -> None:
    """A user who is not there ends the run where the file would be given away."""
    path = written(tmp_path, file, "here", portal_hub_user="nobody-of-that-name")
    assert not path.exists() or path.read_text() == ""


@pytest.mark.root
def test_a_secret_is_made_once_and_again_where_a_run_was_interrupted(tmp_path: Path) -> None:
    path = written(tmp_path, "secret.yml", "first")
    made = path.read_text()
    assert made.startswith("TOKEN=")
    assert len(made) > 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written(tmp_path, "secret.yml", "second")
    assert path.read_text() == made
    path.write_text("")
    written(tmp_path, "secret.yml", "third")
    assert path.read_text().startswith("TOKEN=")


@pytest.mark.root
def test_the_settings_are_written_in_the_place_of_a_closed_file(tmp_path: Path) -> None:
    """Who is asked whether they are good, just before, looks at it."""
    (tmp_path / "templates").symlink_to(roles.ROLES / "portal/templates")
    (tmp_path / "bin").mkdir()
    program, settings = tmp_path / "bin/python", tmp_path / "portal.toml"
    program.write_text(f"#!/bin/sh\nstat --format=%a {settings} > {tmp_path}/seen\n")
    program.chmod(0o755)
    address = "postgresql://hub:a-password@db/portal"
    written(
        tmp_path,
        "settings.yml",
        "here",
        environments_paths={"hub": str(tmp_path)},
        portal_settings_file=str(settings),
        portal_all_settings={"hub": {"database_url": address}},
    )
    assert (tmp_path / "seen").read_text() == "640\n"
    assert address in settings.read_text()
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640


def test_the_folder_of_monitorings_secrets_is_closed() -> None:
    tasks = yaml.safe_load((roles.ROLES / "monitoring/tasks/main.yml").read_text())
    (folder,) = (
        task["ansible.builtin.file"]
        for task in tasks
        if task.get("ansible.builtin.file", {}).get("path") == "{{ monitoring_etc }}"
    )
    assert (folder["owner"], folder["group"], folder["mode"]) == ("root", "prometheus", "0750")


def slurping() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(roles.ROLES.glob("*/tasks/*.yml")):
        for task in yaml.safe_load(file.read_text()) or ():
            if "ansible.builtin.slurp" in task:
                yield f"{file.relative_to(roles.ROLES)}: {task['name']}", task


def test_what_is_read_of_a_host_is_not_shown_unless_everybody_may_read_it() -> None:
    shown = [
        name
        for name, task in slurping()
        if not task.get("no_log") and task["ansible.builtin.slurp"]["src"] not in PUBLIC
    ]
    assert shown == []
