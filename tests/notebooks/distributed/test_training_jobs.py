"""Training from the notebooks over two nodes, without GPUs: real Slurm, real frameworks."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests import images
from tests.desk import PATIENCE, Desk
from tests.instance import NODES, Instance
from tests.notebooks.running import framework_python
from tests.training import tiny_models
from tests.training.trials import WAITING
from tests.waiting import until

NOTEBOOKS = {
    "pytorch": "distributed/resnet.ipynb",
    "tensorflow": "distributed/resnet_tensorflow.ipynb",
}
LANGUAGE = "language/language.ipynb"
VISION = "vision/vision.ipynb"
WAIT_CELL = 3
"""The first of the cells of both that wait for the job and show its results."""
STEPS = 40
_OF_RESNET = {"model", "batch", "precision", "data", "epochs", "more"}
SMALL: dict[str, Any] = {
    "nodes": 2,
    "gpus_per_node": 0,
    "model": "tiny",
    "batch": 64,
    "precision": "fp32",
    "data": "~/isilon/datasets/mnist",
    "epochs": 1,
    "cores_per_process": 1,
    "memory_mb_per_process": 2500,
    "minutes": 5,
    "more": {"steps": STEPS, "rate": 0.4, "report_every": 1, "checkpoint_every": 10},
}
_OF_ALL = {name: value for name, value in SMALL.items() if name not in _OF_RESNET}

# Works until it is ended; has nothing left to do when it is started again.
ENDED_ONCE = """
import pathlib, time
if pathlib.Path("begun").exists():
    print("goes on")
else:
    pathlib.Path("begun").touch()
    print("begins")
    time.sleep(900)
"""


def losses_of(desk: Desk, name: str) -> dict[int, float]:
    """Return a run's losses by step."""
    return losses(desk.home / "logs" / "runs" / name / "progress.jsonl")


def losses(file: Path) -> dict[int, float]:
    with suppress(FileNotFoundError):
        lines = [json.loads(line) for line in file.read_text().splitlines(True) if "\n" in line]
        return {line["step"]: line["loss"] for line in lines if "loss" in line}
    return {}


def ranks_of(folder: Path) -> list[int]:
    """Return the processes that train into a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"python") and str(folder).encode() in words:
                found.append(int(place.name))
    return found


def nodes_of(folder: Path) -> set[str]:
    """Return the nodes on which processes train into a folder: Slurm tells each of them its own."""
    found = set()
    for rank in ranks_of(folder):
        with suppress(OSError):
            variables = Path("/proc", str(rank), "environ").read_bytes().split(b"\0")
            found |= {one for one in variables if one.startswith(b"SLURMD_NODENAME=")}
    return {one.decode().partition("=")[2] for one in found}


def await_two_nodes(folder: Path) -> None:
    """Wait until a process trains into a folder on each of two nodes."""
    until(
        lambda: len(nodes_of(folder) & set(NODES)) == 2,
        seconds=PATIENCE,
        every=0.1,
        what="processes on two nodes train",
    )


@pytest.fixture(scope="module")
def letters(desk: Desk) -> Path:
    """A language model in the user's home that takes 64 tokens, and has learned nothing."""
    model = desk.home / "models/letters"
    tiny_models.make(framework_python("pytorch"), tiny_models.text(model))
    for path in (model.parent, model, *model.iterdir()):
        shutil.chown(path, desk.user.name)
    return model


