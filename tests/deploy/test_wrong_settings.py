"""Wrong settings of the portal are refused, and what runs stays as it is."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.instance import ROOT, SETTINGS, Instance


@pytest.mark.timeout(300)
def test_a_rule_between_keys_is_checked_before_the_settings_are_replaced(
    portal: Instance, tmp_path: Path
) -> None:
    # What a check of single values lets through.
    wrong = "---\nportal_settings: {session: {folder_notes: {nowhere: Nothing}}}\n"
    folder = tmp_path / "site"
    shutil.copytree(ROOT / "deploy/ansible/inventories/test", folder)
    (folder / "group_vars/all/z.yml").write_text(wrong)
    before = SETTINGS.read_bytes()
    refused = subprocess.run(
        [str(ROOT / "deploy/up"), str(folder), "--stage", "portal"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert refused.returncode != 0
    assert "folder_notes has nowhere, which folders does not have" in refused.stdout
    assert SETTINGS.read_bytes() == before
