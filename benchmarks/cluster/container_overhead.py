"""What an image costs: the templates' training and inference, and a kernel's start, beside bare.

    export PYTHONPATH=deploy:portal:spawner
    "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.container_overhead [--rounds 100]

As root, which runs each measurement as ``nobody``, before all other programs (``--nice``). Bare and
image have the same environment (PyTorch, ONNX Runtime, ipykernel); the image is a SIF with it.

Three processes of one thread share a core: two bare ones, and one in the image. They are started
and warmed once, stay alive, and take turns in bursts of about a second (``--seconds``) and of the
same number of steps; so their start, and the image's mount, are left out, as the papers leave out
the warm-up. A round is bare, image, image, bare; then the same with the other bare process in the
image's place, which is the control: what this shows is no image's doing. Every other round is the
other way round. A kernel's start is from its process to its answer to ``kernel_info``.

The last line is one JSON object. ``share_lost`` is 1 less the median of the rounds' image/bare (the
papers: within 0.019 in either direction) and ``interval`` its 95 % confidence interval, by the wall
clock; ``processor_time`` has both by the processes' own processor time. ``is_exact`` says whether
half of the interval, and of the control's, is less than a third of the papers' share.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import bootstrap

from benchmarks.cluster.paired import FEWEST_ROUNDS, Burst, Loss, Round, alternated, loss
from benchmarks.cluster.waiting_process import BURSTS, WaitingProcess
from benchmarks.commit import circumstances, commit
from dsportal.containers.run import exec_argv, exec_environment
from tests import images
from tests.instance import ROOT

TEMPLATES = ROOT / "notebook_templates"
USER = "nobody"
SECONDS = 900
BARE, CONTROL, IMAGE = "bare", "control", "image"
PAPERS_SHARE = 0.019
EXACT = PAPERS_SHARE / 3
"""An interval's half is less than this where the result says something of the papers' share."""
WARMING_STEPS, WARMING_BURSTS = 50, 3
KERNEL_STARTS = 10
BATCH = 16

TRAINING = {
    "model": "tiny",
    "size": 96,
    "batch": BATCH,
    "report-every": 10**9,
    "precision": "fp32",
    "images": 1_000_000,
    "epochs": 1000,
    "checkpoint-every": 10**9,
}
# The template's own program, which gets its next images when a step is asked for.
TRAIN = f"""{BURSTS}
import runpy
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
import images
batches, asked = images.batches, bursts()
images.batches = lambda *arguments: (batch for batch, _ in zip(batches(*arguments), asked))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
INFER = f"""{BURSTS}
import pathlib
for name in ("inference", "distributed"):
    sys.path.insert(0, f"{{sys.argv[1]}}/{{name}}")
import numpy, torch, precisions
from networks import resnet
torch.set_num_threads(1)
noise = numpy.random.default_rng(1).random(({BATCH}, 3, 96, 96), dtype=numpy.float32)
path = pathlib.Path("network.onnx")
precisions.export(resnet.build("tiny", 1000).eval(), path, noise[:2])
run = precisions.opened("fp32", path, precisions.CPU).run
for _ in bursts():
    run(noise)
"""
KERNEL = """
import json, os, signal, subprocess, sys, time
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
file, _ = write_connection_file("kernel.json", ip="127.0.0.1")
argv = [*json.loads(sys.argv[1]), "-f", file]
since = time.perf_counter()
kernel = subprocess.Popen(argv, start_new_session=True)
try:
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels(hb=False)
    client.wait_for_ready(timeout=60)
    print(time.perf_counter() - since)
    # By itself, so that Apptainer lets go of the image.
    client.shutdown()
    client.stop_channels()
    kernel.wait(30)
finally:
    # All of the group, as Apptainer does not hand on every signal.
    if kernel.poll() is None:
        os.killpg(kernel.pid, signal.SIGKILL)
"""


class ContainerBench:
    """Runs Python code as an ordinary user on one core: bare, or in the image."""

    def __init__(self, folder: Path, nice: int) -> None:
        """Make what is needed, where it is missing."""
        self.folder, self._nice = folder, nice
        for name in (BARE, CONTROL, IMAGE):
            (folder / name).mkdir()
            shutil.chown(folder / name, USER)
        root = Path("/opt/data-scientist-portal/environments")
        environment, _ = bootstrap.environment("kernel-pytorch", root)
        bare = [str(environment / "bin/python")]
        in_image = exec_argv(
            str(images.apptainer()),
            str(images.training_image()),
            ["python"],
            home=str(folder / IMAGE),
            binds=[str(TEMPLATES)],
        )
        self._python = {BARE: bare, CONTROL: bare, IMAGE: in_image}

    def waiting(self, kind: str, where: str) -> WaitingProcess:
        """Start a process that trains or infers when it is asked to."""
        python, folder = self._python[where], self.folder / where
        argv = [*python, "-c", INFER, str(TEMPLATES)]
        if kind == "training":
            program = str(TEMPLATES / "distributed/train_resnet.py")
            words = [word for name, value in TRAINING.items() for word in (f"--{name}", str(value))]
            argv = [*python, "-c", TRAIN, program, "--results", str(folder / "results"), *words]
        return WaitingProcess(self._argv(argv), folder, self._environment(folder))

    def kernel_start(self, where: str) -> float:
        """Return a kernel's seconds from its process to its first answer."""
        folder = self.folder / where
        (folder / "kernel.json").unlink(missing_ok=True)
        launched = json.dumps([*self._python[where], "-m", "ipykernel_launcher"])
        done = subprocess.run(
            self._argv([*self._python[BARE], "-c", KERNEL, launched]),
            cwd=folder,
            env=self._environment(folder),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-4000:])
        return float(done.stdout.split()[-1])

    def _argv(self, argv: Sequence[str]) -> list[str]:
        core = max(os.sched_getaffinity(0))  # the first has more interrupts than others
        # Before everybody else's, who would take their share from one and not from the other.
        prefix = ["/usr/bin/nice", "-n", str(self._nice), "/usr/sbin/runuser", "-u", USER, "--"]
        return [*prefix, "/usr/bin/taskset", "--cpu-list", str(core), *argv]

    def _environment(self, folder: Path) -> Mapping[str, str]:
        environment = {"HOME": str(folder), "OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1"}
        return exec_environment(environment) | environment


