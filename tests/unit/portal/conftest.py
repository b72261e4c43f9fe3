"""A settings file, and a configuration for it to fill."""

from pathlib import Path
from typing import Any

import pytest
from tornado.web import Application
from traitlets.config import Config

from dsportal.settings.whole import Settings
from dsportal.settings_file import load
from tests.unit.portal.a_site import FILE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "portal.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def settings(file: Path) -> Settings:
    return load(file)


@pytest.fixture
def c() -> Any:
    """A bare Config; its parts appear when they are set."""
    return Config()


@pytest.fixture(autouse=True)
def others_are_no_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what a hub changes for all servers of its process."""
    monkeypatch.setattr(Application, "find_handler", Application.find_handler)
