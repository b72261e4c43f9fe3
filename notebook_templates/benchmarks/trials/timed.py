"""What the programs that time a training have in common, whatever framework they train with."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

from architectures import models
from measurement import machine
from trials import protocol, traces
from trials.traces import StepTime, Trace


def parser() -> argparse.ArgumentParser:
    """Make the command line that they all understand; not each framework heeds all of it."""
    made = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = made.add_argument
    add("--results", required=True, help="folder for the error message of a process that fails")
    add("--model", default="resnet50", choices=models.SIZES, help="what is trained")
    add("--precision", default="fp32", choices=models.PRECISIONS, help="of the products")
    add("--batch", type=int, default=64, help="images per process and step")
    add("--data", default="synthetic", help="'synthetic', or a folder: JPEG folders, shards")
    add("--mounts", default="", help="mount points, separated by commas")
    add("--images", type=int, default=12_800, help="synthetic images in an epoch")
    add("--size", type=int, default=0, help="pixels, height and width; 0: the network's own")
    add("--epochs", type=int, default=1, help="times that each image is seen")
    add("--steps", type=int, default=0, help="time at most this many; 0: all of the epochs")
    add("--warmup", type=int, default=10, help="untimed steps before them")
    add("--workers", type=int, default=1, help="reading processes of each process")
    add("--layout", default="channels_last", choices=("channels_last", "contiguous_format"))
    add("--compile", default="no", choices=("yes", "no"), help="with torch.compile")
    add("--seed", type=int, default=1, help="of the images' order and the first weights")
    return made


def use_gpus(title: str, found: int, variables: Mapping[str, str] = os.environ) -> None:
    """Refuse a framework that finds none of the GPUs that this process may use.

    Its images/s would be the processor's, beside those of a GPU. Raises `ProtocolError`.
    """
    are_hidden = variables.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    if found == 0 and not are_hidden and machine.gpus():
        raise protocol.ProtocolError(
            f"this {title} does not use the GPUs that are here; with CUDA_VISIBLE_DEVICES= it is "
            "measured on the CPU"
        )


def steps(s: argparse.Namespace, images: int, ranks: int) -> int:
    """Return how many steps are timed."""
    every = protocol.iterations(s.epochs, images, s.batch, ranks)
    return min(s.steps, every) if s.steps else every


def image_size(s: argparse.Namespace) -> int:
    """Return the images' height and width, in pixels."""
    return int(s.size or models.SIZES[s.model])


def step_times(
    batches: Iterator[Any], count: int, learn: Callable[[Any, Any], object]
) -> list[StepTime]:
    """Time so many steps of a framework that runs each as a whole.

    ``learn`` takes images and labels, and comes back when the device has learned from them. What
    of its time the optimiser took is not known, and counts as the network's.
    """
    found, before = [], perf_counter()
    for pixels, labels in islice(batches, count):
        ready = perf_counter()
        learn(pixels, labels)
        after = perf_counter()
        found.append(StepTime(ready - before, after - ready, 0.0))
        before = after
    return found


def everybodys(
    rank: int,
    ranks: int,
    sums: Callable[..., Sequence[float]],
    batch: int,
    mine: Sequence[StepTime],
) -> list[Trace]:
    """Return what each process measured, by rank.

    ``sums`` adds up each of its arguments over all processes, which call it together.
    """
    seconds = [value for step in mine for value in (step.data, step.network)]
    # Each adds its own to zeros.
    rows = [seconds if number == rank else [0.0] * len(seconds) for number in range(ranks)]
    every = iter(sums(*(value for row in rows for value in row)))
    return [Trace(batch, [StepTime(next(every), next(every), 0.0) for _ in mine]) for _ in rows]


def found(timed: Sequence[Trace], began: float) -> dict[str, Any]:
    """Return the results of all processes together, which began at a moment since 1970."""
    return {
        "images_per_second": traces.images_per_second(timed),
        "step_variation": traces.step_variation(timed),
        "processes": len(timed),
        "steps": len(timed[0].step_times),
        "throughput": traces.throughput(timed, began),
        "python": sys.executable,
    }


def found_of_whole_steps(
    s: argparse.Namespace, timed: Sequence[Trace], began: float, version: str, device: str
) -> dict[str, Any]:
    """Say the same where steps were timed as a whole, and with what."""
    return found(timed, began) | {
        "version": version,
        "device": device,
        "size": image_size(s),
        "step_seconds": traces.of_whole_steps(timed),
        "expected_hit_rate": None,
    }
