"""The fine-tuning of a vision transformer: it learns, continues exactly, and can be measured."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT
from tests.notebooks.running import SPARING, as_by_srun, assert_drawn_live, printed_by, said_by

TEMPLATES = ROOT / "notebook_templates"
EPOCHS = 6
CHANCE = 1 / 8
LEARNED = 2.5 * CHANCE
"""What the test accuracy is at least, after so few epochs."""
FEW = {"epochs": EPOCHS, "operations": 1, "workers": 0, "checkpoint-every": 10}


def finetuning(python: Path, results: Path, **options: object) -> list[str]:
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    program = TEMPLATES / "vision" / "train_vit.py"
    return [str(python), "-B", str(program), "--results", str(results), *words]


def finetune(python: Path, results: Path, **options: object) -> str:
    return said_by(finetuning(python, results, **options), SPARING)


def lines_of(results: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (results / "progress.jsonl").read_text().splitlines()]
    timed = {"time", "elapsed_seconds", "images_per_second"}
    return [{key: line[key] for key in line if key not in timed} for line in lines]


@pytest.mark.timeout(900)
def test_the_notebook_learns_and_a_broken_run_is_the_unbroken_one(
    python_of: Callable[[str], Path], preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, kernel = preloaded("pytorch"), python_of("pytorch")
    more = {"operations": 1, "workers": 0, "checkpoint-every": 10}
    given = {"epochs": EPOCHS, "more": more}
    printed = printed_by(TEMPLATES / "vision/vision.ipynb", kernel, tmp_path, given)
    unbroken = tmp_path / "logs/vision/tiny-here"
    summary = json.loads((unbroken / "summary.json").read_text())
    assert summary["test_accuracy"] > LEARNED
    assert summary["test_top5"] > summary["test_accuracy"]
    assert f"accuracy {summary['test_accuracy']:.4f}" in printed
    counts = summary["confusions"]
    assert [sum(row) for row in counts] == [25] * 8
    right = sum(counts[kind][kind] for kind in range(8))
    assert right / 200 == pytest.approx(summary["test_accuracy"])
    assert list((unbroken / "tensorboard").glob("events.*"))
    assert_drawn_live(tmp_path)

    # The same, stopped in the middle of an epoch; the model is a folder, as a real one is.
    broken = tmp_path / "broken"
    shutil.copytree(unbroken / "start", tmp_path / "model")
    of_files = {"model": tmp_path / "model", "data": unbroken / "shapes", **FEW}
    finetune(python, broken, steps=50, **of_files)
    assert lines_of(broken)[-2]["step"] == 50
    assert f"resumed after step 50 of {20 * EPOCHS}" in finetune(python, broken, **of_files)
    # Where it stopped, it was tested once more than the unbroken.
    found = [line for line in lines_of(broken) if "test_accuracy" not in line or line["step"] != 50]
    wanted = lines_of(unbroken)
    assert [line["step"] for line in found] == [line["step"] for line in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert {k: v for k, v in one.items() if k != "steps"} == pytest.approx(
            {k: v for k, v in other.items() if k != "steps"}, abs=1e-5
        )

    # What it left goes into the inference template as it is.
    home = tmp_path / "measured"
    home.mkdir()
    printed = printed_by(
        TEMPLATES / "inference/inference.ipynb",
        kernel,
        home,
        {
            "checkpoint": str(unbroken / "best"),
            "data_dir": "",
            "speed_batches": [1, 2],
            "speed_seconds": 0.05,
        },
    )
    assert "8 classes, pictures of 32x32, 200 to test with" in printed
    exact = next(line for line in printed.splitlines() if line.startswith("fp32 "))
    assert float(exact.split()[1]) == pytest.approx(100 * summary["test_accuracy"], abs=0.51)


def test_gradients_that_are_accumulated_are_those_of_the_whole_batch(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, plain = preloaded("pytorch"), {"steps": 4, "workers": 0, "report-every": 1}
    first = tmp_path / "first"
    finetune(python, first, steps=1, workers=0)
    # Dropout would draw for parts what it does not for the whole.
    told = json.loads((first / "start/config.json").read_text())
    (first / "start/config.json").write_text(json.dumps(told | {"hidden_dropout_prob": 0.0}))
    same = {"model": first / "start", "data": first / "shapes", **plain}
    finetune(python, tmp_path / "whole", batch=32, **same)
    finetune(python, tmp_path / "parts", batch=16, accumulate=2, **same)
    losses = [
        [line["loss"] for line in lines_of(tmp_path / name) if "loss" in line]
        for name in ("whole", "parts")
    ]
    assert len(losses[0]) == 4
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_two_processes_learn_what_one_does_and_divide_the_test(
    preloaded: Callable[[str], Path], tmp_path: Path, without_gpu: None
) -> None:
    python, first = preloaded("pytorch"), tmp_path / "first"
    finetune(python, first, steps=1, workers=0)
    # What is drawn at random is another in each process: dropout, mixing, cuts, the operations.
    told = json.loads((first / "start/config.json").read_text())
    (first / "start/config.json").write_text(json.dumps(told | {"hidden_dropout_prob": 0.0}))
    same = {"model": first / "start", "data": first / "shapes", "workers": 0, "report-every": 1}
    same |= {"mixup": 0, "operations": 0, "average": 0.5, "warmup": 0}
    one, two = tmp_path / "one", tmp_path / "two"
    assert "precision fp32\n" in finetune(python, one, batch=32, steps=6, **same)
    # Stopped after half of it, and resumed.
    for steps in (3, 6):
        on_two = finetuning(python, two, batch=8, accumulate=2, steps=steps, **same)
        assert as_by_srun(on_two, 2, **SPARING) == [0, 0]
    wanted, found = (
        {line["step"]: line for line in lines_of(run) if "loss" in line} for run in (one, two)
    )
    assert sorted(found) == sorted(wanted) == list(range(1, 7))
    for step, line in wanted.items():
        assert found[step]["loss"] == pytest.approx(line["loss"], rel=1e-3)
        assert found[step]["accuracy"] == pytest.approx(line["accuracy"], abs=1.5 / 32)
    ours, theirs = (json.loads((run / "summary.json").read_text()) for run in (one, two))
    assert (theirs["processes"], theirs["tf32"]) == (2, False)
    # Each picture is tested once: by one process or the other.
    assert [sum(row) for row in theirs["confusions"]] == [25] * 8
    assert theirs["test_accuracy"] == pytest.approx(ours["test_accuracy"], abs=0.02)
    said = as_by_srun(finetuning(python, two, batch=16, accumulate=2, steps=9, **same), 2)
    assert said == [1, 1]
    assert "batch = 8, not 16" in (two / "error.txt").read_text()


# It has a weight that only its pretraining uses.
HELD_OUT = """
import json, sys
from pathlib import Path
sys.path += [f"{sys.argv[1]}/{name}" for name in ("inference", "vision", "distributed", "data")]
import finetuned, pictures
run, data = Path(sys.argv[2]), sys.argv[3]
_, _, test = finetuned.opened(run / "best", data, 8)
held_out = [label for _, label in pictures.opened(data, 0.1, 2).test]
print(json.dumps([test.labels.tolist(), held_out]))
"""
CALIBRATED = """
import json, sys
from pathlib import Path
sys.path += [f"{sys.argv[1]}/{name}" for name in ("inference", "vision", "distributed", "data")]
import finetuned
_, train, _ = finetuned.opened(Path(sys.argv[2]) / "best", sys.argv[3], int(sys.argv[4]))
print(json.dumps([train.labels.tolist().count(label) for label in range(8)]))
"""
DINO = """
import sys
from transformers import Dinov2Config, Dinov2ForImageClassification
sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2}
small = Dinov2Config(**sizes, image_size=32, patch_size=8, num_labels=2)
Dinov2ForImageClassification(small).save_pretrained(sys.argv[1])
"""


def test_a_network_of_another_kind_is_taught_by_two_processes(
    python_of: Callable[[str], Path], tmp_path: Path, without_gpu: None
) -> None:
    python, model = python_of("pytorch"), tmp_path / "model"
    subprocess.run([str(python), "-c", DINO, str(model)], check=True, timeout=120)
    taught = finetuning(python, tmp_path / "two", model=model, batch=8, steps=3, workers=0)
    assert as_by_srun(taught, 2, **SPARING) == [0, 0]
    assert json.loads((tmp_path / "two/summary.json").read_text())["processes"] == 2


def test_a_run_is_not_continued_with_other_pictures(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, first = preloaded("pytorch"), tmp_path / "first"
    finetune(python, first, steps=1, workers=0)
    # Classes alone: which of their pictures are tested with is drawn.
    own, run = first / "shapes/train", tmp_path / "run"
    given = {"model": first / "start", "data": own, "workers": 0, "report-every": 1}
    given |= {"seed": 2, "held-out": 0.1}
    finetune(python, run, steps=2, **given)
    # The template Inference tests with what was held out, and with nothing else.
    argv = [str(python), "-B", "-c", HELD_OUT, str(TEMPLATES), str(run), str(own)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    measured, held_out = json.loads(done.stdout)
    assert measured == held_out
    # What it calibrates with are pictures of all classes.
    argv = [str(python), "-B", "-c", CALIBRATED, str(TEMPLATES), str(run), str(own), "300"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    counts = json.loads(done.stdout)
    assert sum(counts) == 300
    assert min(counts) > 20
    written = (run / "best/found.json").read_bytes()
    one = next(next(own.iterdir()).iterdir())
    (one.parent / f"another{one.suffix}").write_bytes(one.read_bytes())
    said = finetune(python, run, steps=3, **given)
    assert "holds a training with pictures_sha256 = " in said
    assert "Traceback" not in said
    assert (run / "best/found.json").read_bytes() == written
    # The same pictures elsewhere are no others: a run may be moved.
    moved = first.rename(tmp_path / "moved")
    (moved / "shapes/train" / one.parent.name / f"another{one.suffix}").unlink()
    assert "resumed after step 1 of 2" in finetune(python, moved, steps=2, workers=0)


def test_a_model_or_pictures_that_are_not_there_are_said_in_words(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    said = finetune(preloaded("pytorch"), tmp_path / "run", model=tmp_path / "gone")
    assert "there is no such folder with a config.json" in said
    said += finetune(preloaded("pytorch"), tmp_path / "other", data=tmp_path / "gone")
    assert said.count("there is no such folder") == 2
    assert "Traceback" not in said
