"""The networks that are measured, and how: in the kernels' own environment."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.instance import ROOT
from tests.notebooks.running import said_by
from tests.onefs import LOGIN, stand_in

pytestmark = pytest.mark.long

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"
SCHEMA = json.loads((BENCHMARKS / "schema.json").read_text())

# What is published of each; with the heads in between, of those that have them.
PARAMETERS = {
    "alexnet": 61_100_840,
    "googlenet": 6_624_904,
    "inception3": 23_834_568,
    "inception4": 42_679_816,
    "resnet50": 25_557_032,
    "resnet50_v1": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
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
    "without": {model: facts(model, False) for model in models.SIZES if model != "tiny"},
}))
"""


# Keras's own Inception v3 has no scale in its norms, and so fewer parameters.
IN_KERAS = {"inception3": 23_817_352}
COUNT_IN_KERAS = """
import json, math
from architectures import models, networks_keras

def facts(model):
    network = networks_keras.build(model, models.SIZES[model])
    return [sum(math.prod(w.shape) for w in network.trainable_weights), network.output_shape[1:]]

every = models.BUILT_WITH["tensorflow"]
print(json.dumps({model: facts(model) for model in every if model != "tiny"}))
"""
# Gluon knows the shapes of weights once it has seen those of images; it computes nothing for that.
COUNT_IN_GLUON = """
import json, math
from architectures import models, networks_gluon
from mxnet import sym

def facts(model):
    network, size = networks_gluon.build(model), models.SIZES[model]
    logits = network(sym.var("data"))
    inputs, outputs, _ = logits.infer_shape(data=(2, 3, size, size))
    learned = {name for name, p in network.collect_params().items() if p.grad_req != "null"}
    shapes = dict(zip(logits.list_arguments(), inputs))
    return [sum(math.prod(shapes[name]) for name in learned), outputs[0][1:]]

every = models.BUILT_WITH["mxnet"]
print(json.dumps({model: facts(model) for model in every if model != "tiny"}))
"""

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask_with(python_of: Callable[[str], Path]) -> Ask:
    """Run a program of one's own among the benchmarks, in a framework's Python."""

    def answer(framework: str, program: str, *arguments: object) -> Any:
        argv = [str(python_of(framework)), "-B", "-c", program, *map(str, arguments)]
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


@pytest.fixture(scope="module")
def ask(ask_with: Ask) -> Ask:
    """Run a program of one's own with PyTorch; return what it printed last."""
    return partial(ask_with, "pytorch")


def test_each_network_is_the_published_one(ask: Ask) -> None:
    found = ask(COUNT)
    assert {name: count for name, (count, _) in found["without"].items()} == PARAMETERS
    assert {name: count for name, (count, _) in found["with"].items()} == WITH_HEADS
    logits = {name: len(shapes) for name, (_, shapes) in found["with"].items()}
    assert logits == {"googlenet": 3, "inception3": 2}
    shapes = [shape for kind in found.values() for _, each in kind.values() for shape in each]
    assert all(shape == [2, 1000] for shape in shapes)


@pytest.mark.parametrize(
    ("framework", "program", "changed"),
    [("tensorflow", COUNT_IN_KERAS, IN_KERAS), ("mxnet", COUNT_IN_GLUON, {})],
)
def test_the_networks_of_other_frameworks_are_the_same(
    framework: str, program: str, changed: dict[str, int], ask_with: Ask
) -> None:
    expected = PARAMETERS | changed
    found = ask_with(framework, program)
    assert {name: count for name, (count, _) in found.items()} == {
        name: expected[name] for name in found
    }
    assert {"resnet50", "resnet50_v1", "vgg16"} <= found.keys()
    assert all(shape == [1000] for _, shape in found.values())


