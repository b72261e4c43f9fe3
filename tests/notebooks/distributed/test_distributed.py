"""What the trainings compute by themselves, in the kernels' own environments."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import bootstrap
import pytest

from tests.instance import ROOT
from tests.notebooks.running import TRAINING, as_by_srun, said_by

TEMPLATES = ROOT / "notebook_templates"
PUBLISHED = {"50": 25_557_032, "101": 44_549_160, "152": 60_192_808}
COUNTS = {
    "pytorch": """
import json
from networks import resnet
count = lambda model: sum(p.numel() for p in resnet.build(model, 1000).parameters())
print(json.dumps({model: count(model) for model in ("50", "101", "152")}))
""",
    "tensorflow": """
import json
from networks import resnet_keras
count = lambda model: sum(
    w.value.shape.num_elements() for w in resnet_keras.build(model, 1000, 224).trainable_weights)
print(json.dumps({model: count(model) for model in ("50", "101", "152")}))
""",
}


# torchvision is the one for PyTorch's version in kernel-pytorch.in.
TIMM = ("timm==1.0.31", "torchvision==0.28.0")
CLASSES, EACH = 3, 8
MAKE = """
import sys
from pathlib import Path
import numpy as np
from PIL import Image

for part, each in (("train", int(sys.argv[3])), ("val", 5)):
    for label in range(int(sys.argv[2])):
        folder = Path(sys.argv[1], part, f"class{label}")
        folder.mkdir(parents=True)
        for number in range(each):
            # Of one colour, which tells the class after all that is done to it.
            pixels = np.full((60, 80, 3), 40 + 80 * label, np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=100)
"""
# Prints what two ranks see of JPEG folders or shards: for each image its colour and its label.
SEEN = """
import json, sys
import images_tensorflow as images
from cuts import MEAN, DEVIATION
from sampler import Sampler

data = images.open_images(sys.argv[1], 32, 0, ["/nowhere", sys.argv[2]], 1)
samplers = [Sampler(data.count, 4, rank, 2, seed=1) for rank in range(2)]

def seen(batches):
    return [
        [[round(float(image[..., 0].numpy().mean() * DEVIATION[0] + MEAN[0]) * 255), int(label)]
         for image, label in zip(pixels, labels)]
        for pixels, labels in batches
    ]

def exact(batches):
    return [[hash(pixels.numpy().tobytes()), labels.numpy().tolist()] for pixels, labels in batches]

print(json.dumps({
    "count": data.count, "classes": data.classes,
    "train": [seen(data.train(sampler, 0, 0)) for sampler in samplers],
    "whole": exact(data.train(samplers[1], 1, 0)), "resumed": exact(data.train(samplers[1], 1, 2)),
    "test": [seen(data.test(rank, 2, 4)) for rank in range(2)],
}))
"""
# Two processes; in a step the losses of one are too large for 16 bits.
OVERFLOW = """
import os
import tensorflow as tf
import train_resnet_tensorflow as t

losses_of = t.Network._losses

def losses(network, logits, labels):
    optimizer = network.optimizer
    comes_now = (optimizer.iterations.value == 3) & (optimizer.dynamic_scale.value == 2.0**15)
    return losses_of(network, logits, labels) * tf.where(comes_now, 1e38, 1.0)

if os.environ["SLURM_PROCID"] == "1":
    t.Network._losses = losses
t.run(t.main, t.settings())
"""
# Two processes train on different images; prints how far the second's running means are off.
RUNNING_MEANS = """
import os, sys
import torch
import torch.distributed as dist
from networks import resnet
from process_group import DataParallel
from ranks import place

