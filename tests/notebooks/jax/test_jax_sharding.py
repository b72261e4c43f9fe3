"""A model divided over many devices with JAX: it learns, and the same on any number of them.

The devices are what a CPU pretends to have, as JAX offers it: here are no GPUs.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import as_by_srun, assert_drawn_live, printed_by, said_by

pytestmark = pytest.mark.usefixtures("without_gpu")
FOLDER = ROOT / "notebook_templates" / "jax"
MARGIN = 1.0
"""What the held-out loss falls by, at least; it was 2.9 in as many steps."""
SMALL = {"texts": 16, "length": 64, "width": 64, "layers": 2}


def training(python: Path, results: Path, **options: object) -> list[str]:
    words = [
        word
        for name, value in {**SMALL, **options}.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return [str(python), "-B", str(FOLDER / "train_sharded.py"), "--results", str(results), *words]


def train(python: Path, results: Path, **options: object) -> str:
    return said_by(training(python, results, **options))


def losses_of(results: Path) -> dict[int, tuple[float, float]]:
    lines = [json.loads(line) for line in (results / "progress.jsonl").read_text().splitlines()]
    return {line["step"]: (line["loss"], line["held_out_loss"]) for line in lines}


def summary_of(results: Path) -> dict[str, Any]:
    return dict(json.loads((results / "summary.json").read_text()))


@pytest.mark.timeout(900)
def test_the_notebook_learns_on_devices_that_hold_a_part_each(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    printed = printed_by(FOLDER / "sharding.ipynb", python_of("jax"), tmp_path, {"steps": 30})
    run = tmp_path / "logs/sharding/transformer-here"
    summary = summary_of(run)
    before, after = summary["held_out_loss"]
    assert after < before - MARGIN
    assert f"held-out loss {before:.4f} before, {after:.4f} after" in printed
    assert (summary["devices"], summary["tf32"]) == (4, False)
    assert "precision fp32\n" in printed
    # What is divided lies in four parts; norms and places are everywhere.
    whole = 4 * summary["weights"] / 1e6
    assert whole / 4 < summary["megabytes_on_a_device"] < whole / 3.5
    assert list((run / "tensorboard").glob("events.*"))
    assert_drawn_live(tmp_path)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_is_the_same_on_any_devices_and_processes_and_after_a_break(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python = preloaded("jax")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(python, whole, steps=20)
    # Four devices of one process, two of which work on the same texts; then two processes.
    train(python, parts, steps=10, cpu_devices=4, model_devices=2)
    assert sorted(losses_of(parts)) == [10]
    assert as_by_srun(training(python, parts, steps=20, model_devices=2), 2) == [0, 0]
    assert (summary_of(parts)["devices"], summary_of(parts)["processes"]) == (2, 2)
    assert [folder.name for folder in (parts / "checkpoints").iterdir()] == ["20"]
    found, wanted = losses_of(parts), losses_of(whole)
    assert sorted(found) == sorted(wanted) == [10, 20]
    for step, losses in wanted.items():
        assert found[step] == pytest.approx(losses, abs=1e-4)
    # Another rate is another training.
    said = train(python, parts, steps=30, rate=0.1)
    assert "holds a training with rate = 0.002, not 0.1" in said


def test_tokens_are_counted_of_the_steps_that_are_timed(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    train(preloaded("jax"), tmp_path, steps=15, report_every=5)
    reached = json.loads((tmp_path / "checkpoints/15/reached/metadata").read_text())
    # The first ten steps are not; each is of 16 texts of 64 bytes.
    assert reached["images"] == 5 * 16 * 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpu_devices": 4, "model_devices": 3}, "model_devices is 3; it must divide the 4"),
        ({"cpu_devices": 4, "texts": 6}, "texts (6) must be a multiple of the 4 groups"),
        ({"data": "/nowhere"}, "there are no .txt"),
        ({"length": 100_000}, "are too few: 16 are needed"),
    ],
)
def test_what_cannot_be_is_said_in_words(
    preloaded: Callable[[str], Path], tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    said = train(preloaded("jax"), tmp_path / "run", **options)
    assert words in said
    assert "Traceback" not in said


def test_a_training_is_not_resumed_with_other_texts(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, text = preloaded("jax"), tmp_path / "texts" / "a.txt"
    text.parent.mkdir()
    text.write_text("".join(f"{number} is a number. " for number in range(4_000)))
    # From the first step on at the whole rate.
    options = {"data": text.parent, "rising": 0}
    train(python, tmp_path / "run", steps=1, **options)
    assert summary_of(tmp_path / "run")["steps"] == 1
    text.with_name("b.txt").write_text("And another one, which mixes all blocks again. " * 9)
    said = train(python, tmp_path / "run", steps=2, **options)
    assert f"{tmp_path}/run holds a training with texts_sha256 = " in said
    assert "or the data that it was begun with to continue" in said
