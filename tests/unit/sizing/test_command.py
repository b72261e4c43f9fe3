"""``portal size``: what it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsportal.cli import main

ROOT = Path(__file__).resolve().parents[3]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main(["size", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert bool(out) != bool(err)
    return status, out or err


def test_an_answer_has_each_figure_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run(capsys, "--gpus", 80)
    assert status == 0
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert "One GPU reads 90 MB/s the papers' rate" in rows
    assert "The storage must give 7,200 MB/s 80 GPUs x 90 MB/s" in rows
    assert "Storage nodes 3 2.9: 27 GPUs a node, the papers'" in rows
    assert "Mounts of a host 2 2 mounts of 2,500 MB/s fill one of 40 Gb/s" in rows
    assert "failure of a storage node" in said


def test_what_is_wrong_is_said_with_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run(capsys, "--gpus", 0, "--card", "K80")
    assert status == 2
    assert "portal size: --gpus: '0' must be a whole number from 1 to 100000." in said
    assert "portal size: --card: 'K80' must be one of V100, A100, other." in said


def summary(folder: Path, benchmark: str, figures: object) -> Path:
    file = folder / f"{benchmark}.json"
    file.write_text(json.dumps({"benchmark": benchmark, "figures": figures}))
    return file


@pytest.mark.parametrize("content", ["", "[]", '{"benchmark": "network", "figures": {}}'])
def test_a_file_that_is_no_use_is_named(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "summary.json"
    file.write_text(content)
    for path in (file, tmp_path / "gone.json"):
        status, said = run(capsys, "--measured", path)
        assert status == 2
        assert str(path) in said


def test_measured_figures_are_read_from_summaries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = [
        {"load": "read", "mounts": ["/mnt/a"], "clients": 1, "mb_per_second": 1250.0},
        {"load": "read", "mounts": ["/mnt/b"], "clients": 1, "mb_per_second": 1000.0},
        {"load": "read", "mounts": ["/mnt/a", "/mnt/b"], "clients": 1, "mb_per_second": 2000.0},
        {"load": "read", "mounts": ["/mnt/a"], "clients": 4, "mb_per_second": 4000.0},
        {"load": "write", "mounts": ["/mnt/a"], "clients": 1, "mb_per_second": 3000.0},
    ]
    file = summary(tmp_path, "storage", {"rates": rates})
    status, said = run(capsys, "--measured", file)
    assert status == 0
    assert "4 mounts of 1,250 MB/s fill one of 40 Gb/s" in said
    # What is typed has the last word.
    assert "of 2,000 MB/s" in run(capsys, "--measured", file, "--mount-mb-per-second", 2000)[1]

    trainings = [
        {"images_per_second": 1600.0, "processes": 4},
        {"images_per_second": 2000.0, "processes": 8},
    ]
    speeds = summary(tmp_path, "training", {"trainings": trainings})
    said = run(capsys, "--measured", file, "--measured", speeds, "--gpus", 10)[1]
    # The fastest GPU reads 400 images/s x 0.115 MB.
    assert "400 images/s x 0.115 MB" in said
    assert "10 GPUs x 46 MB/s" in said
    assert "of 1,250 MB/s" in said


def test_users_have_the_command_as_one_file(tmp_path: Path) -> None:
    pack = ROOT / "deploy/ansible/roles/doctor/files/pack.py"
    argv = [sys.executable, str(pack), str(ROOT / "portal/dsportal"), sys.executable, "sizing"]
    environment = os.environ | {"PORTAL_CACHE": str(tmp_path)}
    made = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True)
    ask = [sys.executable, "-I", made.stdout.strip(), "--gpus", "80"]
    said = subprocess.run(ask, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert "7,200 MB/s" in said
