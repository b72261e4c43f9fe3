"""TLS within the cluster is not switched while sessions run, which would be out of reach."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deploy.deploying import copied, deploy, said, set_variables
from tests.instance import SETTINGS, USERS, Instance
from tests.visitor import Visitor


def validate(folder: Path) -> "subprocess.CompletedProcess[str]":
    return deploy(folder, "--stage", "validate")


@pytest.mark.timeout(900)
def test_a_switch_is_refused_while_sessions_run(
    portal: Instance, visit: Callable[[str], Visitor], tmp_path: Path
) -> None:
    inventory = copied(tmp_path, portal_internal_ssl=False)
    user = visit(USERS[0])
    job = user.start_and_wait(gpus=0)
    refused = validate(inventory)
    assert refused.returncode != 0
    name = f"{portal.settings['hub']['name']}-{user.name}"
    assert f"Sessions run: {job} {name} {user.name}." in said(refused)
    assert "Set portal_internal_ssl: true to keep what there is" in said(refused)
    assert user.session("GET", "/api/status").status_code == 200
    user.stop()
    accepted = validate(inventory)
    assert accepted.returncode == 0, accepted.stdout[-2000:]


@pytest.fixture
def without_it(portal: Instance) -> Iterator[None]:
    """The settings of a portal that was deployed without; its hub goes on with what it has read."""
    before = SETTINGS.read_text()
    SETTINGS.write_text(before.replace("internal_ssl = true\n", "internal_ssl = false\n"))
    yield
    SETTINGS.write_text(before)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("without_it")
def test_the_default_waits_for_sessions_that_began_without(
    visit: Callable[[str], Visitor], tmp_path: Path
) -> None:
    inventory = copied(tmp_path)
    user = visit(USERS[0])
    user.start_and_wait(gpus=0)
    waits = validate(inventory)
    assert waits.returncode == 0, waits.stdout[-2000:]
    # A stage alone does not switch it either.
    would = deploy(inventory, "--stage", "portal", "--check", ANSIBLE_DIFF_ALWAYS="1")
    assert would.returncode == 0, would.stdout[-2000:]
    assert "+internal_ssl" not in would.stdout
    set_variables(inventory, portal_internal_ssl=True)
    refused = validate(inventory)
    assert refused.returncode != 0
    assert "Set portal_internal_ssl: false to keep what there is" in said(refused)
    user.stop()
