"""All that we want to know of a GPU, in one command.

    python -m benchmarks.cluster.gpu [--minutes 25] [--rounds 3] [--parts PART...] [--tiny]

With any Python that has PyTorch and transformers, and sees one GPU; from the repository's root;
nothing is installed, and nothing is asked of the internet. In this order, as far as the minutes go:

- ``lora``: the language template beside a plain loop and transformers.Trainer, where peft is
  (`benchmarks.cluster.training_language`);
- ``vision``: the vision template beside a plain loop and timm's
  (`benchmarks.cluster.training_vision`);
- ``all-weights``: as ``lora``, with all weights;
- ``jax``: the JAX template, on as many devices as there are, where JAX is;
- ``resnet``: ResNet-50 beside a plain loop and timm's (`benchmarks.cluster.training_gpu`);
- ``networks``: the reference papers' networks as the measuring notebook trains them;
- ``inference``: ResNet-50 as the measuring notebook runs it, at each precision that there is.

A part that fails, or for which there is no time, says why, and the others go on. ``--tiny`` takes
sizes for a CPU, to show that it runs. The last line is one JSON object: each part's own.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.commit import circumstances, commit

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("lora", "vision", "all-weights", "jax", "resnet", "networks", "inference")
TEMPLATES = ROOT / "notebook_templates"
SHARDED = TEMPLATES / "jax/train_sharded.py"
NETWORKS = TEMPLATES / "benchmarks/training.py"
INFERENCE = TEMPLATES / "benchmarks/inference.py"
STAND_IN = TEMPLATES / "data/make_mnist_stand_in.py"
_MODULES = "benchmarks.cluster"
LANGUAGE = ["-m", f"{_MODULES}.training_language"]
VISION = ["-m", f"{_MODULES}.training_vision"]
RESNET = ["-m", f"{_MODULES}.training_gpu"]
SMALL_LANGUAGE = [
    *("--layers", "2", "--width", "64", "--length", "64", "--vocabulary", "1024"),
    *("--precision", "fp32", "--steps", "15"),
]
SMALL_VISION = [
    *("--layers", "2", "--width", "64", "--size", "32", "--patch", "8", "--batch", "8"),
    *("--precision", "fp32", "--steps", "15"),
]
SMALL_RESNET = [
    *("--model", "tiny", "--size", "32", "--batches", "8", "--precisions", "fp32"),
    *("--steps", "40"),
]
LARGE_RESNET = ["--batches", "256", "--precisions", "bf16", "--steps", "60"]
LARGE_SHARDED = [
    *("--width", "1024", "--layers", "12", "--heads", "16", "--length", "1024"),
    *("--texts", "16", "--precision", "bf16", "--steps", "60"),
]
SMALL_SHARDED = ["--steps", "20", "--width", "64", "--texts", "8"]
LARGE_NETWORKS = [
    *("--models", "resnet50,googlenet,inception3,vgg16", "--precisions", "fp32,fp16"),
    *("--steps", "40", "--runs", "2"),
]
SMALL_NETWORKS = ["--models", "tiny", "--precisions", "fp32", "--images", "640", "--runs", "2"]
LARGE_INFERENCE = ["--batches", "1,8,64,128", "--seconds", "1"]
SMALL_INFERENCE = [
    *("--model", "tiny", "--size", "32", "--batches", "1,8", "--seconds", "0.2"),
    *("--digits", "1300", "--epochs", "1"),
]
_LAST = 1500
"""Characters that are kept of what a part said when it failed."""


def parts(is_tiny: bool, rounds: int, results: Path) -> dict[str, list[str]]:
    """Return what is run: the arguments of Python, by the part's name."""
    language = SMALL_LANGUAGE if is_tiny else []
    vision = SMALL_VISION if is_tiny else []
    resnet = SMALL_RESNET if is_tiny else LARGE_RESNET
    sharded = SMALL_SHARDED if is_tiny else LARGE_SHARDED
    turns = ["--rounds", str(rounds)]
    networks = SMALL_NETWORKS if is_tiny else LARGE_NETWORKS
    inference = SMALL_INFERENCE if is_tiny else LARGE_INFERENCE

    def program(file: Path, *options: str) -> list[str]:
        return [str(file), "--results", str(results / file.stem), *options]

    return {
        "lora": [*LANGUAGE, *turns, "--weights", "lora", *language],
        "vision": [*VISION, *turns, *vision],
        "all-weights": [*LANGUAGE, *turns, "--weights", "all", *language],
        "jax": program(SHARDED, *sharded),
        "resnet": [*RESNET, *turns, *resnet],
        "networks": program(NETWORKS, *networks),
        "inference": program(INFERENCE, "--data", str(results / "digits"), *inference),
    }


def run(name: str, arguments: list[str], seconds: float) -> dict[str, object]:
    """Run a part; return its result, or why there is none."""
    print(f"--- {name}", flush=True)
    if seconds < 1:
        return {"failed": "no time was left"}
    started = time.monotonic()
    part = subprocess.Popen(
        [sys.executable, "-B", *arguments],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = part.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # With the training that it runs: the next part is to have the GPU alone.
        os.killpg(part.pid, signal.SIGKILL)
        said, _ = part.communicate()
        return {"failed": "no time was left", "said": said[-_LAST:]}
    except BaseException:
        os.killpg(part.pid, signal.SIGKILL)
        raise
    print(said[-_LAST:], flush=True)
    took = {"seconds": round(time.monotonic() - started, 1)}
    if part.returncode:
        return {"failed": f"ended with {part.returncode}", "said": said[-_LAST:], **took}
    last = said.rstrip().rpartition("\n")[2]
    return {**(json.loads(last) if last.startswith("{") else {}), **took}


def summary(results: Path) -> dict[str, object]:
    """Return a template's summary without what is of each second, and without paths."""
    file = results / "summary.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for part in found.get("parts", ()):
        part.pop("throughput", None)
    return {name: value for name, value in found.items() if name not in ("samples", "command")}


def main() -> None:
    """Run all parts, and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=25.0, help="for all together")
    parser.add_argument("--rounds", type=int, default=3, help="of those that are compared")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as place:
        found = {}
        for name, arguments in parts(given.tiny, given.rounds, Path(place)).items():
            if name not in given.parts:
                continue
            if name == "inference":
                run("digits for it", [str(STAND_IN), f"{place}/digits"], end - time.monotonic())
            found[name] = run(name, arguments, end - time.monotonic())
            if "--results" in arguments:
                folder = Path(arguments[arguments.index("--results") + 1])
                found[name]["summary"] = summary(folder)
    print(json.dumps({"benchmark": "gpu", "parts": found, **circumstances(commit())}))


if __name__ == "__main__":
    main()
