#!/usr/bin/env python
"""Train a network for some steps, and print how fast, and where a step's time goes.

training.py and scaling.py start it, once for each process; by itself it is one process. The first
one prints a line of JSON. What it learns is thrown away.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

# Started by its path: what it needs is in the packages here, and among the templates for several
# nodes.
sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in (".", "../distributed")]

import compiling
import images
import record
import torch
import torch.distributed as dist
from process_group import DataParallel
from ranks import place
from sampler import Sampler
from schedule import Schedule
from torch import nn

from architectures import networks
from filesystem import caches, data_files
from measurement import machine
from trials import protocol, timed, traces
from trials.traces import StepTime, Trace

NUMBERS = {"bf16": torch.bfloat16, "fp16": torch.float16}
# How much the heads in between count, where they are (Szegedy et al. 2014, section 5).
HEAD_WEIGHT = 0.3
# Steps before what is timed without the exchange of gradients: the compiler may begin anew there.
SETTLING = 2


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = timed.parser()
    add = parser.add_argument
    add("--heads", default="no", choices=("yes", "no"), help="the auxiliary ones, too")
    add("--alone", type=int, default=10, help="steps after them, without the exchange of gradients")
    return parser.parse_args()


class Clock:
    """Moments of the device: a GPU's are when its work came there, not when it was asked for."""

    def __init__(self, is_on_gpu: bool) -> None:
        self._is_on_gpu = is_on_gpu

    def now(self) -> Any:
        """Note a moment."""
        if not self._is_on_gpu:
            return perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, moments: Sequence[Any]) -> list[float]:
        """Return the time between each moment and the next, once all have come."""
        pairs = list(pairwise(moments))
        if not self._is_on_gpu:
            return [after - before for before, after in pairs]
        torch.cuda.synchronize()
        return [before.elapsed_time(after) / 1000 for before, after in pairs]


class Trainer:
    """A network that learns, step by step."""

    def __init__(self, s: argparse.Namespace, group: DataParallel, model: nn.Module) -> None:
        """Bring the network to the device, and to the others."""
        self._group, self._clock = group, Clock(group.is_on_gpus)
        self._layout = getattr(torch, s.layout)
        model = model.to(group.device, memory_format=self._layout)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-5)
        self._joined, self._optimiser = group.joined(model, optimiser)
        self._trained = torch.compile(self._joined) if s.compile == "yes" else self._joined
        kind = group.device.type
        self._scaler = torch.amp.GradScaler(kind, enabled=s.precision == "fp16")
        self._precision = torch.autocast(
            kind, NUMBERS.get(s.precision), enabled=s.precision in NUMBERS
        )
        self._loss_of = nn.CrossEntropyLoss()
        if group.is_on_gpus:
            is_exact = s.precision == "fp32"
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not is_exact
            torch.backends.cudnn.benchmark = True

    def step_times(
        self, batches: Iterator[Any], steps: int, *, is_alone: bool = False
    ) -> list[StepTime]:
        """Train for some steps; ``is_alone``: without the exchange of gradients."""
        moments = [self._clock.now()]
        for pixels, labels in islice(batches, steps):
            pixels = images.on_device(pixels, self._group.device, self._layout)
            labels = labels.to(self._group.device, non_blocking=True)
            moments.append(self._clock.now())
            with self._joined.no_sync() if is_alone else nullcontext():
                with self._precision:
                    loss = self._loss(self._trained(pixels), labels)
                self._scaler.scale(loss).backward()
            moments.append(self._clock.now())
            self._scaler.step(self._optimiser)
            self._scaler.update()
            self._optimiser.zero_grad()
            moments.append(self._clock.now())
        seconds = self._clock.seconds(moments)
        return [StepTime(*seconds[begin : begin + 3]) for begin in range(0, len(seconds), 3)]

    def _loss(self, logits: Any, labels: torch.Tensor) -> torch.Tensor:
        if not isinstance(logits, list):
            return self._loss_of(logits, labels)
        last, *between = (self._loss_of(one, labels) for one in logits)
        return last + HEAD_WEIGHT * sum(between)


def stream(
    data: Any, sampler: Sampler, schedule: Schedule, workers: int, pinned: bool
) -> Iterator[Any]:
    """Give batches for ever, epoch after epoch."""
    epoch = 0
    while True:
        order = range(schedule.steps_an_epoch)
        yield from images.batches(data, sampler, epoch, order, workers, pinned)
        epoch += 1


def hit_rate(train: Any) -> float | None:
    """Say which share of reads this node's memory can answer; ``None``: no files are read."""
    files = data_files.files_of(train)
    return caches.hit_rate(caches.memory_bytes(), data_files.bytes_of(files)) if files else None


def everybodys(group: DataParallel, mine: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what each process has, by rank."""
    if group.here.ranks == 1:
        return [mine]
    found: list[Any] = [None] * group.here.ranks
    dist.all_gather_object(found, mine)
    return found


def main(s: argparse.Namespace) -> None:
    """Warm up, train with the clock, then without the exchange of gradients."""
    group = DataParallel(place(os.environ))
    here = group.here
    if s.precision == "tf32" and not group.is_on_gpus:
        raise protocol.ProtocolError(protocol.NO_TF32)
    if s.compile == "yes" and (lacking := compiling.missing()):
        raise protocol.ProtocolError(f"compile is 'yes', but {lacking}")
    torch.manual_seed(s.seed)
    size = timed.image_size(s)
    mounts = [mount for mount in s.mounts.split(",") if mount]
    data = images.open_images(s.data, size, s.images, mounts, here.rank, here.ranks, s.seed)
    workers = 0 if s.data == images.SYNTHETIC else s.workers
    readers = max(1, workers) if isinstance(data.train, images.Shards) else 1
    count = len(data.train)
    steps = timed.steps(s, count, here.ranks)
    schedule = Schedule(count, s.batch, here.ranks, s.epochs, 0, 0.0, 0.0, readers)
    if schedule.steps_an_epoch == 0:
        raise protocol.ProtocolError(f"{count} images do not fill one step: set a smaller batch")
    sampler = Sampler(count, s.batch, here.rank, here.ranks, s.seed)

    trainer = Trainer(
        s, group, networks.build(s.model, data.classes, data.channels, s.heads == "yes")
    )
    batches = stream(data.train, sampler, schedule, workers, group.is_on_gpus)
    trainer.step_times(batches, s.warmup)
    group.sums(0)  # all begin together
    began = time.time()
    step_times, alone = trainer.step_times(batches, steps), []
    if here.ranks > 1:
        trainer.step_times(batches, SETTLING, is_alone=True)
        alone = trainer.step_times(batches, s.alone, is_alone=True)

    mine = {"trace": Trace(s.batch, step_times, alone), "host": machine.node_name()}
    every = everybodys(group, mine)
    if here.is_first:
        device = torch.cuda.get_device_name() if group.is_on_gpus else "CPU"
        traces_of_all = [one["trace"] for one in every]
        more = {
            "version": torch.__version__,
            # Its name in results before other frameworks were measured.
            "torch": torch.__version__,
            "device": device,
            "size": size,
            "workers": workers,
            "hosts": sorted({one["host"] for one in every}),
            "step_seconds": asdict(traces.split(traces_of_all)),
            "expected_hit_rate": hit_rate(data.train),
        }
        print(json.dumps(timed.found(traces_of_all, began) | more))
    group.leave()


if __name__ == "__main__":
    record.run(main, settings(), images.DataError, protocol.ProtocolError)
