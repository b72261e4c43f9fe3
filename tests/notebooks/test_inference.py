"""The inference notebook: three precisions of one network, on digits that it has not seen."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks.running import kernel_argv, run

NOTEBOOK = ROOT / "notebook_templates" / "inference" / "resnet.ipynb"
ACCURACY = re.compile(r"^(\w+): top-1 ([\d.]+), top-5 ([\d.]+), lost ([+-][\d.]+) points$", re.M)
SPEED = re.compile(r"^(\w+): ([\d,]+) images/s at best, ([\d.]+) times fp32$", re.M)


@pytest.fixture(scope="module")
def printed(
    python_of: Callable[[str], Path], nas: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """What the notebook printed and showed, with small parameters."""
    home = tmp_path_factory.mktemp("home")
    (home / "isilon").symlink_to(nas)
    argv = kernel_argv(python_of("pytorch"))
    done = run("pytorch", argv, NOTEBOOK, home=home, seconds=0.05, batches=[1, 16, 128])
    cells = json.loads(done.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    texts = [output.get("text", "") for output in outputs if output.get("name") == "stdout"]
    shown = [output["data"].get("text/markdown", "") for output in outputs if "data" in output]
    return "\n".join("".join(text) for text in texts + shown)


def test_eight_bits_are_nearly_as_exact(printed: str) -> None:
    found = {name: (float(top1), float(top5)) for name, top1, top5, _ in ACCURACY.findall(printed)}
    assert set(found) == {"fp32", "bf16", "int8"}
    assert found["fp32"][0] > 0.95
    assert abs(found["fp32"][0] - found["int8"][0]) < 0.01
    assert abs(found["fp32"][0] - found["bf16"][0]) < 0.01
    assert all(top1 < top5 for top1, top5 in found.values())
    # Not one network under three names.
    assert len(set(found.values())) > 1


def test_eight_bits_are_smaller(printed: str) -> None:
    fp32, int8 = map(float, re.findall(r"(?:fp32|int8): ([\d.]+) MB", printed))
    assert int8 < fp32 / 2


def test_each_precision_is_measured_for_each_batch(printed: str) -> None:
    assert set(name for name, _, _ in SPEED.findall(printed)) == {"fp32", "bf16", "int8"}
    rows = re.findall(r"^\| (\d+) \|((?: [\d,]+ \| [\d.]+ \|){3})$", printed, re.M)
    assert [int(batch) for batch, _ in rows] == [1, 16, 128]
