"""How busy GPUs are. A stand-in takes nvidia-smi's place, as there need be no GPU here."""

import asyncio
from pathlib import Path

import pytest

from portal.session.gpus import Gpus, percents


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("0\n", [0]),
        ("97\n0\n", [97, 0]),
        ("[N/A]\n12\n", [None, 12]),
        ("No devices were found\n", [None]),
    ],
)
def test_lines_are_read(text: str, found: list[int | None]) -> None:
    assert percents(text) == found


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for the stand-in."""
    return tmp_path


def stand_in(programs: Path, text: str) -> dict[str, str]:
    program = programs / "nvidia-smi"
    program.write_text(f"#!/bin/bash\n{text}\n")
    program.chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "0,1"}


def ask(environment: dict[str, str], seconds: float = 10) -> list[int | None]:
    gpus = Gpus.of(environment)
    assert gpus is not None
    return asyncio.run(gpus.percents(seconds))


def test_the_jobs_own_gpus_are_asked_for(programs: Path) -> None:
    environment = stand_in(
        programs,
        f'echo "$@" > {programs}/asked; echo 3; echo 0',
    )
    assert ask(environment) == [3, 0]
    assert (programs / "asked").read_text().split()[-2:] == ["-i", "0,1"]


@pytest.mark.parametrize("text", ["exit 9", "echo 50; exit 9", "exec sleep 60"])
def test_without_an_answer_nothing_is_known(programs: Path, text: str) -> None:
    assert ask(stand_in(programs, text), seconds=0.5) == []


@pytest.mark.parametrize("devices", ["", "NoDevFiles", "0;id", "0 1", "-"])
def test_a_job_without_gpus_asks_nobody(programs: Path, devices: str) -> None:
    environment = {**stand_in(programs, "echo 1"), "CUDA_VISIBLE_DEVICES": devices}
    found = Gpus.of(environment)
    # A plain word may be a device's name: nvidia-smi refuses it then.
    assert found is None or devices in {"NoDevFiles", "-"}


def test_a_node_without_nvidia_smi_asks_nobody(programs: Path) -> None:
    assert Gpus.of({"PATH": str(programs), "CUDA_VISIBLE_DEVICES": "0"}) is None
