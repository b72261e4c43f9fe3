"""How fast images are read, as files and as shards, in the kernel's own environment."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports.comparison import compared, sides
from tests.instance import ROOT
from tests.notebooks.running import Run

PROGRAM = ROOT / "notebook_templates" / "benchmarks" / "reading.py"
SCHEMA = json.loads(PROGRAM.with_name("schema.json").read_text())
EACH = 40
MAKE = """
import sys
from pathlib import Path
import numpy as np
from PIL import Image

pixels = np.random.default_rng(1).integers(0, 256, (60, 80, 3), np.uint8)
for label in range(2):
    folder = Path(sys.argv[1], "train", f"class{label}")
    folder.mkdir(parents=True)
    for number in range(int(sys.argv[2])):
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
"""
Read = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def read(python_of: Callable[[str], Path]) -> Read:
    def run(results: Path, data: Path, **options: object) -> "subprocess.CompletedProcess[str]":
        chosen = {"results": results, "data": data, "size": 32, "batch": 8, "workers": 1}
        chosen |= {"images": 48, "warmup": 16, "repeats": 2, **options}
        words = [f"--{name}={value}" for name, value in chosen.items()]
        argv = [str(python_of("pytorch")), "-B", str(PROGRAM), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.fixture(scope="module")
def data(
    python_of: Callable[[str], Path], prepare: Run, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same images as files and as TFRecord shards."""
    folder = tmp_path_factory.mktemp("read")
    make = [str(python_of("pytorch")), "-c", MAKE, str(folder / "jpeg"), str(EACH)]
    subprocess.run(make, check=True, timeout=60)
    done = prepare("write", folder / "jpeg" / "train", folder / "shards", "--shards", 4)
    assert done.returncode == 0, done.stderr
    return folder


def test_files_and_shards_of_the_same_images_can_be_compared(
    read: Read, data: Path, tmp_path: Path
) -> None:
    found: dict[str, Any] = {}
    for kind in ("jpeg", "shards"):
        done = read(tmp_path / kind, data / kind)
        assert done.returncode == 0, done.stderr
        summary = found[kind] = json.loads((tmp_path / kind / "summary.json").read_text())
        jsonschema.validate(summary, SCHEMA)
        assert "torch" in summary["versions"]
        for part in summary["parts"]:
            assert part["images"] == 48
            assert part["images_per_second"] == pytest.approx(48 / part["seconds"])
        # A few images are in memory whole.
        assert summary["figures"]["expected_hit_rate"] == 1
    assert [found[kind]["figures"]["kind"] for kind in found] == ["pictures", "shards"]
    (row,) = compared(*(sides(kind, found[kind])[0] for kind in found))
    assert (row.what, len(row.first), len(row.other)) == ("read and decode", 2, 2)


def test_what_cannot_be_read_is_said_in_words(read: Read, data: Path, tmp_path: Path) -> None:
    cases: list[tuple[str, Path, dict[str, int], str]] = [
        ("many", data / "jpeg", {"images": 1000}, f"data has {2 * EACH} images"),
        ("none", tmp_path, {}, "has neither MNIST's files, nor shards"),
    ]
    for results, place, options, words in cases:
        done = read(tmp_path / results, place, **options)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_the_nas_is_flushed_before_each_run_where_a_program_is_named(
    read: Read, data: Path, tmp_path: Path
) -> None:
    # A stand-in for a site's program: no NAS is at hand.
    flush, calls = tmp_path / "flush", tmp_path / "calls"
    flush.write_text(f"#!/bin/sh\necho flushed >> {calls}\n")
    flush.chmod(0o755)
    assert read(tmp_path / "without", data / "jpeg").returncode == 0
    assert not calls.exists(), "off by default"
    done = read(tmp_path / "with", data / "jpeg", **{"flush-nas": flush})
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines() == ["flushed"] * 2
    parts = {
        name: json.loads((tmp_path / name / "summary.json").read_text())["parts"]
        for name in ("without", "with")
    }
    assert [part["nas_flushed_by"] for part in parts["with"]] == [str(flush)] * 2
    assert [part["nas_flushed_by"] for part in parts["without"]] == [None] * 2
    failed = read(tmp_path / "failed", data / "jpeg", **{"flush-nas": tmp_path / "none"})
    assert failed.returncode == 1
    assert "flush-nas is" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    "program",
    ["reading.py", "inference.py", "links/allreduce.py", "trials/train_speed.py"],
)
def test_a_program_with_pytorch_finds_its_modules(
    program: str, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", str(PROGRAM.parent / program), "--help"]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
