"""What a training job costs: `train_resnet.py` in a job beside bare, on two nodes beside one.

    PYTHONPATH=deploy "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.training [--rounds 3]

As root, on a private cluster of two virtual nodes (`harness.virtual_cluster`), whose jobs
run on this machine's cores. Six trainings of the same network on synthetic images take turns, each
process with one thread on one core, as Slurm gives it to a task:

- *bare*: the program alone;
- *job*: the same in a Slurm job, started by srun, as the notebook does;
- *two nodes*: one process on each of two nodes;
- *two bare*: the program twice at the same time, each alone: what two cores of this machine can do;
- *plain*: a loop without our options;
- *bf16*: the program alone, in bf16.

Compared are images/s after the first report, which holds the warm-up. The last line is one JSON
object with the medians of the rounds' ratios. With a GPU, `benchmarks.cluster.training_gpu` is what
to measure.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.commit import commit
from benchmarks.portal.harness import people, virtual_cluster
from benchmarks.portal.harness.virtual_cluster import VirtualCluster
from tests.instance import ROOT
from tests.notebooks.running import framework_python
from tests.waiting import until

TEMPLATES = ROOT / "notebook_templates"
CORES = sorted(os.sched_getaffinity(0))[:2]
KINDS = ("bare", "job", "two nodes", "two bare", "plain", "bf16")
PLAIN = """
import json, sys, time
import torch
sys.path.insert(0, sys.argv[1])
from networks import resnet
model, size, batch, steps, every = sys.argv[2], *map(int, sys.argv[3:7])
torch.manual_seed(1)
network = resnet.build(model, 1000)
optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()
images, labels = torch.randn(batch, 3, size, size), torch.arange(batch)
for step in range(1, steps + 1):
    if (step - 1) % every == 0:
        since = time.perf_counter()
    optimizer.zero_grad()
    loss_of(network(images), labels).backward()
    optimizer.step()
    if step % every == 0:
        print(json.dumps({"images_per_second": every * batch / (time.perf_counter() - since)}))
"""
JOB = """\
#!/bin/bash
export OMP_NUM_THREADS=1
exec /usr/bin/srun --kill-on-bad-exit=1 {command}
"""


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--model", default="50")
    parser.add_argument("--size", type=int, default=224, help="pixels, height and width")
    parser.add_argument("--batch", type=int, default=16, help="images per process and step")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--report-every", type=int, default=1)
    given = parser.parse_args()
    speeds: dict[str, list[float]] = {kind: [] for kind in given.kinds}
    with ExitStack() as stack:
        size = virtual_cluster.Size(nodes=2)
        cluster = stack.enter_context(virtual_cluster.running(size))
        (user,) = stack.enter_context(people.temporary(1, cluster.folder)).names
        bench = Bench(cluster, user, given)
        for number in range(1, given.rounds + 1):
            for kind in given.kinds:
                speeds[kind].append(bench.speed(kind, number))
                print(f"round {number} {kind}: {speeds[kind][-1]:.2f} images/s", flush=True)
    print(json.dumps(result(speeds, given)))


class Bench:
    """The trainings, each in a folder of its own."""

    def __init__(self, cluster: VirtualCluster, user: str, given: argparse.Namespace) -> None:
        """Put the programs where the jobs' user can read them."""
        self.cluster, self.user, self.given = cluster, user, given
        self.place = cluster.folder / "training"
        self.place.mkdir()
        shutil.chown(self.place, user)
        for name in ("distributed", "data"):
            shutil.copytree(TEMPLATES / name, cluster.folder / "templates" / name)
        self.distributed = cluster.folder / "templates" / "distributed"
        self.python = str(framework_python("pytorch"))

    def speed(self, kind: str, number: int) -> float:
        """Train once; return images/s of all processes together."""
        if kind == "plain":
            return mean_after_first(self._run_plain())
        if kind == "two bare":
            return self._two_bare(number)
        results = self.place / f"{kind.replace(' ', '-')}-{number}"
        command = self._command(results, "bf16" if kind == "bf16" else "fp32")
        if kind in ("bare", "bf16"):
            self._run(command)
        else:
            self._submit(command, 2 if kind == "two nodes" else 1, results)
        return mean_after_first((results / "progress.jsonl").read_text())

    def _two_bare(self, number: int) -> float:
        folders = [self.place / f"two-bare-{number}-{each}" for each in "ab"]
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._run, [self._command(each, "fp32") for each in folders], CORES))
        logs = [(folder / "progress.jsonl").read_text() for folder in folders]
        return sum(map(mean_after_first, logs))

    def _command(self, results: Path, precision: str) -> list[str]:
        given = self.given
        options = {
            "results": results,
            "model": given.model,
            "size": given.size,
            "batch": given.batch,
            "steps": given.steps,
            "report-every": given.report_every,
            "precision": precision,
            "images": 1_000_000,
            "epochs": 1,
            "checkpoint-every": 10**9,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return [self.python, str(self.distributed / "train_resnet.py"), *words]

    def _run(self, command: list[str], core: int = CORES[0]) -> str:
        done = subprocess.run(
            ["/usr/bin/taskset", "--cpu-list", str(core), *command],
            check=True,
            capture_output=True,
            text=True,
            timeout=900,
            user=self.user,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(self.place)},
        )
        return done.stdout

    def _run_plain(self) -> str:
        given = self.given
        sizes = (given.size, given.batch, given.steps, given.report_every)
        command = [self.python, "-c", PLAIN, str(self.distributed), given.model, *map(str, sizes)]
        return self._run(command)

    def _submit(self, command: list[str], nodes: int, results: Path) -> None:
        log = f"{results}.log"
        self.cluster.slurm(
            "sbatch",
            f"--nodes={nodes}",
            "--ntasks-per-node=1",
            "--cpus-per-task=1",
            "--mem=4096",
            f"--output={log}",
            f"--chdir={self.place}",
            user=self.user,
            stdin=JOB.format(command=" ".join(command)),
        )
        until(lambda: not self.cluster.states(), seconds=900, what="the job is over", every=0.5)
        if not (results / "summary.json").exists():
            raise RuntimeError(Path(log).read_text())


def mean_after_first(lines: str) -> float:
    """Return the mean of images/s over all reports but the first."""
    reports = [json.loads(line) for line in lines.splitlines()]
    speeds = [float(one["images_per_second"]) for one in reports if "images_per_second" in one]
    return statistics.mean(speeds[1:])


def result(speeds: dict[str, list[float]], given: argparse.Namespace) -> dict[str, object]:
    """Put what was measured together, with the machine."""

    def ratio(above: str, below: str, share: float = 1.0) -> float | None:
        if not {above, below} <= set(speeds):
            return None
        pairs = zip(speeds[above], speeds[below], strict=True)
        return round(statistics.median(one / other * share for one, other in pairs), 3)

    return {
        "benchmark": "training",
        "configuration": {name: value for name, value in vars(given).items()},
        "images_per_second": {kind: [round(one, 2) for one in of] for kind, of in speeds.items()},
        "job_to_bare": ratio("job", "bare"),
        "efficiency_of_two_nodes": ratio("two nodes", "job", 0.5),
        "two_nodes_to_two_bare": ratio("two nodes", "two bare"),
        "bare_to_plain": ratio("bare", "plain"),
        "bf16_to_bare": ratio("bf16", "bare"),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, no GPU",
        "python": platform.python_version(),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    main()
