"""JupyterLab follows the system's light and dark, unless the site or the user says otherwise."""

import json
from pathlib import Path

import pytest

from dsportal.session.page.theme import SETTINGS, lab_settings

CHOICE = ".jupyter/lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def test_it_follows_the_system_unless_the_site_turns_that_off(tmp_path: Path) -> None:
    assert lab_settings(tmp_path, is_wanted=True) == {"app_settings_dir": str(SETTINGS)}
    assert lab_settings(tmp_path, is_wanted=False) == {}
    (theme,) = json.loads((SETTINGS / "overrides.json").read_text()).values()
    assert theme == {"adaptive-theme": True}


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ('{"theme": "JupyterLab Dark"}', True),
        ('// a comment\n{"theme": "JupyterLab Light", "adaptive-theme": false}', True),
        ('{"theme-scrollbars": true}', False),
        ("{broken", False),
        ("[]", False),
    ],
)
def test_a_theme_that_was_chosen_is_kept(tmp_path: Path, text: str, is_kept: bool) -> None:
    file = tmp_path / CHOICE
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert (lab_settings(tmp_path, is_wanted=True) == {}) is is_kept