@pytest.mark.parametrize("framework", sorted(NOTEBOOKS))
@pytest.mark.long
def test_a_training_that_is_killed_and_resumed_is_the_unbroken_one(
    framework: str, desk: Desk, kernel: Callable[..., str]
) -> None:
    runs = f"runs/{framework}"
    base = {"notebook": NOTEBOOKS[framework], "runs_dir": f"~/logs/{runs}", **SMALL}
    printed = desk.run_all(kernel(framework), **base, wait=True)
    assert "128 images a step = 64 a process x 2 processes" in printed
    assert "The job completed" in printed
    unbroken = losses_of(desk, f"{framework}/resnettiny-2x1cpu-fp32")
    assert sorted(unbroken) == list(range(1, STEPS + 1))

    # Another one, killed in the middle, while a second kernel looks at it.
    first, second = kernel(framework), kernel(framework)
    started = desk.run_all(first, **base)
    name = "resnettiny-2x1cpu-fp32-2"
    folder = desk.home / "logs" / runs / name
    assert f"Folder {folder} job" in started
    again = desk.run_all(second, **base)
    assert started.partition("Folder ")[2].split()[:3] == again.partition("Folder ")[2].split()[:3]
    until(
        lambda: len(losses_of(desk, f"{framework}/{name}")) >= 15,
        seconds=60,
        every=0.02,
        what="15 steps are done",
    )
    for rank in ranks_of(folder):
        with suppress(ProcessLookupError):
            os.kill(rank, signal.SIGKILL)
    over = desk.user.run_in(second, "print('over:', (await watching).word)", seconds=PATIENCE)
    assert "over: FAILED" in over
    assert len(losses_of(desk, f"{framework}/{name}")) < STEPS

    # What the button Resume does.
    resumed = "run.submit(); print('over:', (await run.watch()).word)"
    assert "over: COMPLETED" in desk.user.run_in(second, resumed, seconds=PATIENCE)
    log = (folder / "processes.log").read_text()
    assert "resumed after step 1" in log or "resumed after step 2" in log
    broken = losses_of(desk, f"{framework}/{name}")
    assert sorted(broken) == sorted(unbroken)
    assert max(abs(broken[step] - unbroken[step]) for step in unbroken) <= 1e-6
    assert unbroken[STEPS] < 0.9 * unbroken[1]

    shown = desk.user.run_in(second, "print(runs.markdown(runs.table(base)))")
    assert f"| {name} | 2 | CPU |" in shown
    assert "| papers: PyTorch v1.5, V100-PCIe | 8 | ResNet-50, mixed precision | 5,844 |" in shown


@pytest.fixture(scope="module")
def image() -> Path:
    """Return a folder image with PyTorch, which takes minutes to make the first time."""
    return images.training_folder()


def test_a_training_in_an_image_runs_on_both_nodes_and_is_the_same(
    desk: Desk, kernel: Callable[..., str], image: Path
) -> None:
    base = {"runs_dir": "~/logs/runs/image", **SMALL, "wait": True}
    bare = desk.run_all(kernel("pytorch"), **base)
    inside = desk.run_all(kernel("pytorch"), **base, image=str(image))
    assert "The job completed" in bare
    assert "The job completed" in inside
    assert "apptainer exec" in inside
    name = "resnettiny-2x1cpu-fp32"
    outside, within = (
        losses_of(desk, f"image/{name}"),
        losses_of(desk, f"image/{name}-in-{image.name}"),
    )
    assert sorted(within) == list(range(1, STEPS + 1))
    assert max(abs(within[step] - outside[step]) for step in outside) <= 1e-6
    # Nothing but the image has PyTorch there: no module of it is loaded.
    script = (desk.home / "logs/runs/image" / f"{name}-in-{image.name}" / "job.sh").read_text()
    assert "module load pytorch" not in script


