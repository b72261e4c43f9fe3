"""TLS within the cluster is not switched while sessions run, which would be out of reach."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT, USERS, Instance
from tests.visitor import Visitor


def validate(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(ROOT / "deploy/up"), str(folder), "--stage", "validate"],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.timeout(900)
def test_a_switch_is_refused_while_sessions_run(
    portal: Instance, visit: Callable[[str], Visitor], tmp_path: Path
) -> None:
    folder = tmp_path / "switched"
    shutil.copytree(ROOT / "deploy/ansible/inventories/test", folder)
    switched = folder / "group_vars/all/zz_switched.yml"
    switched.write_text("---\nportal_internal_ssl: false\n")
    user = visit(USERS[0])
    job = user.start_and_wait(gpus=0)
    refused = validate(folder)
    assert refused.returncode != 0
    said = " ".join(refused.stdout.split())
    assert f"Sessions run: {job} {portal.settings['hub']['name']}-{user.name}" in said
    assert "Set portal_internal_ssl: true to keep what there is" in said
    assert user.session("GET", "/api/status").status_code == 200
    user.stop()
    accepted = validate(folder)
    assert accepted.returncode == 0, accepted.stdout[-2000:]