group = DataParallel(place(os.environ))
torch.manual_seed(1)
model = resnet.build("tiny", classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
trained, _ = group.joined(model, optimizer)
torch.manual_seed(group.here.rank)
trained(torch.randn(4, 3, 32, 32)).square().mean().backward()
optimizer.step()
group.agree(model)
means = torch.cat([one.flatten() for name, one in model.named_buffers() if "running" in name])
firsts = means.clone()
dist.broadcast(firsts, 0)
dist.barrier()
os._exit(int(not torch.equal(means, firsts)))
"""
# The second process's node does not see yet that there is a checkpoint.
UNSEEN = {
    "pytorch": """
import os
import pathlib
import train_resnet as t

exists = pathlib.Path.exists
if os.environ["SLURM_PROCID"] == "1":
    pathlib.Path.exists = lambda path: path.name != "checkpoint.pt" and exists(path)
t.run(t.main, t.settings())
""",
    "tensorflow": """
import os
import tensorflow as tf
import train_resnet_tensorflow as t

if os.environ["SLURM_PROCID"] == "1":
    tf.train.latest_checkpoint = lambda folder: None
t.run(t.main, t.settings())
""",
}
# Trains with made-up images, and says what they are and what of them a network is given.
SYNTHETIC = """
import json
import tensorflow as tf
import train_resnet_tensorflow as t
from sampler import Sampler

given = []
learn = t.Network.learn
t.Network.learn = lambda self, *batch: given.append(batch[0].dtype) or learn(self, *batch)
t.main(t.settings())
assert given == [tf.uint8] * 2, given

data = t.images.open_images("synthetic", 32, 64, [], 0)
pixels, labels = next(iter(data.train(Sampler(64, 8, 0, 1, seed=1), 0, 0)))
numbers = t.images.on_device(pixels)
print(json.dumps({
    "kinds": [pixels.dtype.name, numbers.dtype.name], "shape": pixels.shape.as_list(),
    "range": [int(tf.reduce_min(pixels)), int(tf.reduce_max(pixels))],
    "mean": float(tf.reduce_mean(numbers)), "deviation": float(tf.math.reduce_std(numbers)),
    "unchanged": t.images.on_device(numbers) is numbers,
}))
"""


@pytest.fixture(scope="module")
def pictures(preloaded: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEG folders to train on and to test with, and the same as shards."""
    folder = tmp_path_factory.mktemp("pictures")
    python = str(preloaded("pytorch"))
    argv = [python, "-c", MAKE, str(folder / "jpegs"), str(CLASSES), str(EACH)]
    subprocess.run(argv, check=True, timeout=60)
    for part in ("train", "val"):
        prepare = [python, "-B", str(TEMPLATES / "data" / "prepare.py"), "write"]
        places = [str(folder / "jpegs" / part), str(folder / "shards" / part)]
        options = ["--shards", "4", "--first-label", "1"]
        subprocess.run([*prepare, *places, *options], check=True, timeout=60)
    return folder


def seen(python: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(python), "-B", "-c", SEEN, *map(str, arguments)],
        cwd=TRAINING,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("kind", ["jpegs", "shards"])
def test_tensorflow_reads_folders_and_shards_and_goes_on_where_it_stopped(
    kind: str, pictures: Path, preloaded: Callable[[str], Path]
) -> None:
    done = seen(preloaded("tensorflow"), kind, pictures)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["count"], found["classes"]) == (CLASSES * EACH, CLASSES)
    assert [[len(batch) for batch in rank] for rank in found["train"]] == [[4, 4, 4]] * 2
    images = [one for part in ("train", "test") for rank in found[part] for b in rank for one in b]
    assert all(abs(colour - (40 + 80 * label)) < 4 for colour, label in images)
    assert len(found["whole"]) == 3
    assert found["resumed"] == found["whole"][2:]
    tested = sorted(label for rank in found["test"] for batch in rank for _, label in batch)
    assert tested == [0] * 5 + [1] * 5 + [2] * 5


def test_made_up_images_for_tensorflow_are_bytes_until_they_are_on_the_device(
    preloaded: Callable[[str], Path], tmp_path: Path, without_gpu: None
) -> None:
    words = ["--results", str(tmp_path), "--model", "tiny", "--size", "32", "--images", "64"]
    done = subprocess.run(
        [str(preloaded("tensorflow")), "-B", "-c", SYNTHETIC, *words, "--batch", "8", "--steps=2"],
        cwd=TRAINING, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["kinds"], said["shape"]) == (["uint8", "float32"], [8, 32, 32, 3])
    assert (said["range"], said["unchanged"]) == ([0, 255], True)
    # Of bytes that are equally frequent: (0.5 - mean) / deviation, and 0.29 / deviation.
    assert said["mean"] == pytest.approx(0.23, abs=0.05)
    assert said["deviation"] == pytest.approx(1.29, abs=0.05)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["steps"], summary["tf32"]) == (2, False)


def test_shards_that_are_not_finished_are_refused(
    pictures: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "half").mkdir()
    plan = (pictures / "shards" / "train" / "plan.json").read_text()
    (tmp_path / "half" / "plan.json").write_text(plan)
    done = seen(preloaded("tensorflow"), "half", tmp_path)
    assert done.returncode != 0
    assert "is not finished; prepare it again" in done.stderr


