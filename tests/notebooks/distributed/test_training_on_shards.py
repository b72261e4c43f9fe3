"""A ResNet learns from prepare.py's shards."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks.pictures import CLASSES, EACH, SOUND
from tests.notebooks.running import Run, as_by_srun

DISTRIBUTED = ROOT / "notebook_templates" / "distributed"


@pytest.fixture(scope="module")
def shards(prepare: Run, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    assert prepare("write", pictures, folder, "--shards", 4, "--first-label", 1).returncode == 0
    return folder


def words_of(shards: Path, results: Path, **more: object) -> list[str]:
    told = {"model": "tiny", "size": 32, "batch": 10, "epochs": 2, "workers": 2, "report-every": 1}
    told |= {"data": shards, "results": results, **more}
    return [word for name, value in told.items() for word in (f"--{name}", str(value))]


def train(
    preloaded: Callable[..., Path], shards: Path, results: Path, **more: object
) -> subprocess.CompletedProcess[str]:
    words = words_of(shards, results, **more)
    argv = [str(preloaded("pytorch", "torch")), "-B", str(DISTRIBUTED / "train_resnet.py"), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)


def losses(
    preloaded: Callable[..., Path], shards: Path, results: Path, steps: int
) -> list[tuple[int, float]]:
    """Train on shards up to a step, going on where it stopped before; return all losses so far."""
    done = train(preloaded, shards, results, steps=steps)
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, (results / "progress.jsonl").read_text().splitlines())
    return [(line["step"], line["loss"]) for line in lines if "loss" in line]


def accuracies(results: Path) -> list[float]:
    """Return what the tests after the epochs gave."""
    lines = map(json.loads, (results / "progress.jsonl").read_text().splitlines())
    return [line["test_accuracy"] for line in lines if "test_accuracy" in line]


def test_a_training_on_shards_is_resumed_within_an_epoch_to_the_same_losses(
    preloaded: Callable[..., Path], shards: Path, tmp_path: Path
) -> None:
    steps = SOUND // 10 * 2
    whole = losses(preloaded, shards, tmp_path / "whole", steps)
    assert [step for step, _ in whole] == list(range(1, steps + 1))
    losses(preloaded, shards, tmp_path / "broken", 5)  # another reader's turn than the first's
    losses(preloaded, shards, tmp_path / "broken", SOUND // 10 + 2)
    assert losses(preloaded, shards, tmp_path / "broken", steps) == whole


def test_a_training_on_shards_is_not_resumed_with_other_reading_processes(
    preloaded: Callable[..., Path], shards: Path, tmp_path: Path
) -> None:
    assert train(preloaded, shards, tmp_path, steps=3).returncode == 0
    done = train(preloaded, shards, tmp_path, steps=6, workers=1)
    assert done.returncode == 1
    assert f"{tmp_path} holds a training with shard_workers = 2, not 1: use" in done.stderr
    assert "Traceback" not in done.stderr


# The nodes of the processes have two cores and three: one reading process by itself, or two.
OTHER_CORES = """
import os
import train_resnet as t

os.sched_getaffinity = lambda _: set(range(2 + int(os.environ["SLURM_PROCID"])))
t.run(t.main, t.settings())
"""


def test_nodes_with_other_cores_divide_shards_alike(
    preloaded: Callable[..., Path], shards: Path, tmp_path: Path
) -> None:
    argv = [str(preloaded("pytorch", "torch")), "-B", "-c", OTHER_CORES]
    # Of 60 images for a process, one that reads gives 7 such batches, two give 6.
    words = words_of(shards, tmp_path, workers=-1, batch=8)
    assert as_by_srun([*argv, *words], 2) == [0, 0]
    assert len((tmp_path / "progress.jsonl").read_text().splitlines()) == 2 * 7


def test_a_network_for_shards_has_as_many_classes_as_they(
    preloaded: Callable[..., Path], shards: Path
) -> None:
    program = """
import sys, images
opened = images.open_images(sys.argv[1], 32, 0, [], rank=1, ranks=2, seed=1)
print(opened.classes, len(opened.train), len(list(opened.train)))
"""
    argv = [str(preloaded("pytorch", "torch")), "-B", "-c", program, str(shards)]
    said = subprocess.check_output(argv, cwd=DISTRIBUTED, text=True, timeout=60)
    assert said.split() == [str(CLASSES), str(SOUND), str(SOUND // 2)]


def test_shards_in_val_test_the_network_each_image_once(
    prepare: Run, preloaded: Callable[..., Path], shards: Path, pictures: Path, tmp_path: Path
) -> None:
    (tmp_path / "train").symlink_to(shards)
    assert prepare("write", pictures, tmp_path / "val", "--shards", 3).returncode == 0
    program = """
import sys, images
for rank in 0, 1:
    opened = images.open_images(sys.argv[1], 32, 0, [], rank=rank, ranks=2, seed=1)
    for pixels, labels in images.to_test(opened.test, rank, 2, 7):
        print(*labels.tolist())
"""
    argv = [str(preloaded("pytorch", "torch")), "-B", "-c", program, str(tmp_path)]
    said = subprocess.check_output(argv, cwd=DISTRIBUTED, text=True, timeout=60).split()
    assert Counter(said) == {str(label): EACH for label in range(CLASSES)}

    losses(preloaded, tmp_path, tmp_path / "results", SOUND // 10)
    (tested,) = accuracies(tmp_path / "results")
    assert tested * SOUND == pytest.approx(round(tested * SOUND))


def test_shards_to_test_with_must_have_the_same_classes(
    prepare: Run, preloaded: Callable[..., Path], shards: Path, pictures: Path, tmp_path: Path
) -> None:
    (tmp_path / "train").symlink_to(shards)
    (tmp_path / "fewer").mkdir()
    (tmp_path / "fewer" / "class2").symlink_to(pictures / "class2")
    assert prepare("write", tmp_path / "fewer", tmp_path / "val", "--shards", 1).returncode == 0
    program = "import sys, images; images.open_images(sys.argv[1], 32, 0, [], 0, 1, 1)"
    argv = [str(preloaded("pytorch", "torch")), "-B", "-c", program, str(tmp_path)]
    done = subprocess.run(
        argv, cwd=DISTRIBUTED, capture_output=True, text=True, check=False, timeout=60
    )
    assert "val has different classes from" in done.stderr


def test_more_readers_than_shards_are_refused_in_one_line(
    preloaded: Callable[..., Path], shards: Path, tmp_path: Path
) -> None:
    done = train(preloaded, shards, tmp_path, workers=5)
    assert done.returncode == 1
    (line,) = (tmp_path / "error.txt").read_text().splitlines()
    assert line.endswith(": 5 readers for only 4 shards: prepare more")


def test_a_damaged_shard_is_named_in_one_line(
    preloaded: Callable[..., Path], shards: Path, tmp_path: Path
) -> None:
    shutil.copytree(shards, tmp_path / "shards")
    shard = tmp_path / "shards" / "train-00002-of-00004"
    shard.write_bytes(shard.read_bytes()[:-100])
    done = train(preloaded, tmp_path / "shards", tmp_path / "results")
    assert done.returncode == 1
    (line,) = (tmp_path / "results/error.txt").read_text().splitlines()
    assert f": {shard} cannot be read: " in line
