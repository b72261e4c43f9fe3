"""Wrong settings of the portal are refused, and what runs stays as it is."""

from pathlib import Path

import pytest

from tests.deploy.deploying import copied, deploy
from tests.instance import SETTINGS, Instance


@pytest.mark.timeout(300)
def test_a_rule_between_keys_is_checked_before_the_settings_are_replaced(
    portal: Instance, tmp_path: Path
) -> None:
    # What a check of single values lets through.
    wrong = {"session": {"folder_notes": {"nowhere": "Nothing"}}}
    before = SETTINGS.read_bytes()
    refused = deploy(copied(tmp_path, portal_settings=wrong), "--stage", "portal", seconds=240)
    assert refused.returncode != 0
    assert "folder_notes has nowhere, which folders does not have" in refused.stdout
    assert SETTINGS.read_bytes() == before
