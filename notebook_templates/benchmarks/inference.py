#!/usr/bin/env python
"""Inference: images/s for batch sizes and precisions, and what each precision costs in accuracy.

    python inference.py --results FOLDER [--model 50] [--batches 1,8,64]
    python inference.py --results FOLDER --imagenet FOLDER --weights FOLDER [--networks alexnet]

On one GPU, or on the cores. Speed is measured on noise, as it does not depend on what a network has
learned; accuracy with pretrained networks over ImageNet's validation images where there is a folder
of them, and else with a network that learns digits first. The batch sizes take turns with the
precisions, so that a busy moment of the machine does not hit one of them alone.
"""

import argparse
import os
import sys
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from imagenet import accuracy, validation, weights
from measurement import machine, steps
from measurement.result import Result
from measurement.sampling import NodeSampler, thinned
from trials import trial

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / name) for name in ("inference", "data", "distributed")]

import digits  # noqa: E402
import numpy as np  # noqa: E402
import precisions  # noqa: E402
import torch  # noqa: E402
from learning import as_batch, learned  # noqa: E402
from networks import resnet  # noqa: E402

BATCHES = "images in one call, separated by commas; empty: no speed is measured"
TRAINING_BATCH, TRAINING_RATE = 100, 3e-3


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--results", required=True, help="folder of the run; the same one continues it")
    add("--model", default="50", help="ResNet whose speed is measured: tiny, 50, 101 or 152")
    add("--size", type=int, default=224, help="height and width of its images, pixels")
    add("--batches", default="1,2,4,8,16,32,64,128", help=BATCHES)
    add("--seconds", type=float, default=2.0, help="for each batch size and precision")
    add("--data", type=Path, default=Path("~/isilon/datasets/mnist"), help="MNIST's four files")
    add("--accuracy-model", default="tiny", help="ResNet that learns digits")
    add("--digits", type=int, default=0, help="use only this many of each part; 0: all")
    add("--epochs", type=int, default=3, help="times that it sees each digit")
    add("--calibration-batches", type=int, default=50, help="for int8; the papers' number")
    add("--calibration-batch", type=int, default=25, help="images in each; the papers' number")
    add("--imagenet", default="", help="folder of ImageNet's validation images, in place of digits")
    add(
        "--labels",
        default="",
        help="list of their labels, or the devkit's folder; empty: beside them",
    )
    add("--weights", default="", help="folder of pretrained weights, a file for each network")
    add(
        "--networks",
        default="",
        help=f"of {', '.join(weights.NETWORKS)}; empty or all: all of them",
    )
    add(
        "--images",
        type=int,
        default=0,
        help="test with only this many images; 0: all that do not calibrate",
    )
    add("--threads", type=int, default=0, help="cores of one call; 0: those of this process")
    add("--seed", type=int, default=1, help="same seed, same network")
    return parser.parse_args()


class Speeds:
    """The network at each precision, built when the first one is measured."""

    def __init__(self, s: argparse.Namespace, batches: list[int]) -> None:
        self._s, self._most = s, max([*batches, 2])

    @cached_property
    def noise(self) -> np.ndarray:
        """Images of the largest batch."""
        shape = (self._most, 3, self._s.size, self._s.size)
        return np.random.default_rng(self._s.seed).random(shape, dtype=np.float32)

    @cached_property
    def ready(self) -> dict[str, precisions.Precision | precisions.Missing]:
        """By their names."""
        network = resnet.build(self._s.model, classes=1000)
        few = precisions.Calibration(self.noise[:2], 1, 2)
        built = precisions.build(network, Path(self._s.results) / "speed", few, self.noise[:2])
        return {precision.name: precision for precision in built}

    def measure(self, name: str, batch: int) -> dict[str, Any]:
        """Measure one precision with one batch size."""
        precision = self.ready[name]
        if isinstance(precision, precisions.Missing):
            return {"precision": name, "batch": batch, "missing": precision.lacking}
        found = precisions.speed(precision.run, self.noise[:batch], self._s.seconds)
        return {
            "precision": name,
            "engine": precision.engine,
            "batch": batch,
            "images_per_second": round(found.images_per_second, 2),
            "median_ms": round(found.median_ms, 3),
            "p95_ms": round(found.p95_ms, 3),
        }


