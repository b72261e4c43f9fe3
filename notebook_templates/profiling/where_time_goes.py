#!/usr/bin/env python
"""See where a training's time goes: waiting for data, computing, and in which operations.

    python where_time_goes.py --results ~/logs/profiling/first --training example.py:training

Some steps are timed as they are, for the shares; then some more under PyTorch's profiler, which
makes them slower, for the operations. The folder has ``summary.json`` and ``trace.json.gz``.
"""

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
# The profiler's own words, which are for its developers.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
import own_function
import shares
import torch
from record import run
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

TRACE = "trace.json.gz"
_OPERATIONS = 12


class NoBatchesError(ValueError):
    """A training gives no batches, or not again; the message says what it has to return."""


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="a folder for what is found")
    add("--training", required=True, help="FILE.py:FUNCTION: returns batches and a step")
    add("--options", type=json.loads, default={}, help="arguments of the function, as JSON")
    add("--steps", type=int, default=30, help="steps to time; then as many again are traced")
    add("--warm-up", type=int, default=10, help="untimed steps first: compiling, allocations")
    return parser.parse_args()


def endless(batches: Iterable[Any]) -> Iterator[Any]:
    """Give the batches, again and again; raises `NoBatchesError`."""
    while True:
        is_empty = True
        for batch in batches:
            is_empty = False
            yield batch
        if is_empty:
            raise NoBatchesError(
                "the training's batches have come to their end: return what can be gone through "
                "again, such as a DataLoader and not its iterator, with at least one batch in it"
            )


def settle() -> None:
    """Wait until the GPU has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(batches: Iterator[Any], step: Callable[[Any], object], steps: int) -> tuple[float, float]:
    """Take steps; return the seconds, and those of them that were spent waiting for batches."""
    settle()
    waited, begun = 0.0, time.perf_counter()
    for _ in range(steps):
        asked = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - asked
        step(batch)
    settle()
    return time.perf_counter() - begun, waited


def traced(
    batches: Iterator[Any], step: Callable[[Any], object], steps: int, file: Path
) -> list[dict[str, Any]]:
    """Take steps under the profiler, and write its trace; return the operations that take most."""
    on_gpu = torch.cuda.is_available()
    watched = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=watched) as recorded:
        timed(batches, step, steps)
    recorded.export_chrome_trace(str(file))
    averages = recorded.key_averages()
    # A kernel's time is also that of the operation that started it: of a GPU, kernels count.
    kernels = [
        each
        for each in averages
        if each.device_type != DeviceType.CPU and not each.is_user_annotation
    ]
    # A training may leave a GPU that is there alone.
    of = "self_device_time_total" if kernels else "self_cpu_time_total"
    found = kernels or list(averages)
    operations = sorted(found, key=lambda each: -getattr(each, of))
    total = sum(getattr(each, of) for each in operations) or 1
    return [
        {
            "name": each.key,
            "calls_per_step": round(each.count / steps, 1),
            "milliseconds_per_step": round(getattr(each, of) / steps / 1e3, 4),
            "share": round(getattr(each, of) / total, 4),
        }
        for each in operations[:_OPERATIONS]
    ]


def main(s: argparse.Namespace) -> None:
    """Measure, and write what was found."""
    folder = Path(s.results).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    batches, step = own_function.find(s.training)(**s.options)
    endless_batches = endless(batches)
    timed(endless_batches, step, s.warm_up)
    seconds, waited = timed(endless_batches, step, s.steps)
    print(f"{s.steps} steps took {seconds:.2f} s, {1e3 * seconds / s.steps:.1f} ms each")
    operations = traced(endless_batches, step, s.steps, folder / TRACE)
    busy = None
    if torch.cuda.is_available():
        with gzip.open(folder / TRACE) as file:
            # The same steps, so without what the profiler adds to the others.
            busy = min(1.0, shares.gpu_seconds(json.load(file)) / seconds)
    found = shares.TimeShares(waited / seconds, busy)
    print(shares.advice(found))
    summary = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "torch": torch.__version__,
        "training": s.training,
        "options": s.options,
        "steps": s.steps,
        "seconds_per_step": round(seconds / s.steps, 6),
        **{key: None if value is None else round(value, 4) for key, value in asdict(found).items()},
        "advice": shares.advice(found),
        "operations": operations,
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    run(main, settings(), own_function.FunctionError, NoBatchesError)
