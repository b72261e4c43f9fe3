"""The networks that are measured, and how: in the kernels' own environment."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT

pytestmark = pytest.mark.long

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"

# What is published of each; with the heads in between, of those that have them.
PARAMETERS = {
    "alexnet": 61_100_840,
    "googlenet": 6_624_904,
    "inception3": 23_834_568,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "vgg16": 138_357_544,
}
WITH_HEADS = {"googlenet": 13_004_888, "inception3": 27_161_264}
# On PyTorch's device "meta" layers have shapes, and neither memory nor work.
COUNT = """
import json, torch
from architectures import models, networks

def facts(model, heads):
    with torch.device("meta"):
        network = networks.build(model, heads=heads)
        size = models.SIZES[model]
        logits = network(torch.empty(2, 3, size, size))
    every = logits if isinstance(logits, list) else [logits]
    return [sum(p.numel() for p in network.parameters()), [list(one.shape) for one in every]]

print(json.dumps({
    "with": {model: facts(model, True) for model in ("googlenet", "inception3")},
    "without": {model: facts(model, False) for model in models.PAPERS},
}))
"""


@pytest.fixture(scope="module")
def ask(python_of: Callable[[str], Path]) -> Callable[..., Any]:
    """Run a program of one's own among the benchmarks; return what it printed last."""
    python = str(python_of("pytorch"))

    def answer(program: str, *arguments: object) -> Any:
        argv = [python, "-B", "-c", program, *map(str, arguments)]
        done = subprocess.run(
            argv,
            cwd=BENCHMARKS,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return answer


def test_each_network_is_the_published_one(ask: Callable[..., Any]) -> None:
    found = ask(COUNT)
    assert {name: count for name, (count, _) in found["without"].items()} == PARAMETERS
    assert {name: count for name, (count, _) in found["with"].items()} == WITH_HEADS
    logits = {name: len(shapes) for name, (_, shapes) in found["with"].items()}
    assert logits == {"googlenet": 3, "inception3": 2}
    shapes = [shape for kind in found.values() for _, each in kind.values() for shape in each]
    assert all(shape == [2, 1000] for shape in shapes)


# Prints what is said of some steps, and what a stopwatch around them says.
TIMED = """
import argparse, json, sys, time
from architectures import networks
from trials import traces, train_speed
import images
from ranks import place
from process_group import DataParallel

sys.argv[1:] = ["--results", "/nowhere", "--model", "tiny", "--precision", sys.argv[1]]
s = train_speed.settings()
group = DataParallel(place({}))
trainer = train_speed.Trainer(s, group, networks.build("tiny"))
data = images.open_images("synthetic", 32, 32 * 60, [], 0, 1, 1)
share = images.Sampler(32 * 60, 32, 0, 1, 1)
batches = iter(images.batches(data.train, share, 0, range(60), 0, False))
trainer.step_times(batches, 5)
since = time.perf_counter()
step_times = trainer.step_times(batches, 30)
seconds = time.perf_counter() - since
said = traces.images_per_second([traces.Trace(32, step_times)])
print(json.dumps({"said": said, "stopwatch": 30 * 32 / seconds, "steps": len(step_times)}))
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_throughput_is_that_of_a_stopwatch_around_the_same_loop(
    precision: str, ask: Callable[..., Any]
) -> None:
    found = ask(TIMED, precision)
    assert found["steps"] == 30
    assert found["said"] == pytest.approx(found["stopwatch"], rel=0.02)


def test_what_cannot_be_measured_is_said_in_a_sentence(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", str(BENCHMARKS / "training.py")]
    options = ["--results", str(tmp_path), "--models", "tiny", "--data", "/nowhere"]
    done = subprocess.run([*argv, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert not (tmp_path / "summary.json").exists()
    error = (tmp_path / "error.txt").read_text()
    assert "/nowhere has neither MNIST's files, nor shards" in error
    assert "Traceback" not in done.stderr + error