def test_a_job_is_submitted_from_a_notebook_in_any_kernel(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    printed = desk.run_all(kernel("python3"), "slurm/submit.ipynb")
    assert re.search(r"The job is (waiting|running on)", printed), printed
    assert printed.count("The job completed") == 1
    assert len(re.findall(rf"^task \d on (?:{'|'.join(NODES)})\b", printed, re.MULTILINE)) == 8


def test_a_process_that_dies_is_told_first(desk: Desk, kernel: Callable[..., str]) -> None:
    parameters = {**SMALL, "data": "/nowhere", "runs_dir": "~/logs/runs", "model": "50"}
    name = kernel()
    desk.run_all(name, **parameters)
    assert "FAILED" in desk.user.run_in(name, "print((await watching).word)", seconds=PATIENCE)
    top = desk.user.run_in(name, "print(run.job.log())").strip().splitlines()[0]
    assert top.startswith("Process ")
    assert "/nowhere has neither MNIST's files, nor shards" in top


def test_a_parameter_cannot_put_a_line_into_the_script(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    hostile = {"partition": "sxm2\n#SBATCH --gres=gpu:4", "module": "pytorch; id", "model": "5\n0"}
    name = kernel()
    for parameter, value in hostile.items():
        printed = desk.run_all(name, **{**SMALL, "runs_dir": "~/logs/no", parameter: value})
        assert "PlanError" in printed, parameter
    assert not list((desk.home / "logs" / "no").glob("*/job.sh"))


def test_horovod_learns_what_pytorchs_own_engine_learns(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    losses, parameters = [], {**SMALL, "runs_dir": "~/logs/runs/engines", "wait": True}
    for engine, module in (("ddp", "pytorch"), ("horovod", "horovod")):
        printed = desk.run_all(kernel(), **parameters, engine=engine, module=module)
        assert "The job completed" in printed
        mark = "" if engine == "ddp" else "-horovod"
        losses.append(losses_of(desk, f"engines/resnettiny-2x1cpu-fp32{mark}"))
    own, others = losses
    assert sorted(own) == sorted(others) == list(range(1, STEPS + 1))
    # A batch alone says little of so short a training; that learns nothing stays at ln 10 = 2.30.
    # With seeds 1 to 6, ten batches come to 0.77 to 0.93 of the first loss, and what a processor
    # rounds otherwise has another course, too.
    assert fmean(others[n] for n in range(STEPS - 9, STEPS + 1)) < 0.95 * others[1]
    # The same images and the same means; but the engines want images in different orders of memory,
    # and what that rounds differently grows with each step.
    first = range(1, 5)
    assert [others[n] for n in first] == pytest.approx([own[n] for n in first], rel=1e-3)


def test_a_program_of_ones_own_runs_on_both_nodes(desk: Desk, kernel: Callable[..., str]) -> None:
    small = {**_OF_ALL}
    name, more = kernel(), {"runs_dir": "~/logs/runs/own", "wait": True}
    printed = desk.run_all(name, "distributed/own_program.ipynb", **small, **more)
    assert "The job completed" in printed
    assert "epoch 5 of 5" in printed
    assert "on 2 processes" in printed
    found = losses(desk.home / "logs/runs/own/own/progress.jsonl")
    assert sorted(found) == [1, 2, 3, 4, 5]
    assert found[5] < 0.6 * found[1]
    # One that fails says why, and is not taken for one that came to its end.
    gone = {"program": "/usr/bin/ls", "arguments": ["/nowhere"], "name": "fails"}
    printed = desk.run_all(name, "distributed/own_program.ipynb", **small, **more, **gone)
    assert "cannot access '/nowhere'" in printed
    assert not (desk.home / "logs/runs/own/fails/summary.json").exists()


@pytest.mark.long
def test_a_language_model_learns_on_two_processes_of_one_node(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    small = {**_OF_ALL}
    small |= {"nodes": 1, "processes_per_node": 2, "steps": 40, "batch": 4, "minutes": 10}
    patient = replace(desk, patience=280.0)
    where = {"runs_dir": "~/logs/runs/language", "wait": True}
    printed = patient.run_all(kernel(), "language/language.ipynb", **small, **where)
    assert "The job completed" in printed
    assert "1,024 tokens a step = 4 blocks x 128 x 2" in printed
    run = desk.home / "logs/runs/language/tiny-1x2"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["processes"] == 2
    before, after = summary["held_out_loss"]
    assert after < before - 0.1


def test_a_language_model_learns_over_two_nodes(
    desk: Desk, letters: Path, kernel: Callable[..., str]
) -> None:
    name, patient = kernel(), replace(desk, patience=280.0)
    small = {**_OF_ALL}
    small |= {"model": str(letters), "steps": 40, "batch": 2, "length": 64, "rate": 2e-2}
    small |= {"runs_dir": "~/logs/runs/lora", "more": {"held_out_blocks": 8, "new_tokens": 8}}
    printed = patient.run_all(name, LANGUAGE, **small)
    assert "256 tokens a step = 2 blocks x 64 x 2 processes" in printed
    run = desk.home / "logs/runs/lora/letters-2x1"
    await_two_nodes(run)
    printed = patient.run_from(name, LANGUAGE, WAIT_CELL, wait=True)
    assert "The job completed" in printed
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["processes"], summary["steps"]) == (2, 40)
    assert summary["weights_learnt"] < summary["weights"]
    before, after = summary["held_out_loss"]
    assert after < before - 2
    assert f"held-out loss {before:.4f} before, {after:.4f} after" in printed
    assert (run / "adapter/adapter_model.safetensors").exists()


def test_a_language_model_that_is_divided_goes_on_on_another_number_of_nodes(
    desk: Desk, letters: Path, kernel: Callable[..., str]
) -> None:
    name, patient, steps = kernel(), replace(desk, patience=280.0), 300
    small = {**_OF_ALL}
    small |= {"model": str(letters), "weights": "all", "steps": steps, "length": 64}
    small |= {"runs_dir": "~/logs/runs/divided"}
    small |= {"more": {"checkpoint_every": 10, "held_out_blocks": 8, "new_tokens": 8}}
    printed = patient.run_all(name, LANGUAGE, **small | {"batch": 2})
    assert "256 tokens a step = 2 blocks x 64 x 2 processes" in printed
    run = desk.home / "logs/runs/divided/letters-all"
    await_two_nodes(run)
    until(
        lambda: list(run.glob("checkpoints/*/.metadata")),
        seconds=PATIENCE,
        every=0.02,
        what="there is a whole checkpoint",
    )
    desk.user.run_in(name, "run.job.cancel()")
    assert "CANCELLED" in desk.user.run_in(name, "print((await watching).word)", seconds=PATIENCE)
    assert not (run / "summary.json").exists()
    # Of the checkpoint each process has written its part.
    reached = max(
        int(one.parent.name.removeprefix("step-")) for one in run.glob("checkpoints/*/.metadata")
    )
    assert len(list(run.glob(f"checkpoints/step-{reached}/*.distcp"))) == 2

    # On one node it is the same training if a step has as many blocks.
    printed = patient.run_all(name, LANGUAGE, **small | {"nodes": 1, "batch": 4, "wait": True})
    assert "256 tokens a step = 4 blocks x 64 x 1 processes" in printed
    assert "The job completed" in printed
    log = (run / "processes.log").read_text()
    assert f"resumed after step {reached} of {steps}" in log
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["processes"], summary["steps"]) == (1, steps)
    found = losses(run / "progress.jsonl")
    assert sorted(found) == list(range(10, steps + 1, 10))
    before, after = summary["held_out_loss"]
    assert after < before - 2
    assert (run / "model/model.safetensors").exists()


def test_a_vision_transformer_learns_over_two_nodes(desk: Desk, kernel: Callable[..., str]) -> None:
    name, patient = kernel(), replace(desk, patience=280.0)
    small = {**_OF_ALL}
    small |= {"epochs": 4, "batch": 16, "runs_dir": "~/logs/runs/vision"}
    small |= {"more": {"operations": 1, "workers": 0}}
    printed = patient.run_all(name, VISION, **small)
    assert "32 pictures a step = 16 x 1 accumulated x 2 processes" in printed
    run = desk.home / "logs/runs/vision/tiny-2x1"
    await_two_nodes(run)
    printed = patient.run_from(name, VISION, WAIT_CELL, wait=True)
    assert "The job completed" in printed
    summary = json.loads((run / "summary.json").read_text())
    # An epoch is 640 pictures; of the 25 of each class each was tested once, by one of the two.
    assert (summary["processes"], summary["steps"]) == (2, 4 * 640 // 32)
    assert [sum(row) for row in summary["confusions"]] == [25] * 8
    assert summary["test_accuracy"] > 2 / 8
    assert f"accuracy {summary['test_accuracy']:.4f}, top-5 accuracy" in printed
    found = losses(run / "progress.jsonl")
    assert found[max(found)] < found[min(found)] - 0.1
    assert (run / "best/model.safetensors").exists()


def test_a_divided_model_goes_on_on_another_number_of_nodes(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name, patient = kernel("jax"), replace(desk, patience=280.0)
    small = {**_OF_ALL}
    small |= {"texts": 16, "length": 64, "width": 64, "layers": 2, "steps": 400, "minutes": 10}
    small |= {"model_devices": 1, "cpu_devices": 1, "runs_dir": "~/logs/runs/sharding"}
    small |= {"processes_per_node": 1, "more": {"checkpoint_every": 10}}
    patient.run_all(name, "jax/sharding.ipynb", **small | {"nodes": 2})
    run = desk.home / "logs/runs/sharding/transformer"
    until(lambda: list(run.glob("checkpoints/*0")), seconds=120, what="there is a checkpoint")
    desk.user.run_in(name, "run.job.cancel()")
    assert "CANCELLED" in desk.user.run_in(name, "print((await watching).word)", seconds=PATIENCE)
    printed = patient.run_all(name, "jax/sharding.ipynb", **small | {"nodes": 1, "wait": True})
    assert "The job completed" in printed
    assert re.search(r"resumed after step \d+0 of 400", (run / "processes.log").read_text())
    summary = json.loads((run / "summary.json").read_text())
    assert summary["processes"] == 1
    before, after = summary["held_out_loss"]
    assert after < before - 2


def test_a_keras_model_is_divided_over_two_nodes(desk: Desk, kernel: Callable[..., str]) -> None:
    small = {**_OF_ALL}
    small |= {"images": 40, "width": 64, "steps": 20, "minutes": 10, "more": {"report_every": 10}}
    small |= {"cpu_devices": 1, "runs_dir": "~/logs/runs/keras", "wait": True}
    name, patient = kernel("jax"), replace(desk, patience=280.0)
    printed = patient.run_all(name, "jax/keras_distribution.ipynb", **small)
    assert "The job completed" in printed
    assert "each of 2 devices holds" in printed
    summary = json.loads((desk.home / "logs/runs/keras/digits/summary.json").read_text())
    assert (summary["processes"], summary["distribution"]) == (2, "ModelParallel")
    # The kernel's Keras is JAX's, too.
    said = desk.user.run_in(name, "import keras; print(keras.backend.backend())")
    assert said.strip() == "jax"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_job_whose_time_is_up_goes_on_by_itself(
    portal: Instance, desk: Desk, kernel: Callable[..., str]
) -> None:
    name, patient = kernel("jax"), replace(desk, patience=280.0)
    small = {**_OF_ALL}
    small |= {"texts": 16, "length": 64, "width": 64, "layers": 2, "steps": 100_000, "nodes": 1}
    small |= {"model_devices": 1, "cpu_devices": 1, "runs_dir": "~/logs/runs/continued"}
    # Slurm tells a job of a minute at once that its time is nearly up.
    small |= {"processes_per_node": 1, "minutes": 1, "continues": 1}
    begun = patient.run_all(name, "jax/sharding.ipynb", **small)
    run = desk.home / "logs/runs/continued/transformer"
    first = until(lambda: losses(run / "progress.jsonl"), seconds=120, what="it has begun")
    # Slurm lets a job that is put back wait for two minutes.
    said = patient.user.run_in(name, "print((await watching).word)", seconds=400)
    assert "COMPLETED" in said
    log = (run / "processes.log").read_text()
    step = re.search(r"resumed after step (\d+) of 100000", log)
    assert step
    assert int(step[1]) >= max(first)
    assert max(losses(run / "progress.jsonl")) > int(step[1])
    number = re.search(r"job (\d+)", begun)
    assert number
    assert portal.job(number[1])["Restarts"] == "1"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_program_of_ones_own_that_runs_out_of_time_goes_on_by_itself(
    portal: Instance, desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    desk.user.run_in(name, f"open('ended_once.py', 'w').write({ENDED_ONCE!r})")
    where = desk.user.run_in(name, "import os; print(os.path.abspath('ended_once.py'))").strip()
    small = {**_OF_ALL, "nodes": 1, "program": where, "runs_dir": "~/logs/runs/continued"}
    # Slurm looks at limits twice a minute: it tells this job after half a minute or a whole one.
    small |= {"minutes": 3, "continues": 1}
    begun = desk.run_all(name, "distributed/own_program.ipynb", **small)
    # Slurm lets a job that is put back wait for two minutes.
    said = desk.user.run_in(name, "print((await watching).word)", seconds=400)
    assert "COMPLETED" in said
    log = desk.user.run_in(name, "print(run.job.log())").split()
    assert log.index("begins") < log.index("goes")
    assert (desk.home / "logs/runs/continued/own/summary.json").exists()
    number = re.search(r"job (\d+)", begun)
    assert number
    assert portal.job(number[1])["Restarts"] == "1"


def test_trees_are_trained_as_a_job_on_the_cpus_that_it_has(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    given = {"as_job": True, "gpus": 0, "cores": 1, "memory_mb": 1500, "minutes": 5, "wait": True}
    name, where = kernel(), {"runs_dir": "~/logs/runs/tables"}
    printed = desk.run_all(name, "tables/tables.ipynb", **given, **where)
    assert "The job completed" in printed
    assert "200 predictions in" in printed
    run = desk.home / "logs/runs/tables/trees-job"
    assert "cpu, 1 threads" in (run / "processes.log").read_text()
    scores = json.loads((run / "summary.json").read_text())["scores"]
    assert scores["test"]["auc"] > 0.75
    # A session's run is another one.
    printed = desk.run_all(name, "tables/tables.ipynb", **where)
    assert f"Folder {run.with_name('trees-here')}" in printed


def test_a_sweep_runs_as_a_job_array_is_cancelled_and_resumed(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    desk.user.run_in(name, f"open('waiting.py', 'w').write({WAITING!r})")
    where = desk.user.run_in(name, "import os; print(os.path.abspath('waiting.py'))").strip()
    given = {"objective": f"{where}:waiting", "trials": 3, "tasks": 2, "gpus": 0, "cores": 1}
    given |= {"memory_mb": 1500, "minutes": 5, "runs_dir": "~/logs/runs/sweeps"}
    assert "job array" in desk.run_all(name, "sweeps/sweep.ipynb", **given)
    study = desk.home / "logs/runs/sweeps/sweep"
    begun = [study / "trials" / number / "begun" for number in ("0000", "0001")]
    until(lambda: all(one.exists() for one in begun), seconds=PATIENCE, what="two trials run")
    desk.user.run_in(name, "search.cancel(); await watching", seconds=PATIENCE)

    resume = "(folder / 'go').touch(); search.submit(); await search.watch(); "
    resume += "print(search.is_done(), len(sweep.studies.counted(search.study)))"
    assert "True 3" in desk.user.run_in(name, resume, seconds=PATIENCE)
    for one in begun:
        first, second = one.read_text().split()
        assert first == second
