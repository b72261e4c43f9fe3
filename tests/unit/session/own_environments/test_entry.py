"""From the settings to what the command reads of a session's variables."""

import logging
import os
import threading
from pathlib import Path

import pytest

from dsportal.session.own_environments.conda import PROGRAM_VARIABLE
from dsportal.session.own_environments.entry import (
    command_variables,
    module_paths,
    own_folders,
)
from dsportal.session.own_environments.folders import FOLDERS_VARIABLE, folders_told
from dsportal.session.own_environments.records import EnvironmentFolder, OwnEnvironmentError


def test_the_command_is_told_the_places_of_the_settings() -> None:
    settings = {"home": "~/env", "no": "", "isilon": "/mnt/isilon/users/{user}/env"}
    folders = own_folders(settings, "/home/ann", "ann")
    assert folders is not None
    variables = command_variables(folders, "/opt/micromamba")
    assert folders_told(variables[FOLDERS_VARIABLE]) == folders
    assert variables[PROGRAM_VARIABLE] == "/opt/micromamba"
    paths = [(folder.name, str(folder.path)) for folder in folders]
    assert paths == [("home", "/home/ann/env"), ("isilon", "/mnt/isilon/users/ann/env")]
    assert folders.named("") == folders.named("home") == folders.first
    with pytest.raises(OwnEnvironmentError):
        folders.named("no")


@pytest.mark.parametrize("settings", [{}, {"home": ""}])
def test_without_any_there_are_no_environments(settings: dict[str, str]) -> None:
    folders = own_folders(settings, "/home/ann", "ann")
    assert folders is None
    variables = command_variables(folders, None)
    assert folders_told(variables[FOLDERS_VARIABLE]) is None
    # A user may have one of their own.
    assert PROGRAM_VARIABLE not in variables


def test_one_that_cannot_be_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        folders = own_folders({"home": "~/env", "nas": "/nas/{user}"}, "/home/ann b", "ann")
    assert folders is not None
    assert [folder.name for folder in folders] == ["nas"]
    assert "in home" in caplog.text


@pytest.mark.root
def test_modules_that_somebody_else_could_write_are_not_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders = own_folders({"scratch": f"{tmp_path}/{{user}}/environments"}, "/home/ann", "ann")
    assert module_paths(folders) == (f"{tmp_path}/ann/environments/.modulefiles",)
    assert module_paths(None) == ()
    (tmp_path / "ann").mkdir()
    os.chown(tmp_path / "ann", 4321, 4321)
    assert module_paths(folders) == ()
    assert "it is not the user's own" in caplog.text


def test_a_folder_that_does_not_answer_keeps_no_session_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answering = threading.Event()
    monkeypatch.setattr(EnvironmentFolder, "has_own_modulefiles", lambda _: answering.wait(60))
    folders = own_folders({"nas": "/nas/{user}"}, "/home/ann", "ann")
    assert module_paths(folders, seconds=0.05) == ()
    answering.set()
    assert "it does not answer" in caplog.text