def over_imagenet(s: argparse.Namespace, run: Result, networks: list[str]) -> dict[str, Any]:
    """Measure the pretrained networks; return what follows, and say of those left out why.

    A network that is left out is tried again when the run is resumed.
    """
    files = Path(s.weights).expanduser()
    if not s.weights or not files.is_dir():
        raise weights.WeightsError(f"weights is {s.weights!r}; there is no such folder")
    labels = Path(s.labels).expanduser() if s.labels else None
    pictures = accuracy.chosen(
        validation.found(Path(s.imagenet).expanduser(), labels),
        s.calibration_batches,
        s.calibration_batch,
        s.images,
        s.seed,
    )
    points, left_out = {}, {}

    def measure(network: str) -> dict[str, Any]:
        file = weights.found(files, network)
        return accuracy.measured(file, pictures, run.folder / network, torch.get_num_threads())

    for network in networks:
        try:
            found = run.part(f"accuracy of {network}", partial(measure, network))
            points[network] = lost(found["top1"])
        except weights.WeightsError as error:
            left_out[network] = str(error)
            print(f"{network} is left out: {error}", flush=True)
    return {"top1_points_of": points, "left_out": left_out}


def over_digits(s: argparse.Namespace, run: Result) -> dict[str, Any]:
    """Measure a network that learns digits; return what follows."""
    return {"top1_points": lost(run.part("accuracy", lambda: accuracies(s))["top1"])}


def accuracies(s: argparse.Namespace) -> dict[str, Any]:
    """Train on digits, and read the test's at each precision: shares of 1, by precision."""
    train, test = (_first(part, s.digits) for part in digits.load(s.data.expanduser()))
    images = as_batch(train.images)
    network = learned(
        s.accuracy_model,
        images,
        train.labels,
        epochs=s.epochs,
        batch=TRAINING_BATCH,
        rate=TRAINING_RATE,
        reached=lambda step, loss, _: print(f"step {step}  loss {loss:.4f}", flush=True),
    )
    calibration = precisions.Calibration(images, s.calibration_batches, s.calibration_batch)
    ready = precisions.build(network, Path(s.results) / "trained", calibration, images[:2])
    tested = as_batch(test.images)
    top = {
        one.name: precisions.accuracy(one.run, tested, test.labels, (1, 5))
        for one in ready
        if isinstance(one, precisions.Precision)
    }
    return {"top1": {k: v[0] for k, v in top.items()}, "top5": {k: v[1] for k, v in top.items()}}


def _first(part: digits.Digits, many: int) -> digits.Digits:
    return digits.Digits(part.images[:many], part.labels[:many]) if many else part


def lost(top1: dict[str, float]) -> dict[str, float]:
    """Return each precision's top-1 less fp32's, in points of a hundred."""
    return {name: round(100 * (share - top1["fp32"]), 3) for name, share in top1.items()}


def figures(speeds: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what follows of speed: the best of each precision, and times fp32's."""
    speeds = [one for one in speeds if "missing" not in one]
    best: dict[str, float] = {}
    for one in speeds:
        best[one["precision"]] = max(best.get(one["precision"], 0), one["images_per_second"])
    return {
        "best_images_per_second": best,
        "times_fp32": {name: round(speed / best["fp32"], 3) for name, speed in best.items()},
    }


def main(s: argparse.Namespace) -> None:
    """Measure."""
    torch.manual_seed(s.seed)
    torch.set_num_threads(s.threads or len(os.sched_getaffinity(0)))
    batches = [int(word) for word in s.batches.split(",") if word]
    names = precisions.names(torch.cuda.is_available())
    configuration = {k: str(v) for k, v in vars(s).items() if k != "results"}
    every = tuple(weights.NETWORKS)
    asked = trial.chosen("" if s.networks == "all" else s.networks, every, "networks") or [*every]
    pretrained = asked if s.imagenet else []
    parts = max(1, len(pretrained)) + len(names) * len(batches)
    run = Result(Path(s.results), "inference", configuration, parts, machine.device())
    speeds = Speeds(s, batches)
    with NodeSampler(steps.nodes(), run.folder) as sampler:
        exact = over_imagenet(s, run, pretrained) if pretrained else over_digits(s, run)
        found = [
            run.part(f"{name}, batch {batch}", partial(speeds.measure, name, batch))
            for batch in batches
            for name in names
        ]
    versions = machine.versions("torch", "onnxruntime", "numpy")
    samples = thinned(sampler.samples())
    run.finish([machine.host()], versions, {**figures(found), **exact}, samples)


if __name__ == "__main__":
    plain = digits.DataError, validation.ImagenetError, weights.WeightsError
    trial.begin(main, settings(), *plain)
