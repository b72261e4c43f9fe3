"""A backup has slurmctld write its jobs; scripts stand in for Slurm's programs."""

import os
from pathlib import Path

import pytest

from dsportal.backup import saving
from dsportal.settings.slurm import SlurmSettings

# slurm.h: NO_VAL, which stands for a field that is not to be changed.
NOTHING = "Switches=4294967294"


@pytest.fixture
def slurm(tmp_path: Path) -> SlurmSettings:
    """Slurm's settings, with programs that do as the test says."""
    (tmp_path / "state").mkdir()
    return SlurmSettings(bin_dir=str(tmp_path), config_file=str(tmp_path / "slurm.conf"))


def program(slurm: SlurmSettings, name: str, *lines: str) -> None:
    file = Path(slurm.bin_dir, name)
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)


def state(slurm: SlurmSettings) -> Path:
    """Slurmctld's jobs, which were written long ago."""
    file = Path(slurm.bin_dir, "state/job_state")
    file.touch()
    os.utime(file, (0, 0))
    return file


def told(slurm: SlurmSettings) -> list[str]:
    """Return what scontrol was told; each time it writes the state, as slurmctld does."""
    file = Path(slurm.bin_dir, "told")
    return file.read_text().splitlines() if file.exists() else []


def remembers(slurm: SlurmSettings) -> list[str]:
    folder = Path(slurm.bin_dir)
    return [f'echo "$SLURM_CONF $*" >> {folder}/told', f"touch {folder}/state/job_state"]


def test_a_running_job_is_told_to_change_nothing(slurm: SlurmSettings) -> None:
    file = state(slurm)
    program(slurm, "squeue", "echo 7", "echo 8")
    program(slurm, "scontrol", *remembers(slurm))
    assert saving.written(file.parent, slurm, seconds=30)
    assert told(slurm) == [f"{slurm.config_file} update JobId=7 {NOTHING}"]


def test_of_an_array_only_one_task_is_told(slurm: SlurmSettings) -> None:
    file = state(slurm)
    program(slurm, "squeue", "echo 7_3")
    program(slurm, "scontrol", *remembers(slurm))
    assert saving.written(file.parent, slurm, seconds=30)
    assert told(slurm) == [f"{slurm.config_file} update JobId=7_3 {NOTHING}"]


def test_one_that_is_about_to_end_does_not_matter(slurm: SlurmSettings) -> None:
    file = state(slurm)
    program(slurm, "squeue", "echo 7", "echo 8")
    program(slurm, "scontrol", 'test "$2" = JobId=8 || exit 1', *remembers(slurm))
    assert saving.written(file.parent, slurm, seconds=30)
    assert told(slurm) == [f"{slurm.config_file} update JobId=8 {NOTHING}"]


@pytest.mark.parametrize("row", ["7_[1-3]", "7+1", "-1", "7 x=y", ""])
def test_what_is_no_job_of_its_own_is_left_alone(slurm: SlurmSettings, row: str) -> None:
    program(slurm, "squeue", f"echo '{row}'")
    program(slurm, "scontrol", *remembers(slurm))
    assert saving.written(state(slurm).parent, slurm, seconds=0.3)
    assert told(slurm) == []


def test_where_no_job_runs_nothing_is_missing(slurm: SlurmSettings) -> None:
    program(slurm, "squeue")
    assert saving.written(Path(slurm.bin_dir, "state"), slurm, seconds=0.3), "nor any file"


@pytest.mark.parametrize("last", ["exit 1", "sleep 60", ""])
def test_a_slurmctld_that_writes_nothing_is_not_waited_for_ever(
    slurm: SlurmSettings, last: str
) -> None:
    hasty = slurm.model_copy(update={"command_timeout_seconds": 1.0})
    program(slurm, "squeue", "echo 7")
    program(slurm, "scontrol", last)
    assert not saving.written(state(slurm).parent, hasty, seconds=0.3)


def test_where_slurm_cannot_be_asked_it_may_be_that_jobs_are_missing(slurm: SlurmSettings) -> None:
    assert not saving.written(state(slurm).parent, slurm, seconds=0.3)
