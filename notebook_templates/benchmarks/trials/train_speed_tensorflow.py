#!/usr/bin/env python
"""Train a network with TensorFlow for some steps, and print how fast: as train_speed.py does.

A step is one graph: it is traced and compiled during the warm-up, and timed as a whole.
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

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings and errors only

import keras
import record
import tensorflow as tf
import train_resnet_tensorflow as training
from ranks import place

from architectures import networks_keras
from trials import noise, protocol, timed
from trials.traces import StepTime


class TensorflowTrainer:
    """A network that learns, step by step."""

    def __init__(self, s: argparse.Namespace, group: training.TensorflowGroup) -> None:
        """Build it on all processes."""
        keras.mixed_precision.set_global_policy(
            training.POLICIES["fp32" if s.precision == "tf32" else s.precision]
        )
        tf.config.experimental.enable_tensor_float_32_execution(s.precision != "fp32")
        self._group, self._is_scaled = group, s.precision == "fp16"
        with group.strategy.scope():
            self._model = networks_keras.build(s.model, timed.image_size(s))
            optimizer = keras.optimizers.SGD(0.001, momentum=0.9, weight_decay=5e-5)
            if self._is_scaled:
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
            optimizer.build(self._model.trainable_variables)
        self._optimizer = optimizer

    def step_times(self, batches: Iterator[Any], steps: int) -> list[StepTime]:
        """Train for some steps. A graph gives its loss back when the weights have changed, too."""
        return timed.step_times(
            batches, steps, lambda pixels, labels: self._step(pixels, labels).numpy()
        )

    @tf.function
    def _step(self, pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return self._group.strategy.run(self._learn, args=(pixels, labels))

    def _learn(self, pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        weights = self._model.trainable_variables
        pixels = (tf.cast(pixels, tf.float32) - noise.MEAN) / noise.DEVIATION
        with tf.GradientTape() as tape:
            logits = tf.cast(self._model(pixels, training=True), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            # Gradients are summed up over all processes: their mean is wanted.
            loss = tf.reduce_mean(losses) / self._group.here.ranks
            scaled = self._optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, weights)
        if self._is_scaled:
            gradients = training.unless_one_overflows(gradients)
        self._optimizer.apply(gradients, weights)
        return loss


def stream(s: argparse.Namespace) -> Iterator[Any]:
    """Give noise for ever, the same in every step: it measures all but the reading."""
    with tf.device("CPU:0"):
        pixels, labels = map(tf.constant, noise.batch(s.batch, timed.image_size(s)))
    return repeat((pixels, labels))


def main(s: argparse.Namespace) -> None:
    """Warm up, and train with the clock."""
    group = training.TensorflowGroup(place(os.environ))
    here = group.here
    timed.use_gpus("TensorFlow", len(group.gpus))
    if s.precision == "tf32" and not group.gpus:
        raise protocol.ProtocolError(protocol.NO_TF32)
    keras.utils.set_random_seed(s.seed)
    steps = timed.steps(s, s.images, here.ranks)
    trainer, batches = TensorflowTrainer(s, group), stream(s)
    trainer.step_times(batches, s.warmup)
    group.sums(0)  # all begin together
    began = time.time()
    mine = trainer.step_times(batches, steps)
    every = timed.everybodys(here.rank, here.ranks, group.sums, s.batch, mine)
    if here.is_first:
        version, device = tf.__version__, group.device
        print(json.dumps(timed.found_of_whole_steps(s, every, began, version, device)))


if __name__ == "__main__":
    record.run(main, timed.parser().parse_args(), protocol.ProtocolError)
