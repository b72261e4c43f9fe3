"""The fine-tuning of a language model: it learns, and goes on where it stopped."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import as_by_srun, assert_drawn_live, printed_by, said_by, written_to

LANGUAGE = ROOT / "notebook_templates" / "language"
MARGIN = 0.25
"""What the held-out loss falls by, at least; it was 0.4."""


def lines_of(results: Path) -> dict[int, dict[str, Any]]:
    lines = [json.loads(line) for line in (results / "progress.jsonl").read_text().splitlines()]
    return {line["step"]: line for line in lines}


def finetuning(python: Path, results: Path, **options: object) -> list[str]:
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    return [str(python), "-B", str(LANGUAGE / "finetune.py"), "--results", str(results), *words]


def finetune(python: Path, results: Path, **options: object) -> str:
    return said_by(finetuning(python, results, **options))


@pytest.fixture(scope="module")
def home(python_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the notebook has trained, and made the tiny model for that."""
    folder = tmp_path_factory.mktemp("home")
    notebook = LANGUAGE / "language.ipynb"
    printed_by(notebook, python_of("pytorch"), folder, {"steps": 60})
    return folder


@pytest.mark.timeout(900)
def test_the_notebook_learns_and_a_broken_run_is_the_unbroken_one(
    home: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, printed = preloaded("pytorch"), written_to(home / "done.ipynb", "stdout")
    unbroken = home / "logs/language/tiny-here"
    summary = json.loads((unbroken / "summary.json").read_text())
    before, after = summary["held_out_loss"]
    assert after < before - MARGIN
    assert f"held-out loss {before:.4f} before, {after:.4f} after" in printed
    assert len(summary["generated"]) == 2
    assert summary["weights_learnt"] < 0.1 * summary["weights"]
    assert "tokens/s" in printed
    assert "perplexity  " in printed
    assert "peak GPU memory  " in printed
    assert (unbroken / "adapter" / "adapter_model.safetensors").exists()
    assert (unbroken / "adapter" / "tokenizer_config.json").exists()
    assert list((unbroken / "tensorboard").glob("events.*"))
    assert_drawn_live(home)

    # The same, stopped after half of it; the model is a folder now, as a real one is. That layers
    # are computed again saves memory, and changes nothing.
    broken, real = tmp_path / "broken", {"model": os.path.relpath(unbroken / "base")}
    finetune(python, broken, steps=30, **real)
    assert sorted(lines_of(broken)) == [10, 20, 30]
    said = finetune(python, broken, steps=60, recompute="yes", **real)
    assert "resumed after step 30 of 60" in said
    assert "layers are recomputed in the backward pass" in said
    found, wanted = lines_of(broken), lines_of(unbroken)
    assert sorted(found) == sorted(wanted)
    for value in ("loss", "held_out_loss"):
        first, second = ([lines[step][value] for step in wanted] for lines in (found, wanted))
        assert first == pytest.approx(second, abs=1e-5)
    # Its model is found from any other folder, too.
    base = json.loads((broken / "adapter/adapter_config.json").read_text())[
        "base_model_name_or_path"
    ]
    assert Path(base).is_absolute()
    assert Path(base).samefile(unbroken / "base")
    # Another rate is another training.
    assert "holds a training with rate = 0.002, not 0.1" in finetune(
        python, broken, steps=60, rate=0.1, **real
    )


def test_a_model_or_text_that_is_not_there_is_said_in_words(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    said = finetune(preloaded("pytorch"), tmp_path / "run", model=tmp_path / "gone")
    assert "there is no such folder" in said
    assert "Traceback" not in said


@pytest.mark.timeout(900)
def test_all_weights_learn_in_parts_on_any_number_of_processes(
    home: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python = preloaded("pytorch")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    same = {"weights": "all", "model": home / "logs/language/tiny-here/base"}
    said = finetune(python, whole, steps=20, batch=6, **same)
    summary = json.loads((whole / "summary.json").read_text())
    before, after = summary["held_out_loss"]
    assert after < before - MARGIN, said
    assert summary["weights_learnt"] == summary["weights"]

    # The same on two processes, stopped after half of it, and to its end on three. What was not
    # written to its end is no checkpoint.
    assert as_by_srun(finetuning(python, parts, steps=10, batch=3, **same), 2) == [0, 0]
    assert len(list((parts / "checkpoints/step-10").glob("*.distcp"))) == 2
    half = parts / "checkpoints/step-15"
    half.mkdir()
    (half / "__0_0.distcp").touch()
    on_three = finetuning(python, parts, steps=20, batch=2, recompute="yes", **same)
    assert as_by_srun(on_three, 3) == [0, 0, 0]
    assert [one.name for one in (parts / "checkpoints").iterdir()] == ["step-20"]
    found, wanted = lines_of(parts), lines_of(whole)
    assert sorted(found) == sorted(wanted) == [10, 20]
    for value in ("loss", "held_out_loss"):
        first, second = ([lines[step][value] for step in wanted] for lines in (found, wanted))
        assert first == pytest.approx(second, abs=1e-4)

    # What one process began two continue, and one what three began.
    assert as_by_srun(finetuning(python, whole, steps=30, batch=3, **same), 2) == [0, 0]
    finetune(python, parts, steps=30, batch=6, **same)
    assert sorted(lines_of(parts)) == [10, 20, 30]
    assert lines_of(parts)[30]["loss"] == pytest.approx(lines_of(whole)[30]["loss"], abs=1e-4)
    after = lines_of(parts)[30]["held_out_loss"]

    # What came of it is a model as any other; and another number of blocks a step is refused.
    finetune(python, tmp_path / "next", model=parts / "model", steps=0)
    begun = json.loads((tmp_path / "next/summary.json").read_text())["held_out_loss"][0]
    assert begun == pytest.approx(after, abs=1e-3)
    assert "with batch = 6, not 8" in finetune(python, parts, steps=40, batch=8, **same)
