"""What an image costs: the templates' training and inference, and a kernel's start, beside bare.

    export PYTHONPATH=deploy
    "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.container_overhead [--rounds 10]

As root, which runs each measurement as ``nobody``. Bare and image have the same environment
(PyTorch, ONNX Runtime, ipykernel); the image is a SIF with it. In each round both run at the same
moment, so that a busy moment of the machine hits both, each with one thread on a core of its own
and before all other programs; the cores are exchanged from round to round. Throughput is that of
the steady state: the first report, and the container's start, are left out, as the papers leave out
the warm-up. A kernel's start is from its process to its answer to ``kernel_info``.

The last line is one JSON object. ``share_lost`` is 1 less the median of the rounds' image/bare (the
papers: 0.019 at most); ``spread`` is the coefficient of variation of these ratios.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bootstrap

from benchmarks.cluster.training import mean_after_first
from benchmarks.commit import circumstances, commit
from dsportal.containers.run import exec_argv, exec_environment
from tests import images
from tests.instance import ROOT

TEMPLATES = ROOT / "notebook_templates"
USER = "nobody"
SECONDS = 900
BARE, IMAGE = "bare", "image"

TRAINING = {
    "model": "tiny",
    "size": 96,
    "batch": 16,
    "steps": 400,
    "report-every": 50,
    "precision": "fp32",
    "images": 1_000_000,
    "epochs": 1,
    "checkpoint-every": 10**9,
}
INFER = """
import pathlib, sys
for name in ("inference", "distributed"):
    sys.path.insert(0, f"{sys.argv[1]}/{name}")
import numpy, torch, precisions
from networks import resnet
torch.set_num_threads(1)
noise = numpy.random.default_rng(1).random((16, 3, 96, 96), dtype=numpy.float32)
path = pathlib.Path("network.onnx")
precisions.export(resnet.build("tiny", 1000).eval(), path, noise[:2])
run = precisions.opened("fp32", path).run
precisions.speed(run, noise, 1.0)
print(precisions.speed(run, noise, 4.0).images_per_second)
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
    client.stop_channels()
finally:
    # All of the group, as Apptainer does not hand on every signal.
    os.killpg(kernel.pid, signal.SIGKILL)
"""


class ContainerBench:
    """Runs Python code as an ordinary user: bare, or in the image."""

    def __init__(self, folder: Path) -> None:
        """Make what is needed, where it is missing."""
        self.folder = folder
        for name in (BARE, IMAGE):
            (folder / name).mkdir()
            shutil.chown(folder / name, USER)
        root = Path("/opt/data-scientist-portal/environments")
        environment, _ = bootstrap.environment("kernel-pytorch", root)
        self._bare = str(environment / "bin/python")
        in_image = exec_argv(
            str(images.apptainer()),
            str(images.training_image()),
            ["python"],
            home=str(folder / IMAGE),
            binds=[str(TEMPLATES)],
        )
        self._python = {BARE: [self._bare], IMAGE: in_image}

    def measured(self, kind: str, where: str, core: int) -> float:
        """Return images/s, or a kernel's seconds."""
        python, folder = self._python[where], self.folder / where
        if kind == "training":
            shutil.rmtree(folder / "results", ignore_errors=True)
            words = [word for name, value in TRAINING.items() for word in (f"--{name}", str(value))]
            program = str(TEMPLATES / "distributed/train_resnet.py")
            self._run([*python, program, "--results", str(folder / "results"), *words], where, core)
            return mean_after_first((folder / "results/progress.jsonl").read_text())
        if kind == "inference":
            argv = [*python, "-c", INFER, str(TEMPLATES)]
        else:
            (folder / "kernel.json").unlink(missing_ok=True)
            launched = json.dumps([*python, "-m", "ipykernel_launcher"])
            argv = [self._bare, "-c", KERNEL, launched]
        return float(self._run(argv, where, core).split()[-1])

    def _run(self, argv: Sequence[str], where: str, core: int) -> str:
        folder = self.folder / where
        environment = {"HOME": str(folder), "OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1"}
        # Before everybody else's, who would take their share from one and not from the other.
        prefix = ["/usr/bin/nice", "-n", "-20", "/usr/sbin/runuser", "-u", USER, "--"]
        prefix += ["/usr/bin/taskset", "--cpu-list"]
        done = subprocess.run(
            [*prefix, str(core), *argv],
            cwd=folder,
            env=exec_environment(environment) | environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-4000:])
        return done.stdout


def compared(bench: ContainerBench, kind: str, number: int) -> tuple[float, float]:
    """Measure bare and in the image at the same moment; they exchange cores with each round."""
    first, second, *_ = sorted(os.sched_getaffinity(0))
    cores = (second, first) if number % 2 else (first, second)
    with ThreadPoolExecutor() as both:
        bare = both.submit(bench.measured, kind, BARE, cores[0])
        inside = both.submit(bench.measured, kind, IMAGE, cores[1])
        return bare.result(), inside.result()


def summary(kind: str, pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Give the medians, what is lost, and how much the rounds differ."""
    bare, inside = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratios = [inside / bare for bare, inside in pairs]
    if kind == "kernel":
        return {"bare_seconds": round(bare, 3), "image_seconds": round(inside, 3)}
    return {
        "bare_images_per_second": round(bare, 2),
        "image_images_per_second": round(inside, 2),
        "share_lost": round(1 - statistics.median(ratios), 4),
        "spread": round(statistics.pstdev(ratios) / statistics.mean(ratios), 4),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    pairs: dict[str, list[tuple[float, float]]] = {"training": [], "inference": [], "kernel": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.chown(folder, USER)
        bench = ContainerBench(folder)
        for number in range(rounds):
            for kind, found in pairs.items():
                found.append(compared(bench, kind, number))
                print(kind, number, *(f"{value:.3f}" for value in found[-1]), flush=True)
    result = {
        "benchmark": "container_overhead",
        **{kind: summary(kind, found) for kind, found in pairs.items()},
        "rounds": rounds,
        **circumstances(commit()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