# How large images are after the first convolution of the first bottleneck with a stride: of v1
# half as large as before.
STRIDES = {
    "pytorch": """
import json, torch
from architectures import networks

def width(model):
    with torch.device("meta"):
        network = networks.build(model)
        halving = next(block for block in network.blocks if block.conv1.in_channels == 256
                       and block.conv3.out_channels == 512)
        return halving.conv1(torch.empty(1, 256, 56, 56)).shape[-1]

print(json.dumps([width("resnet50"), width("resnet50_v1")]))
""",
    "tensorflow": """
import json
from architectures import networks_keras

def width(model):
    layers = networks_keras.build(model, 224).layers
    narrow = [one for one in layers if "conv" in one.name and one.output.shape[-1] == 128]
    return narrow[0].output.shape[1]

print(json.dumps([width("resnet50"), width("resnet50_v1")]))
""",
    "mxnet": """
import json
from architectures import networks_gluon
from mxnet import sym

def width(model):
    inside = networks_gluon.build(model)(sym.var("data")).get_internals()
    _, shapes, _ = inside.infer_shape(data=(1, 3, 224, 224))
    return next(one[-1] for one in shapes if len(one) == 4 and one[0] == 1 and one[1] == 128)

print(json.dumps([width("resnet50"), width("resnet50_v1")]))
""",
}


@pytest.mark.parametrize("framework", STRIDES)
def test_resnet_50_v1_has_its_strides_in_another_place(framework: str, ask_with: Ask) -> None:
    assert ask_with(framework, STRIDES[framework]) == [56, 28]


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
sampler = images.Sampler(32 * 60, 32, 0, 1, 1)
batches = iter(images.batches(data.train, sampler, 0, range(60), 0, False))
trainer.step_times(batches, 5)
since = time.perf_counter()
step_times = trainer.step_times(batches, 30)
seconds = time.perf_counter() - since
said = traces.images_per_second([traces.Trace(32, step_times)])
print(json.dumps({"said": said, "stopwatch": 30 * 32 / seconds, "steps": len(step_times)}))
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_throughput_is_that_of_a_stopwatch_around_the_same_loop(
    precision: str, ask: Ask
) -> None:
    found = ask(TIMED, precision)
    assert found["steps"] == 30
    assert found["said"] == pytest.approx(found["stopwatch"], rel=0.02)


# The same with the other frameworks, whose programs have the same parts.
TIMED_ELSEWHERE = {
    "tensorflow": """
import json, time
from trials import timed, traces, train_speed_tensorflow as program

s = timed.parser().parse_args(["--results=/nowhere", "--model=tiny", "--batch=32"])
trainer = program.TensorflowTrainer(s, program.training.TensorflowGroup(program.place({})))
batches = program.stream(s)
finish = program.tf.test.experimental.sync_devices
""",
    "mxnet": """
import json, time
from trials import timed, traces, train_speed_mxnet as program

s = timed.parser().parse_args(["--results=/nowhere", "--model=tiny", "--batch=32"])
trainer = program.GluonTrainer(s, program.MxnetGroup(program.place({})))
batches = program.stream(s)
finish = program.nd.waitall
""",
}
STOPWATCH = """
trainer.step_times(batches, 5)
since = time.perf_counter()
step_times = trainer.step_times(batches, 30)
finish()  # what steps had not waited for is in the stopwatch's time alone
seconds = time.perf_counter() - since
said = traces.images_per_second([traces.Trace(32, step_times)])
print(json.dumps({"said": said, "stopwatch": 30 * 32 / seconds, "steps": len(step_times)}))
"""


@pytest.mark.parametrize("framework", TIMED_ELSEWHERE)
def test_the_throughput_of_other_frameworks_is_that_of_a_stopwatch_too(
    framework: str, ask_with: Ask
) -> None:
    found = ask_with(framework, TIMED_ELSEWHERE[framework] + STOPWATCH)
    assert found["steps"] == 30
    assert found["said"] == pytest.approx(found["stopwatch"], rel=0.02)


COMPARED = [
    *("--models", "tiny", "--precisions", "fp32", "--batch", "8", "--steps", "3", "--warmup", "1"),
    *("--runs", "1", "--frameworks", "pytorch,tensorflow,mxnet"),
]


