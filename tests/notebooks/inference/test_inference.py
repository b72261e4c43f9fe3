"""The inference notebook: int8 keeps what the network learned, and all is measured."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks.running import assert_drawn_live, printed_by

TEMPLATES = ROOT / "notebook_templates"
SMALL = {"speed_model": "tiny", "speed_size": 32, "speed_seconds": 0.05, "epochs": 2}
ACCURACY = re.compile(r"^(\w+) +([\d.]+) +([\d.]+) +([+-][\d.]+)  (ONNX|PyTorch)", re.MULTILINE)
SPEED = re.compile(r"^ *(\d+)  (\w+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)x$", re.MULTILINE)


@pytest.fixture(scope="module")
def printed(
    python_of: Callable[[str], Path], nas: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    home = tmp_path_factory.mktemp("home")
    (home / "isilon").symlink_to(nas)
    python = python_of("pytorch")
    printed = printed_by(TEMPLATES / "inference" / "inference.ipynb", python, home, SMALL)
    assert_drawn_live(home, "learning.learned(")
    return printed


def test_int8_reads_digits_nearly_as_well_as_fp32(printed: str) -> None:
    found = {
        name: (float(top1), float(top5)) for name, top1, top5, _, _ in ACCURACY.findall(printed)
    }
    assert list(found) == ["fp32", "bf16", "int8"]
    assert all(95 < top1 < top5 <= 100 for top1, top5 in found.values())
    assert abs(found["int8"][0] - found["fp32"][0]) < 1


def test_speed_is_measured_for_every_batch_size_and_precision(printed: str) -> None:
    lines = SPEED.findall(printed)
    assert [(int(batch), name) for batch, name, *_ in lines] == [
        (2**power, name) for power in range(8) for name in ("fp32", "bf16", "int8")
    ]
    assert all(float(rate) > 0 and float(median) > 0 for _, _, rate, median, _, _ in lines)


def test_the_calibration_is_the_papers(printed: str) -> None:
    assert "1250 images for calibration = 50 x 25" in printed