def test_shards_to_test_with_must_have_the_same_classes_for_tensorflow_too(
    pictures: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    for part in ("train", "val"):
        shutil.copytree(pictures / "shards" / part, tmp_path / "shards" / part)
    file = tmp_path / "shards/val/plan.json"
    plan = json.loads(file.read_text())
    file.write_text(json.dumps({**plan, "classes": plan["classes"][::-1]}))
    done = seen(preloaded("tensorflow"), "shards", tmp_path)
    assert done.returncode != 0
    assert "val has different classes from" in done.stderr


def options(results: Path, nas: Path, **more: object) -> list[str]:
    chosen = {"results": results, "model": "tiny", "data": nas / "datasets" / "mnist", **more}
    return [
        word
        for name, value in chosen.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def losses(results: Path) -> list[float]:
    lines = [json.loads(line) for line in (results / "progress.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def test_a_step_that_overflows_in_one_process_is_left_out_by_all(
    nas: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    words = options(tmp_path, nas, steps=8, report_every=1, precision="fp16", batch=16)
    argv = [str(preloaded("tensorflow")), "-B", "-c", OVERFLOW, *words]
    assert as_by_srun(argv, 2) == [0, 0]
    found = losses(tmp_path)
    # The step is taken again, with half the scale.
    assert [step for step, loss in enumerate(found, 1) if loss > 1e30] == [4]
    assert found[-1] < 10


def test_all_processes_test_with_the_same_running_means(preloaded: Callable[[str], Path]) -> None:
    assert as_by_srun([str(preloaded("pytorch")), "-B", "-c", RUNNING_MEANS], 2) == [0, 0]


@pytest.mark.parametrize("framework", UNSEEN)
def test_all_processes_go_on_from_the_checkpoint_that_the_first_one_sees(
    framework: str, nas: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    same = {"report_every": 1, "batch": 8}
    program = [str(preloaded(framework)), "-B", "-c", UNSEEN[framework]]
    for steps in (4, 8):
        words = options(tmp_path, nas, steps=steps, **same)
        assert as_by_srun([*program, *words], 2) == [0, 0]
    resumed = losses(tmp_path)
    whole = options(tmp_path / "whole", nas, steps=8, **same)
    assert as_by_srun([*program, *whole], 2) == [0, 0]
    assert resumed == losses(tmp_path / "whole")


# Of two processes the second is signalled as they begin to learn, long before their first report.
SIGNALLED = """
import importlib, os, signal, sys
t = importlib.import_module(sys.argv.pop(1))
if os.environ["SLURM_PROCID"] == "1":
    StepTimer = t.StepTimer
    t.StepTimer = lambda: os.kill(os.getpid(), signal.SIGUSR1) or StepTimer()
t.run(t.main, t.settings())
"""


@pytest.mark.parametrize(
    ("framework", "program"),
    [("pytorch", "train_resnet"), ("tensorflow", "train_resnet_tensorflow")],
)
def test_processes_stop_between_two_reports_when_one_is_signalled(
    framework: str, program: str, nas: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    words = options(tmp_path, nas, steps=60, report_every=50, batch=8)
    argv = [str(preloaded(framework)), "-B", "-c", SIGNALLED, program]
    assert as_by_srun([*argv, *words], 2) == [0, 0]
    (line,) = map(json.loads, (tmp_path / "progress.jsonl").read_text().splitlines())
    assert line["step"] == 1
    argv = [str(preloaded(framework)), "-B", f"{program}.py"]
    assert as_by_srun([*argv, *words], 2) == [0, 0]
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 60


def test_without_horovod_it_is_said_what_is_missing(
    nas: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(preloaded("pytorch")), "-B", "train_resnet.py"]
    assert as_by_srun([*argv, *options(tmp_path, nas, engine="horovod")], 1) == [1]
    error = (tmp_path / "error.txt").read_text()
    assert "Python has no Horovod for its PyTorch" in error
    assert "No module named 'horovod'" in error
    assert "Set engine to 'ddp'" in error
    assert "Traceback" not in error


def test_a_network_of_ones_own_is_trained(
    nas: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from torch import nn\n\n"
        "def small(classes, channels):\n"
        "    last = nn.Linear(49 * channels, classes)\n"
        "    return nn.Sequential(nn.AdaptiveAvgPool2d(7), nn.Flatten(), last)\n"
    )
    argv = [str(preloaded("pytorch")), "-B", "train_resnet.py"]
    words = {"steps": 10, "report_every": 5, "batch": 32}
    mine = options(tmp_path / "run", nas, **{**words, "model": f"{file}:small"})
    assert as_by_srun([*argv, *mine], 1) == [0]
    first, last = losses(tmp_path / "run")
    assert last < first
    gone = options(tmp_path / "gone", nas, **{**words, "model": f"{file}:large"})
    assert as_by_srun([*argv, *gone], 1) == [1]
    assert "has no attribute 'large'" in (tmp_path / "gone" / "error.txt").read_text()


@pytest.mark.parametrize(
    ("framework", "program"),
    [("pytorch", "train_resnet.py"), ("tensorflow", "train_resnet_tensorflow.py")],
)
def test_a_copy_of_a_program_finds_its_modules(
    framework: str, program: str, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "templates").symlink_to(TEMPLATES)
    (tmp_path / "mine.py").write_bytes((TRAINING / program).read_bytes())
    argv = [str(preloaded(framework)), "-B", str(tmp_path / "mine.py"), "--help"]
    said = said_by(argv, {"HOME": str(tmp_path)})
    assert said.startswith("usage: mine.py")


# The registry's torchvision is built for CUDA, and nothing here uses its compiled operators: those
# that it looks for when it is imported are there by name alone.
WITH_OPERATORS = """
import runpy
import torch

operators = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
runpy.run_path("train_resnet.py", run_name="__main__")
"""


@pytest.fixture(scope="module")
def timm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an environment of a user's own has more than ours: timm, and what that needs."""
    folder = tmp_path_factory.mktemp("packages")
    uv = bootstrap.deploy_environment() / "bin/uv"
    into = ["--python", str(bootstrap.PYTHON), "--target", str(folder)]
    done = subprocess.run(
        [str(uv), "pip", "install", "--no-deps", *into, *TIMM],
        capture_output=True, text=True, check=False, timeout=280,
        env={**os.environ, "UV_CACHE_DIR": str(bootstrap.CACHE / "uv")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_a_network_of_timm_is_trained_and_goes_on_where_it_stopped(
    nas: Path, timm: Path, python_of: Callable[[str], Path], tmp_path: Path, without_gpu: None
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", WITH_OPERATORS]
    fast = {"rate": 0.8, "warmup": 0, "batch": 32, "report_every": 5, "workers": 0}
    words = options(tmp_path, nas, model="timm:test_resnet", **fast)
    for steps in ("10", "20"):
        done = as_by_srun([*argv, *words, "--steps", steps], 1, PYTHONPATH=str(timm))
        assert done == [0], (tmp_path / "error.txt").read_text()
    found = losses(tmp_path)
    assert len(found) == 4
    assert found[-1] < 0.95 * found[0]


@pytest.mark.parametrize(
    ("program", "name", "said"),
    [
        (["-c", WITH_OPERATORS], "nothing", "Unknown model (nothing)"),
        (["train_resnet.py"], "test_resnet", "operator torchvision::nms does not exist"),
    ],
)
def test_what_timm_cannot_give_is_said_in_its_words(
    program: list[str], name: str, said: str,
    nas: Path, timm: Path, python_of: Callable[[str], Path], tmp_path: Path,
) -> None:  # fmt: skip
    words = options(tmp_path, nas, model=f"timm:{name}")
    argv = [str(python_of("pytorch")), "-B", *program, *words]
    assert as_by_srun(argv, 1, PYTHONPATH=str(timm)) == [1]
    error = (tmp_path / "error.txt").read_text()
    assert f"model is 'timm:{name}': {said}" in error
    assert "Traceback" not in error


def test_the_absence_of_timm_is_said(
    nas: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(preloaded("pytorch")), "-B", "train_resnet.py"]
    assert as_by_srun([*argv, *options(tmp_path, nas, model="timm:test_resnet")], 1) == [1]
    error = (tmp_path / "error.txt").read_text()
    assert "model is 'timm:test_resnet': No module named 'timm'" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("framework", sorted(COUNTS))
def test_the_networks_have_as_many_weights_as_published(
    framework: str, preloaded: Callable[[str], Path]
) -> None:
    # With 1,000 classes: He et al. 2015; the figures that torchvision's documentation gives.
    done = subprocess.run(
        [str(preloaded(framework)), "-B", "-c", COUNTS[framework]],
        cwd=TRAINING,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == PUBLISHED
