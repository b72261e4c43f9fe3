#!/usr/bin/env python
"""Train a ResNet with TensorFlow on one CPU, one GPU, or the GPUs of many nodes; resume it.

    python train_resnet_tensorflow.py --results run1                  one process
    srun --ntasks-per-node=4 python train_resnet_tensorflow.py ...    in a Slurm job: one a GPU

The processes find each other by Slurm's variables and train with MultiWorkerMirroredStrategy. In
RESULTS stays what train_resnet.py leaves there; the checkpoint is a folder.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

# A copy of this file finds the modules in the home.
sys.path.append(str(Path("~/templates/distributed").expanduser()))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings and errors only

import images_tensorflow as images
import keras
import options
import tensorflow as tf
import tf32
from networks import resnet_keras as resnet
from ranks import Rank, free_port, meet, place
from record import (
    Progress,
    Record,
    ResumeError,
    StepTimer,
    Stop,
    StopChecks,
    arrived,
    run,
    same_run,
)
from sampler import Sampler
from schedule import Schedule, ScheduleError, counted

POLICIES = {"fp32": "float32", "bf16": "mixed_bfloat16", "fp16": "mixed_float16"}


def settings() -> argparse.Namespace:
    """Read the command line."""
    data = "'synthetic', MNIST's folder, folders of pictures, or a folder with TFRecord shards"
    parser = options.parser(data)
    threads = "threads that only read and decode; 0: those of TensorFlow; papers: 4"
    parser.add_argument("--private-threads", type=int, default=0, help=threads)
    return parser.parse_args()


class TensorflowGroup:
    """All processes that train together, seen from one of them."""

    def __init__(self, here: Rank) -> None:
        """Join the others; before TensorFlow does anything else."""
        self.here = here
        tf.config.threading.set_intra_op_parallelism_threads(
            int(os.environ.get("OMP_NUM_THREADS", "0"))
        )
        self.gpus = tf.config.list_physical_devices("GPU")
        if self.gpus:
            # A task that was given one GPU of its own sees just that.
            self.gpus = [self.gpus[here.local_rank % len(self.gpus)]]
            tf.config.set_visible_devices(self.gpus, "GPU")
            tf.config.experimental.set_memory_growth(self.gpus[0], True)
        self.strategy = tf.distribute.get_strategy() if here.ranks == 1 else self._strategy()

    def _strategy(self) -> tf.distribute.Strategy:
        # Not SlurmClusterResolver: it gives all jobs of a node the same ports, and wants the
        # nodes' names to be known to a resolver.
        workers = meet(self.here, free_port())
        implementation = tf.distribute.experimental.CommunicationImplementation
        carried_by = implementation.NCCL if self.gpus else implementation.RING
        return tf.distribute.MultiWorkerMirroredStrategy(
            tf.distribute.cluster_resolver.SimpleClusterResolver(
                tf.train.ClusterSpec({"worker": workers}),
                task_type="worker",
                task_id=self.here.rank,
                num_accelerators={"GPU": len(self.gpus)},
                rpc_layer="grpc",
            ),
            tf.distribute.experimental.CommunicationOptions(implementation=carried_by),
        )

    @property
    def device(self) -> str:
        """What each process trains on."""
        if not self.gpus:
            return "CPU"
        return str(tf.config.experimental.get_device_details(self.gpus[0])["device_name"])

    def sums(self, *values: float | tf.Tensor) -> list[float]:
        """Add up each value over all processes."""
        mine = tf.stack([tf.cast(value, tf.float64) for value in values])
        return [float(value) for value in self._sum(mine)]

    @tf.function
    def _sum(self, values: tf.Tensor) -> tf.Tensor:
        def add(mine: tf.Tensor) -> tf.Tensor:
            # Not the argument itself, which is on no device.
            return tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(mine))

        return self.strategy.run(add, args=(values,))


class Network:
    """The network, and how it learns."""

    def __init__(
        self, s: argparse.Namespace, group: TensorflowGroup, data: images.TensorflowImages
    ) -> None:
        """Build it on all processes with the same weights."""
        keras.mixed_precision.set_global_policy(POLICIES[s.precision])
        self._s, self._group, self._classes = s, group, data.classes
        with group.strategy.scope():
            self.model = resnet.build(s.model, data.classes, data.size, data.channels)
            optimizer = keras.optimizers.SGD(0.0, s.momentum, nesterov=s.momentum > 0)
            if s.precision == "fp16":
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
            optimizer.build(self.model.trainable_variables)
        self.optimizer = optimizer

    @tf.function
    def learn(
        self, pixels: tf.Tensor, labels: tf.Tensor, rate: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Do a step; return the sum of this process's losses, and how many it read right."""
        self.optimizer.learning_rate.assign(rate)
        return self._group.strategy.run(self._learn, args=(pixels, labels))

    def _learn(self, pixels: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        weights = self.model.trainable_variables
        pixels = images.on_device(pixels)
        with tf.GradientTape() as tape:
            logits = self.model(pixels, training=True)
            losses = self._losses(logits, labels)
            # Decay leaves vectors alone: biases and norms.
            squares = [tf.nn.l2_loss(w.value) for w in weights if len(w.shape) > 1]
            loss = tf.reduce_mean(losses) + self._s.decay * tf.add_n(squares)
            # Gradients are summed up over all processes: their mean is wanted.
            scaled = self.optimizer.scale_loss(loss / self._group.here.ranks)
        gradients = tape.gradient(scaled, weights)
        if self._s.precision == "fp16":
            gradients = unless_one_overflows(gradients)
        self.optimizer.apply(gradients, weights)
        return tf.reduce_sum(losses), right_of(logits, labels)

    def _losses(self, logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        share = self._s.smoothing
        wanted = tf.one_hot(labels, self._classes) * (1 - share) + share / self._classes
        return tf.nn.softmax_cross_entropy_with_logits(wanted, logits)

    @tf.function(reduce_retracing=True)
    def _test(self, pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        def right(pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            return right_of(self.model(pixels, training=False), labels)

        return self._group.strategy.run(right, args=(pixels, labels))

    @tf.function
    def _agree(self) -> None:
        """Let all have the first one's running means, those that a checkpoint keeps."""
        is_first = self._group.here.is_first

        def take_over() -> None:
            for mean in self.model.non_trainable_variables:
                mine = tf.identity(mean.value) if is_first else tf.zeros(mean.shape, mean.dtype)
                mean.assign(tf.distribute.get_replica_context().all_reduce("SUM", mine))

        self._group.strategy.run(take_over)

    def accuracy(self, data: images.TensorflowImages) -> float:
        """Return the share of all test images that are read right; the processes divide them."""
        self._agree()
        here, right, count = self._group.here, 0, 0
        for pixels, labels in data.test_batches(here.rank, here.ranks, self._s.batch):
            right += int(self._test(pixels, labels))
            count += len(labels)
        rights, counts = self._group.sums(right, count)
        return rights / counts


def right_of(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Count the images that are read right."""
    return tf.reduce_sum(tf.cast(tf.argmax(logits, 1) == labels, tf.int64))


def unless_one_overflows(gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """Spoil all processes' gradients where one's are too large for 16 bits.

    LossScaleOptimizer leaves out such a step. It looks at its own process's gradients only, so
    without this the others would wait for that process for ever.
    """
    is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(one)) for one in gradients])
    spoiled = tf.where(is_finite, 0.0, 1.0)
    spoiled = tf.distribute.get_replica_context().all_reduce("SUM", spoiled)
    factor = tf.where(spoiled > 0, float("nan"), 1.0)
    return [one * factor for one in gradients]


class Checkpoint:
    """The newest checkpoint of a training: the first process's.

    All write one, as TensorFlow wants it; the others' are thrown away.
    """

    def __init__(self, folder: Path, group: TensorflowGroup, network: Network) -> None:
        """Find the newest, and say what is kept."""
        newest = tf.train.latest_checkpoint(str(folder))
        # The first one's word: on NFS, other nodes may not see yet what it wrote a moment ago.
        step = int(newest.rpartition("-")[2]) if newest and group.here.is_first else 0
        self._step = int(group.sums(step)[0])
        self._folder = folder
        self._reached = {
            "step": tf.Variable(0, dtype=tf.int64),
            "images": tf.Variable(0, dtype=tf.int64),
            "seconds": tf.Variable(0.0, dtype=tf.float64),
        }
        parts = tf.train.Checkpoint(
            model=network.model, optimizer=network.optimizer, **self._reached
        )
        self._parts = parts
        # Kept as long as the process lives.
        self._elsewhere = None if group.here.is_first else tempfile.TemporaryDirectory()
        place = self._elsewhere.name if self._elsewhere else str(folder)
        self._manager = tf.train.CheckpointManager(parts, place, max_to_keep=1)

    @property
    def is_begun(self) -> bool:
        """Whether anything was reached before."""
        return self._step > 0

    def load(self) -> Progress:
        """Read what was reached before, if anything was."""
        if self.is_begun:
            newest = self._folder / f"ckpt-{self._step}"
            arrived(newest.with_name(f"{newest.name}.index"))
            self._parts.restore(str(newest)).assert_consumed()
        reached = {name: variable.numpy() for name, variable in self._reached.items()}
        return Progress(int(reached["step"]), int(reached["images"]), float(reached["seconds"]))

    def save(self, progress: Progress) -> None:
        """Write what was reached; the one before is removed after that."""
        for name, variable in self._reached.items():
            variable.assign(getattr(progress, name))
        self._manager.save(checkpoint_number=progress.step)


def main(s: argparse.Namespace) -> None:
    """Train: the story from top to bottom."""
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    group = TensorflowGroup(place(os.environ))
    stop = Stop()
    here = group.here
    keras.utils.set_random_seed(s.seed)

    # The data, and what follows from its size.
    mounts = [mount for mount in s.mounts.split(",") if mount]
    without = results if s.broken == "skip" else None
    data = images.open_images(s.data, s.size, s.images, mounts, here.rank, without)
    data = replace(data, private_threads=s.private_threads)
    schedule = Schedule.of(s, data.count, here.ranks)
    sampler = Sampler(data.count, s.batch, here.rank, here.ranks, s.seed)

    # The network, and what was reached before.
    network = Network(s, group, data)
    checkpoint = Checkpoint(results / "checkpoint", group, network)
    of_data = {"data_sha256": data.digest} if data.digest else {}
    asked = argparse.Namespace(**vars(s), **of_data)
    same_run(results, asked, here.ranks, here.is_first, checkpoint.is_begun)
    progress = checkpoint.load()
    record = Record(results, here.is_first, progress.step, s)

    kind = ("GPU", "GPUs") if group.gpus else ("CPU process", "CPU processes")
    where = counted(here.ranks, *kind)
    may_tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    is_tf32 = tf32.is_used(s.precision, bool(group.gpus), may_tf32)
    record.say(f"ResNet {s.model}, {tf32.said(s.precision, is_tf32)}, on {where}")
    record.say(*schedule.words(), *images.broken.left_out(without))
    if progress.step:
        record.say(f"resumed after step {progress.step} of {schedule.last_step}")

    def tested() -> float:
        found = network.accuracy(data)
        epoch = (progress.step - 1) // schedule.steps_an_epoch + 1
        record.add({"epoch": epoch, "step": progress.step, "test_accuracy": found})
        return found

    accuracy, saved_at, is_stopped, timer = None, progress.step, False, StepTimer()
    checks = StopChecks(stop, group.sums)
    is_untested = data.test is not None and schedule.ends_at(progress.step)
    if is_untested and group.sums(record.lacks_test)[0] > 0:
        # Stopped, or killed, between an epoch's last step and the end of its test.
        accuracy = tested()
    while progress.step < schedule.last_step and not is_stopped:
        epoch, first = divmod(progress.step, sampler.steps)
        loss_sum, right, seen = 0.0, 0, 0
        timer.begin()
        batches = data.batches(sampler, epoch, first, schedule.last_step - progress.step)
        for pixels, labels in batches:
            rate = tf.constant(schedule.rate_at(progress.step), tf.float32)
            losses, rights = network.learn(pixels, labels, rate)
            progress.step += 1
            loss_sum, right, seen = loss_sum + losses, right + rights, seen + s.batch
            timer.step(s.batch, losses.numpy)
            ends = schedule.ends_at(progress.step)
            is_due = progress.step % s.report_every == 0 or ends
            if not is_due and not checks.says_stop(progress.step):
                continue

            # A report: what all processes did since the last.
            loss, correct, count, stops = group.sums(loss_sum, right, seen, stop.is_wanted)
            is_stopped = stops > 0 and progress.step < schedule.last_step
            stretch = timer.end()
            # Of all processes: each must be told the same.
            checks.told(group.sums(stretch.seconds)[0] * s.batch / count)
            record.report(progress, schedule, stretch, loss / count, correct / count)
            # At a report; after a stop in between, the next line is of fewer steps.
            if ends or is_stopped or progress.step - saved_at >= s.checkpoint_every:
                saved_at = progress.step
                checkpoint.save(progress)
            if is_stopped:
                break
            loss_sum, right, seen = 0.0, 0, 0
            timer.begin()
        if data.test is not None and not is_stopped:
            accuracy = tested()

    if not is_stopped and accuracy is None and data.test is not None:
        # Killed between the end of its last test and the summary.
        accuracy = network.accuracy(data)
    if is_stopped:
        record.say(
            f"stopped after step {progress.step} of {schedule.last_step}: run again to resume"
        )
    else:
        versions = {"tensorflow": tf.__version__, "tf32": is_tf32}
        record.finish(s, progress, here.ranks, group.device, accuracy, versions)
    record.close(is_whole=not is_stopped)
    group.sums(0)  # nobody goes before the first has written all


if __name__ == "__main__":
    run(main, settings(), images.DataError, ScheduleError, ResumeError)
