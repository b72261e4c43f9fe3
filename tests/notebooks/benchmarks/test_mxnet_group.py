"""MXNet's processes that train together, each with a parameter server beside it."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT

BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"
# All processes have the same images; what `apart` is for are other first weights and labels.
LEARN = """
import json, os, pickle, sys
from trials import timed, train_speed_mxnet as program

class Trap:
    def __reduce__(self):
        return open, (sys.argv[1], "w")

s = timed.parser().parse_args(["--results=/nowhere", "--model=tiny", "--batch=8"])
here = program.place(os.environ)
apart = int(sys.argv[2]) * here.rank
program.mx.random.seed(1 + apart)
with program.MxnetGroup(here) as group:
    trainer = program.GluonTrainer(s, group)
    batches = ((pixels, labels + apart) for pixels, labels in program.stream(s))
    trainer.step_times(batches, 3)
    weights = [one.data().asnumpy() for one in trainer._learning]
    if here.ranks > 1:
        group._store._send_command_to_servers(0, pickle.dumps(Trap(), 0).decode())
    sums = group.sums(here.rank + 1.0, 0.25)
print(json.dumps({"weights": [float(one.sum()) for one in weights], "sums": sums}))
"""


FAIL = """
import os
from trials import train_speed_mxnet as program

here = program.place(os.environ)
with program.MxnetGroup(here) as group:
    group.sums(1.0)
    if not here.is_first:
        raise SystemExit("failed")
    group.sums(1.0)
"""
Program = Callable[..., list[subprocess.Popen[str]]]


@pytest.fixture
def started(python_of: Callable[[str], Path]) -> Iterator[Program]:
    """Start a program in so many processes, as `srun` would; end what is left of them."""
    running: list[subprocess.Popen[str]] = []

    def start(ranks: int, program: str, *arguments: object) -> list[subprocess.Popen[str]]:
        argv = [str(python_of("mxnet")), "-B", "-c", program, *map(str, arguments)]
        step = {
            "SLURM_STEP_ID": "0",
            "SLURM_JOB_ID": str(os.getpid()),
            "SLURM_NTASKS": str(ranks),
            "SLURM_STEP_TASKS_PER_NODE": str(ranks),
            "SLURM_NODEID": "0",
            "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        for rank in range(ranks):
            own = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}
            process = subprocess.Popen(
                argv,
                cwd=BENCHMARKS,
                env={**os.environ, **step, **own},
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            running.append(process)
        return running[-ranks:]

    yield start
    for process in running:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def learned(started: Program, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Let so many processes learn; return what each says.

    ``apart``: 1 lets each begin with weights, and learn labels, of its own.
    """

    def ask(ranks: int, apart: int = 0) -> list[dict[str, Any]]:
        processes = started(ranks, LEARN, tmp_path / "unpickled", apart)
        # Its servers have the same output: it ends with the last of them.
        said = [process.communicate(timeout=120)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * ranks
        return [json.loads(each) for each in said]

    return ask


def test_processes_learn_what_one_learns_from_the_same_images(
    learned: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    (alone,) = learned(1)
    first, second = learned(2)
    assert first["weights"] == second["weights"]
    assert first["weights"] == pytest.approx(alone["weights"], rel=1e-3, abs=1e-4)
    assert alone["sums"] == [1.0, 0.25]
    assert first["sums"] == second["sums"] == [3.0, 0.5]
    # What a server is sent is not run, as MXNet's own servers would.
    assert not (tmp_path / "unpickled").exists()


def test_processes_have_the_same_weights_whatever_each_has_seen(
    learned: Callable[..., list[dict[str, Any]]],
) -> None:
    first, second = learned(2, 1)
    assert first["weights"] == second["weights"]


def test_a_process_that_fails_does_not_wait_for_the_others(started: Program) -> None:
    _, failing = started(2, FAIL)
    assert failing.wait(60) != 0
