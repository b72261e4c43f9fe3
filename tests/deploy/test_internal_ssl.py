"""TLS within the cluster is not switched while sessions run, which would be out of reach."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.instance import ROOT, SETTINGS, USERS, Instance
from tests.visitor import Visitor


def validate(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(ROOT / "deploy/up"), str(folder), "--stage", "validate"],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    shutil.copytree(ROOT / "deploy/ansible/inventories/test", folder)
    return folder


def set_internal_ssl(inventory: Path, value: bool) -> None:
    text = f"---\nportal_internal_ssl: {str(value).lower()}\n"
    (inventory / "group_vars/all/zz_switched.yml").write_text(text)


@pytest.mark.timeout(900)
def test_a_switch_is_refused_while_sessions_run(
    portal: Instance, visit: Callable[[str], Visitor], inventory: Path
) -> None:
    set_internal_ssl(inventory, False)
    user = visit(USERS[0])
    job = user.start_and_wait(gpus=0)
    refused = validate(inventory)
    assert refused.returncode != 0
    said = " ".join(refused.stdout.split())
    assert f"Sessions run: {job} {portal.settings['hub']['name']}-{user.name}" in said
    assert "Set portal_internal_ssl: true to keep what there is" in said
    assert user.session("GET", "/api/status").status_code == 200
    user.stop()
    accepted = validate(inventory)
    assert accepted.returncode == 0, accepted.stdout[-2000:]


@pytest.fixture
def without_it(portal: Instance) -> Iterator[None]:
    """The settings of a portal that was deployed without; its hub goes on with what it has read."""
    file = SETTINGS
    before = file.read_text()
    file.write_text(before.replace("internal_ssl = true\n", "internal_ssl = false\n"))
    yield
    file.write_text(before)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("without_it")
def test_the_default_waits_for_sessions_that_began_without(
    visit: Callable[[str], Visitor], inventory: Path
) -> None:
    user = visit(USERS[0])
    user.start_and_wait(gpus=0)
    waits = validate(inventory)
    assert waits.returncode == 0, waits.stdout[-2000:]
    set_internal_ssl(inventory, True)
    refused = validate(inventory)
    assert refused.returncode != 0
    assert "Set portal_internal_ssl: false to keep what there is" in " ".join(
        refused.stdout.split()
    )
    user.stop()
