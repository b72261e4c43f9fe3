"""A session has slurmctld write that it runs; a script stands in for scontrol."""

import logging
from pathlib import Path

import pytest

from dsportal.session import state_save

JOB = {"PORTAL_JOB_ID": "7", "SLURM_CONF": "/etc/slurm/x.conf"}


def scontrol(folder: Path, *lines: str) -> str:
    program = folder / "scontrol"
    program.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    program.chmod(0o755)
    return str(folder)


def told(folder: Path) -> str:
    return f'echo "$SLURM_CONF $* $ADA" > {folder}/told'


def test_the_job_is_told_to_change_nothing(tmp_path: Path) -> None:
    thread = state_save.begin(scontrol(tmp_path, told(tmp_path)), JOB | {"ADA": "secret"})
    thread.join(timeout=30)
    line = (tmp_path / "told").read_text()
    assert line == "/etc/slurm/x.conf update JobId=7 Switches=4294967294 \n"


def test_where_the_folder_is_not_known_the_path_tells(tmp_path: Path) -> None:
    environment = JOB | {"PATH": scontrol(tmp_path, told(tmp_path))}
    state_save.have_written(None, environment)
    assert (tmp_path / "told").exists()


def test_without_a_job_nothing_is_asked(tmp_path: Path) -> None:
    environment = {"SLURM_CONF": JOB["SLURM_CONF"]}
    state_save.have_written(scontrol(tmp_path, told(tmp_path)), environment)
    assert not (tmp_path / "told").exists()


def test_a_no_is_logged_and_costs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    state_save.have_written(scontrol(tmp_path, "echo 'Access denied' >&2", "exit 1"), JOB)
    assert "later: Access denied" in caplog.text


def test_a_slurmctld_that_does_not_answer_is_not_waited_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(state_save, "_SECONDS", 0.3)
    state_save.have_written(scontrol(tmp_path, "exec sleep 60"), JOB)
    assert "timed out" in caplog.text


def test_without_slurms_programs_nothing_happens(tmp_path: Path) -> None:
    state_save.have_written(str(tmp_path), JOB)