def compared(
    bench: ContainerBench, kind: str, rounds: int, seconds: float
) -> tuple[int, dict[str, list[Round]]]:
    """Compare image and control with bare; return the steps of a burst, and the rounds of both."""
    found: dict[str, list[Round]] = {IMAGE: [], CONTROL: []}
    with ExitStack() as stack:
        processes = {
            where: stack.enter_context(bench.waiting(kind, where))
            for where in (BARE, CONTROL, IMAGE)
        }
        warm = {where: _warmed(process) for where, process in processes.items()}
        steps = max(1, round(seconds / warm[BARE] * WARMING_STEPS))
        bursts = {where: partial(process.burst, steps) for where, process in processes.items()}
        for number in range(rounds):
            for other, those in found.items():
                those.append(alternated(number, bursts[BARE], bursts[other]))
            ratios = (math.exp(those[-1].log_ratio(wall)) for those in found.values())
            print(kind, number, *(f"{ratio:.4f}" for ratio in ratios), flush=True)
    return steps, found


def _warmed(process: WaitingProcess) -> float:
    """Return the seconds of the last burst."""
    return [process.burst(WARMING_STEPS) for _ in range(WARMING_BURSTS)][-1].wall_seconds


def wall(burst: Burst) -> float:
    """Return seconds by the clock on the wall."""
    return burst.wall_seconds


def processor(burst: Burst) -> float:
    """Return seconds that a processor worked on it."""
    return burst.processor_seconds


def summary(steps: int, found: Mapping[str, Sequence[Round]]) -> dict[str, object]:
    """Give the speeds, what is lost by both clocks, in the image and in the control, and how far.

    That is exact enough if the intervals by the wall clock are.
    """
    two = {
        BARE: [burst for one in found[IMAGE] for burst in one.bare],
        IMAGE: [burst for one in found[IMAGE] for burst in one.other],
    }
    speeds = {
        f"{where}_images_per_second": round(steps * BATCH / statistics.median(map(wall, bursts)), 2)
        for where, bursts in two.items()
    }
    lost = {
        (where, clock): loss([one.log_ratio(clock) for one in rounds])
        for where, rounds in found.items()
        for clock in (wall, processor)
    }
    told = {
        where: {**in_words(lost[where, wall]), "processor_time": in_words(lost[where, processor])}
        for where in found
    }
    is_exact = all(lost[where, wall].half_width < EXACT for where in found)
    return {**speeds, **told[IMAGE], CONTROL: told[CONTROL], "is_exact": is_exact}


def in_words(found: Loss) -> dict[str, object]:
    """Give a loss as the result has it."""
    return {
        "share_lost": round(found.median, 5),
        "interval": [round(found.low, 5), round(found.high, 5)],
        "half_width": round(found.half_width, 5),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help=f"{FEWEST_ROUNDS} at least")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a burst, about")
    parser.add_argument("--nice", type=int, default=-20, help="of what is measured")
    asked = parser.parse_args()
    if asked.rounds < FEWEST_ROUNDS:
        parser.error(f"{asked.rounds} rounds give no interval; {FEWEST_ROUNDS} at least do")
    starts: dict[str, list[float]] = {BARE: [], IMAGE: []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.chown(folder, USER)
        bench = ContainerBench(folder, asked.nice)
        found = {
            kind: summary(*compared(bench, kind, asked.rounds, asked.seconds))
            for kind in ("training", "inference")
        }
        for number in range(min(asked.rounds, KERNEL_STARTS)):
            for where, seconds in starts.items():
                seconds.append(bench.kernel_start(where))
            print("kernel", number, *(f"{those[-1]:.3f}" for those in starts.values()), flush=True)
    kernel = {f"{where}_seconds": round(statistics.median(of), 3) for where, of in starts.items()}
    result = {
        "benchmark": "container_overhead",
        **found,
        "kernel": kernel,
        "rounds": asked.rounds,
        "seconds": asked.seconds,
        "exact_half_width": round(EXACT, 5),
        **circumstances(commit()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
