#!/usr/bin/env python
"""Train a network with MXNet for some steps, and print how fast: as train_speed.py does.

The network is one graph, which is built and tuned during the warm-up; MXNet computes while Python
goes on, so each step is waited for. Several processes add up their gradients on MXNet's parameter
servers (`mxnet_group`).
"""

import argparse
import json
import os
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
from ranks import place

from architectures import networks_gluon
from measurement import machine
from trials import noise, protocol, timed
from trials.mxnet_group import MxnetGroup
from trials.traces import StepTime


class GluonTrainer:
    """A network that learns, step by step."""

    def __init__(self, s: argparse.Namespace, group: MxnetGroup) -> None:
        """Bring it to the device."""
        self._group, self.device = group, group.device
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
        # The sum of all losses is divided by the images of all processes in `step`.
        learning = {"learning_rate": 0.001, "momentum": 0.9, "wd": 5e-5}
        learning["multi_precision"] = s.precision == "fp16"
        parameters = self._network.collect_params()
        self._optimizer = gluon.Trainer(parameters, "sgd", learning, kvstore=None)
        # Before an image is seen, the number of its channels is not known.
        size = timed.image_size(s)
        self._network(nd.zeros((1, 3, size, size), self.device, self._number))
        self._learning = [one for one in parameters.values() if one.grad_req != "null"]
        group.broadcast([one.data() for one in self._learning])

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
        self._group.add_up([one.grad() for one in self._learning])
        self._optimizer.step(len(labels) * self._group.here.ranks)
        nd.waitall()


def stream(s: argparse.Namespace) -> Iterator[Any]:
    """Give noise for ever, the same in every step: it measures all but the reading."""
    pixels, labels = noise.batch(s.batch, timed.image_size(s))
    sent = nd.array(pixels, mx.cpu(), "uint8"), nd.array(labels, mx.cpu(), "float32")
    return repeat(sent)


def measured(s: argparse.Namespace, group: MxnetGroup) -> dict[str, Any]:
    """Warm up, and train with the clock."""
    steps = timed.steps(s, s.images, group.here.ranks)
    trainer, batches = GluonTrainer(s, group), stream(s)
    trainer.step_times(batches, s.warmup)
    group.sums(0.0)  # all begin together
    began = time.time()
    mine = trainer.step_times(batches, steps)
    every = timed.everybodys(group.here.rank, group.here.ranks, group.sums, s.batch, mine)
    gpus = machine.gpus() if group.device.device_type == "gpu" else []
    device = gpus[0]["name"] if gpus else "CPU"
    return timed.found_of_whole_steps(s, every, began, mx.__version__, device)


def main(s: argparse.Namespace) -> None:
    """Train with all processes; the first one tells the results."""
    timed.use_gpus("MXNet", mx.context.num_gpus())
    mx.random.seed(s.seed)
    with MxnetGroup(place(os.environ)) as group:
        found = measured(s, group)
    if group.here.is_first:
        print(json.dumps(found))


if __name__ == "__main__":
    record.run(main, timed.parser().parse_args(), protocol.ProtocolError)
