"""The smallest training: the same file for one process, under torchrun, and as srun starts it."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.waiting import until

TRAIN = ROOT / "notebook_templates" / "distributed" / "minimal" / "train.py"
# On the second process's node the checkpoint is not to be seen yet.
UNSEEN = """
if os.environ.get("RANK") == "1":
    exists = os.path.exists
    os.path.exists = lambda path: path != "checkpoint.pt" and exists(path)
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def train(folder: Path, python: Path, *starter: str, program: Path = TRAIN) -> str:
    """Run it to its end in a folder; return what it printed."""
    argv = [str(python), "-B", *starter, str(program)]
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=True, timeout=200
    ).stdout


def losses_of(folder: Path) -> dict[int, float]:
    """Return the loss of each epoch; of one that was computed twice, the last."""
    lines = map(json.loads, (folder / "progress.jsonl").read_text().splitlines())
    return {line["step"]: line["loss"] for line in lines}


@pytest.fixture(scope="module", params=[(), TORCHRUN], ids=["alone", "torchrun"])
def starter(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """What stands before the program."""
    return tuple(request.param)


@pytest.fixture(scope="module")
def whole(
    starter: tuple[str, ...],
    python_of: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, str]:
    """The folder of a training that nothing ended, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, train(folder, python_of("pytorch"), *starter)


def test_the_smallest_training_learns(starter: tuple[str, ...], whole: tuple[Path, str]) -> None:
    folder, said = whole
    processes = "2 processes" if starter else "1 process"
    losses = re.findall(rf"epoch \d of 5: loss ([\d.]+) on {processes}\n", said)
    assert len(losses) == 5
    assert float(losses[-1]) < 0.6 * float(losses[0])
    assert float(said.split("test accuracy ")[1]) > 0.85
    assert len((folder / "progress.jsonl").read_text().splitlines()) == 5


def test_a_training_that_was_ended_goes_on_as_if_it_had_not_been(
    starter: tuple[str, ...],
    whole: tuple[Path, str],
    python_of: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    (unbroken, said), broken = whole, tmp_path
    python = python_of("pytorch")
    # It waits behind its first checkpoint: all five epochs take less than a second.
    code, saved = TRAIN.read_text(), 'os.replace(f"{CHECKPOINT}.new", CHECKPOINT)\n'
    assert code.count(saved) == 1
    waiting = tmp_path / "waiting.py"
    waiting.write_text(code.replace(saved, f"{saved[:-1]}; __import__('time').sleep(300)\n"))
    argv = [str(python), "-B", *starter, str(waiting)]
    with subprocess.Popen(
        argv, cwd=broken, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            until((broken / "checkpoint.pt").exists, seconds=100, what="an epoch")
        finally:
            # torchrun ends its processes first.
            running.terminate()
    assert list(losses_of(broken)) == [1]
    unseen = tmp_path / "unseen.py"
    assert code.count("import sys\n") == 1
    unseen.write_text(code.replace("import sys\n", f"import sys\n{UNSEEN}"))
    again = train(broken, python, *starter, program=unseen)
    assert "epoch 1 of" not in again
    assert losses_of(broken) == losses_of(unbroken)
    assert again.split("test accuracy ")[1] == said.split("test accuracy ")[1]
    assert not (broken / "checkpoint.pt.new").exists()


def test_a_short_last_batch_counts_by_its_examples(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    losses = []
    for batch in (8_192, 8_191):
        folder = tmp_path / str(batch)
        folder.mkdir()
        # Nothing is learnt, so the loss of all examples is the same however they are divided.
        program = TRAIN.read_text().replace("lr=3e-3", "lr=0.0").replace("EPOCHS = 5", "EPOCHS = 1")
        (folder / "train.py").write_text(program.replace("BATCH = 64", f"BATCH = {batch}"))
        train(folder, python_of("pytorch"), program=folder / "train.py")
        losses.append(losses_of(folder)[1])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
