from errno import ESTALE
from pathlib import Path

import pytest

from dsportal.session.files.lab_settings import set_broken_files_aside

SETTINGS = ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"


def write(home: Path, name: str, text: str) -> Path:
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("text", ["", "{broken", "\0\0\0", "[" * 10_000])
def test_a_broken_setting_is_set_aside(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path, f"{SETTINGS}/themes.jupyterlab-settings", text)
    set_broken_files_aside(tmp_path)
    assert not file.exists()
    assert file.with_name("themes.jupyterlab-settings.broken").read_text() == text
    assert "was broken" in caplog.text


def test_a_setting_with_comments_is_right(tmp_path: Path) -> None:
    file = write(
        tmp_path, f"{SETTINGS}/themes.jupyterlab-settings", '{\n  // Dark\n  "theme": "dark",\n}'
    )
    set_broken_files_aside(tmp_path)
    assert file.exists()


def test_a_broken_workspace_is_set_aside(tmp_path: Path) -> None:
    file = write(tmp_path, ".jupyter/lab/workspaces/default-37a8.jupyterlab-workspace", "{")
    set_broken_files_aside(tmp_path)
    assert not file.exists()


def test_a_home_without_settings_is_fine(tmp_path: Path) -> None:
    set_broken_files_aside(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_found_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stale(*_: object) -> None:
        raise OSError(ESTALE, "Stale file handle")

    monkeypatch.setattr(Path, "glob", stale)
    set_broken_files_aside(tmp_path)
    assert "Stale file handle" in caplog.text