def test_one_run_compares_frameworks_and_continues_with_what_is_missing(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    kernels = ",".join(f"{name}={python_of(name)}" for name in ("tensorflow", "mxnet"))
    argv: list[str | Path] = [python_of("pytorch"), "-B", BENCHMARKS / "training.py"]
    argv += ["--results", tmp_path]
    argv += [*COMPARED, "--kernels", kernels]
    assert "Traceback" not in said_by(argv)
    before = parts_of(tmp_path)
    kinds = {name: part["framework"] for name, part in before.items()}
    assert kinds == {
        "tiny fp32 run 1": "pytorch",
        "tiny fp32 tensorflow run 1": "tensorflow",
        "tiny fp32 mxnet run 1": "mxnet",
    }
    for framework, part in zip(kinds.values(), before.values(), strict=True):
        # Each in its own Python.
        assert part["python"] == str(python_of(framework))
        assert (part["batch"], part["size"], part["steps"]) == (8, 32, 3)

    # As it was when it was ended before MXNet's turn.
    progress = tmp_path / "progress.jsonl"
    lines = progress.read_text().splitlines(keepends=True)
    progress.write_text("".join(line for line in lines if "mxnet run" not in line))
    (tmp_path / "summary.json").unlink()
    said = said_by(argv)
    assert "3 of 3: tiny fp32 mxnet run 1" in said
    assert "tensorflow run 1" not in said
    after = parts_of(tmp_path)
    kept = [name for name in before if "mxnet" not in name]
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert after["tiny fp32 mxnet run 1"]["times"] != before["tiny fp32 mxnet run 1"]["times"]


def test_a_framework_that_is_missing_or_fails_is_said_in_words(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    kernels = f"tensorflow=/nowhere/python,mxnet={python_of('mxnet')}"
    argv: list[str | Path] = [python_of("pytorch"), "-B", BENCHMARKS / "training.py"]
    argv += ["--results", tmp_path]
    # MXNet has fp16 on GPUs only, as its program finds out.
    argv += [*COMPARED, "--kernels", kernels, "--precisions", "fp16"]
    assert "Traceback" not in said_by(argv, {"CUDA_VISIBLE_DEVICES": ""})
    assert not (tmp_path / "error.txt").exists()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [row["framework"] for row in summary["figures"]["trainings"]] == ["pytorch"]
    tensorflow, mxnet = summary["figures"]["not_measured"]
    assert tensorflow["framework"] == "tensorflow"
    assert "there is no kernel of TensorFlow here: /nowhere/python: " in tensorflow["reason"]
    assert mxnet["framework"] == "mxnet"
    assert "MXNet has fp16 on GPUs only" in mxnet["reason"]


def test_what_the_nas_says_of_itself_is_beside_a_training(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    secrets, results = tmp_path / "secrets", tmp_path / "r"
    secrets.mkdir()
    argv: list[str | Path] = [python_of("pytorch"), "-B", BENCHMARKS / "training.py"]
    argv += ["--results", results, *COMPARED, "--frameworks", "pytorch"]
    with stand_in(tmp_path, "/ifs/data", secrets) as running:
        known = {"SSL_CERT_FILE": str(secrets / "ca.pem"), "NETRC": str(secrets / "netrc")}
        said = said_by([*argv, "--nas-api", running.url], known)
    assert "statistics are missing" not in said
    assert set(parts_of(results)) == {"tiny fp32 run 1"}
    summary = json.loads((results / "summary.json").read_text())
    assert summary["configuration"]["nas_api"] == running.url
    assert {line["read_mb_per_second"] for line in summary["nas"]} == {2680.0}
    assert {line["disk_reads_per_second"] for line in summary["nas"]} == {20_000.0}
    assert {line["disk_read_kib"] for line in summary["nas"]} == {64.0}
    assert LOGIN[1] not in json.dumps(summary) + said


def parts_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a run measured, by the parts' names."""
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, SCHEMA)
    assert summary["figures"]["not_measured"] == []
    return {part["name"]: part for part in summary["parts"]}


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
