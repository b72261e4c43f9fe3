#!/usr/bin/env python
"""Train a network with MXNet for some steps, and print how fast: as train_speed.py does.

One process, on one GPU or on the CPU. The network is one graph, which is built and tuned during the
warm-up; MXNet computes while Python goes on, so each step is waited for.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

# Started by its path: what it needs is in the packages here, and among the templates for several
# nodes.
sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in (".", "../distributed")]

import mxnet as mx
import record
from mxnet import autograd, gluon, nd

from architectures import networks_gluon
from measurement import machine
from trials import noise, protocol, timed
from trials.traces import StepTime, Trace


class GluonTrainer:
    """A network that learns, step by step."""

    def __init__(self, s: argparse.Namespace) -> None:
        """Bring it to the device."""
        self.device = mx.gpu() if mx.context.num_gpus() else mx.cpu()
        if s.precision == "fp16" and self.device == mx.cpu():
            raise protocol.ProtocolError("MXNet has fp16 on GPUs only: use fp32 on a CPU")
        self._mean, self._deviation = (
            nd.array(values.reshape(1, 3, 1, 1), self.device)
            for values in (noise.MEAN, noise.DEVIATION)
        )
        self._network = networks_gluon.build(s.model)
        self._network.initialize(mx.init.Xavier(), ctx=self.device)
        self._number = "float16" if s.precision == "fp16" else "float32"
        self._network.cast(self._number)
        self._network.hybridize(static_alloc=True, static_shape=True)
        self._loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        # The sum of a batch's losses is divided by its images in `step`.
        learning = {"learning_rate": 0.001, "momentum": 0.9, "wd": 5e-5}
        learning["multi_precision"] = s.precision == "fp16"
        self._optimizer = gluon.Trainer(self._network.collect_params(), "sgd", learning)

    def step_times(self, batches: Iterator[Any], steps: int) -> list[StepTime]:
        """Train for some steps."""
        return timed.step_times(batches, steps, self._learn)

    def _learn(self, pixels: nd.NDArray, labels: nd.NDArray) -> None:
        pixels = pixels.as_in_context(self.device).astype("float32").transpose((0, 3, 1, 2))
        pixels = ((pixels - self._mean) / self._deviation).astype(self._number, copy=False)
        labels = labels.as_in_context(self.device)
        with autograd.record():
            loss = self._loss_of(self._network(pixels).astype("float32"), labels)
        loss.backward()
        self._optimizer.step(len(labels))
        nd.waitall()


def stream(s: argparse.Namespace) -> Iterator[Any]:
    """Give noise for ever, the same in every step: it measures all but the reading."""
    pixels, labels = noise.batch(s.batch, timed.image_size(s))
    sent = nd.array(pixels, mx.cpu(), "uint8"), nd.array(labels, mx.cpu(), "float32")
    return repeat(sent)


def main(s: argparse.Namespace) -> None:
    """Warm up, and train with the clock."""
    timed.use_gpus("MXNet", mx.context.num_gpus())
    mx.random.seed(s.seed)
    steps = timed.steps(s, s.images, 1)
    trainer, batches = GluonTrainer(s), stream(s)
    trainer.step_times(batches, s.warmup)
    began = time.time()
    every = [Trace(s.batch, trainer.step_times(batches, steps))]
    gpus = machine.gpus() if trainer.device.device_type == "gpu" else []
    device = gpus[0]["name"] if gpus else "CPU"
    print(json.dumps(timed.found_of_whole_steps(s, every, began, mx.__version__, device)))


if __name__ == "__main__":
    record.run(main, timed.parser().parse_args(), protocol.ProtocolError)
