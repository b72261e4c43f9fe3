#!/usr/bin/env python
"""Train a Keras model that is divided over many devices, on one node or more; resume it.

    python train_keras.py --results run1                  all devices of this machine
    srun --ntasks-per-node=4 python train_keras.py ...    in a job: one process a GPU

Keras's `DataParallel` or `ModelParallel` says what is divided; the model, `compile` and `fit` stay
what they are on one device. The training is the same on any number of devices, and may go on on
another. For a model of your own, change `network`, `LAYOUTS` and how the data are read.

In RESULTS stay progress.jsonl, summary.json, checkpoints/ (Orbax), model.keras, tensorboard/, and
error.txt when a process failed.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

# A copy of this file finds the modules in the templates.
sys.path += [
    str(place / name)
    for place in (Path("~/templates").expanduser(), Path(__file__).resolve().parents[1])
    for name in ("jax", "distributed", "data")
]
os.environ["KERAS_BACKEND"] = "jax"  # what Keras divides a model with

import devices
import digits
import jax
import jax.numpy as jnp
import keras
import numpy as np
import orbax.checkpoint as ocp
import tf32
from devices import AXES, LayoutError, grid_shape, join, megabytes_on_a_device
from jax.experimental.multihost_utils import process_allgather
from ranks import place
from record import (
    Progress,
    Record,
    ResumeError,
    StepTimer,
    Stop,
    run,
    same_run,
)
from sampler import Sampler

LAYOUTS = {
    ".*/wide/kernel": (None, "model"),
    ".*/wide/bias": ("model",),
    ".*/digits/kernel": ("model", None),
}
"""How `ModelParallel` divides weights: by a pattern of their whole path, an axis for each side.

Weights that none matches are whole on every device. What the optimizer keeps for a weight lies as
the weight does.
"""


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--data", default="~/isilon/datasets/mnist", help="folder with MNIST's four files")
    add("--steps", type=int, default=300, help="of training; more with the same folder continue")
    add("--images", type=int, default=100, help="images of a step, on all devices together")
    add("--width", type=int, default=512, help="outputs of the layer that is divided")
    add("--dropout", type=float, default=0.4, help="share of them that each step leaves out")
    add("--model-devices", type=int, default=1, help="devices that work on the same images")
    add("--cpu-devices", type=int, default=1, help="without GPUs: simulated devices per process")
    add("--precision", default="fp32", choices=("fp32", "bf16"), help="of what is computed")
    add("--rate", type=float, default=1e-3, help="learning rate of Adam")
    add("--seed", type=int, default=1, help="same seed: same training, on any number of devices")
    add("--report-every", type=int, default=50, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=100, help="steps between checkpoints, at a report")
    return parser.parse_args()


def network(width: int, dropout: float) -> keras.Model:
    """Return a network that reads digits: a logit for each; most weights are in `wide`."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(width, activation="relu", name="wide"),
            layers.Dropout(dropout),
            layers.Dense(10, name="digits", dtype="float32"),
        ],
        name="network",
    )


def distribution_of(model_devices: int) -> Any:
    """Return how Keras divides data and weights over all devices of all processes.

    Each process brings its own rows (`Sampler`), so Keras is not to divide them once more.
    """
    shape, all_devices = grid_shape(model_devices), keras.distribution.list_devices()
    if model_devices == 1:
        return keras.distribution.DataParallel(devices=all_devices, auto_shard_dataset=False)
    mesh = keras.distribution.DeviceMesh(shape, AXES, all_devices)
    layouts = keras.distribution.LayoutMap(mesh)
    for pattern, axes in LAYOUTS.items():
        layouts[pattern] = axes
    return keras.distribution.ModelParallel(
        layout_map=layouts, batch_dim_name="data", auto_shard_dataset=False
    )


def rows_of(sampler: Sampler, first: int, last: int) -> list[int]:
    """Return this process's rows in the steps from one to before another, in their order."""
    rows: list[int] = []
    while first < last:
        for chosen in sampler.epoch(*divmod(first, sampler.steps)):
            rows += [index for _, index in chosen]
            first += 1
            if first == last:
                break
    return rows


def state_of(model: keras.Model) -> dict[str, Any]:
    """Return all variables that a training goes on from, by path: the seeds of dropout, too."""
    of_model = [*model.trainable_variables, *model.non_trainable_variables]
    return {one.path: one for one in [*of_model, *model.optimizer.variables]}


def main(s: argparse.Namespace) -> None:
    """Train: the story from top to bottom."""
    results = Path(s.results).expanduser().resolve()
    results.mkdir(parents=True, exist_ok=True)
    here = place(os.environ)
    # As keras.distribution.initialize does, and with the GPU that is this process's.
    join(here, s.cpu_devices)
    # JAX puts a handler of its own on SIGTERM where processes join.
    stop = Stop()

    # The devices. Processes whose devices work on the same images are given the same ones.
    distribution = distribution_of(s.model_devices)
    groups = distribution.num_model_replicas
    shares = min(groups, here.ranks)
    if s.images % groups or groups % shares or s.width % s.model_devices:
        raise LayoutError(
            f"images ({s.images}) must be a multiple of the {groups} groups of devices; of these "
            f"groups and the {here.ranks} processes, one number must be a multiple of the other; "
            f"width ({s.width}) must be a multiple of model_devices ({s.model_devices})"
        )
    keras.distribution.set_distribution(distribution)

    # The images: every process reads all, and gives its devices their rows.
    train, test = digits.load(Path(s.data).expanduser())
    mine = s.images // shares
    sampler = Sampler(len(train.labels), mine, distribution.data_shard_id, shares, s.seed)
    tested = Sampler(len(test.labels), mine, distribution.data_shard_id, shares, s.seed)
    if not sampler.steps or not tested.steps:
        raise LayoutError(
            f"a step of {s.images} images is more than all there are: {len(train.labels)} to train "
            f"on, {len(test.labels)} to test with"
        )
    test_rows = rows_of(tested, 0, tested.steps)

    # The model: nothing of it knows of devices.
    keras.utils.set_random_seed(s.seed)
    keras.config.set_dtype_policy("mixed_bfloat16" if s.precision == "bf16" else "float32")
    model = network(s.width, s.dropout)
    model.compile(
        optimizer=keras.optimizers.Adam(s.rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.optimizer.build(model.trainable_variables)

    def test_accuracy() -> float:
        images, labels = test.images[test_rows], test.labels[test_rows]
        found = model.evaluate(images, labels, batch_size=mine, verbose=0, return_dict=True)
        return float(found["accuracy"])

    # What was reached before.
    checkpoint_manager = ocp.CheckpointManager(
        results / "checkpoints", options=ocp.CheckpointManagerOptions(max_to_keep=1)
    )
    begun = checkpoint_manager.latest_step()
    digest = digits.digest(Path(s.data).expanduser())
    ours = vars(s) | {"cpu_devices": 0, "model_devices": 0, "data_sha256": digest}
    same_run(results, argparse.Namespace(**ours), 0, here.is_first, begun is not None)
    reached = Progress()
    if begun is not None:
        reached = restored(checkpoint_manager, begun, model)
    record = Record(results, here.is_first, reached.step)
    is_tf32 = devices.is_tf32(s.precision)
    weights = [one.value for one in model.weights]
    on_each = megabytes_on_a_device(weights)
    record.say(
        f"{model.count_params():,} weights, {sum(one.nbytes for one in weights) / 1e6:.2f} MB, of "
        f"which each device holds {on_each:.2f} MB",
        *(
            f"  {one.path} {tuple(one.shape)}: {one.value.sharding.shard_shape(one.shape)} on each"
            for one in model.weights
        ),
        f"{jax.device_count()} devices = {groups} groups with images of their own x "
        f"{s.model_devices} that work on the same: {type(distribution).__name__}",
        f"{len(train.labels):,} images to train on, {tested.steps * s.images:,} to test with",
    )
    record.say(f"precision {tf32.said(s.precision, is_tf32)}")
    if reached.step:
        record.say(f"resumed after step {reached.step} of {s.steps}")

    # The steps between two reports are an epoch for Keras. A job's processes end together: one is
    # told, and all know at the next report.
    is_stopped, timer, saved_at = False, StepTimer(untimed=1), reached.step
    accuracy: float | None = None
    while reached.step < s.steps and not is_stopped:
        until = min(s.steps, (reached.step // s.report_every + 1) * s.report_every)
        rows = rows_of(sampler, reached.step, until)
        images, labels = train.images[rows], train.labels[rows]
        timer.begin()
        learned = model.fit(images, labels, batch_size=mine, shuffle=False, verbose=0).history
        timer.step(len(rows) * shares, lambda: None)
        stretch = timer.end()
        reached.step = until
        if stretch.is_settled:
            reached.images += stretch.images
            reached.seconds += stretch.seconds
        is_stopped = bool(process_allgather(jnp.asarray(stop.is_wanted)).any())
        accuracy = test_accuracy()
        record.add(
            {
                "epoch": (until - 1) // sampler.steps + 1,
                "step": until,
                "steps": s.steps,
                "loss": float(learned["loss"][0]),
                "accuracy": float(learned["accuracy"][0]),
                "test_accuracy": accuracy,
                "images_per_second": round(stretch.images / stretch.seconds, 1),
            }
        )
        is_last = is_stopped or until == s.steps
        if is_last or until - saved_at >= s.checkpoint_every:
            saved_at = until
            state = {path: one.value for path, one in state_of(model).items()}
            checkpoint_manager.save(
                until,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(state), reached=ocp.args.JsonSave(vars(reached))
                ),
            )
    checkpoint_manager.wait_until_finished()
    checkpoint_manager.close()

    if is_stopped and reached.step < s.steps:
        record.say(f"stopped after step {reached.step} of {s.steps}: run again to resume")
    else:
        accuracy = test_accuracy() if accuracy is None else accuracy
        whole = [process_allgather(one.value, tiled=True) for one in model.weights]
        if here.is_first:
            save_whole(results / "model.keras", whole, s)
            summary = {
                "settings": vars(s),
                "processes": here.ranks,
                "devices": jax.device_count(),
                "device": jax.devices()[0].device_kind,
                "distribution": type(distribution).__name__,
                "steps": reached.step,
                "weights": model.count_params(),
                "megabytes_on_a_device": on_each,
                "images_per_second": reached.images_per_second,
                "test_accuracy": accuracy,
                "keras": keras.__version__,
                "tf32": is_tf32,
                "jax": jax.__version__,
            }
            record.summarize(summary)
            record.say(f"test accuracy at the end {accuracy:.4f}")
    if here.ranks > 1:
        jax.distributed.shutdown()


def restored(checkpoint_manager: Any, step: int, model: keras.Model) -> Progress:
    """Read a checkpoint onto the devices there are now, whatever wrote it."""
    variables = state_of(model)
    wanted = {
        path: jax.ShapeDtypeStruct(one.value.shape, one.value.dtype, sharding=one.value.sharding)
        for path, one in variables.items()
    }
    kept = checkpoint_manager.restore(
        step,
        args=ocp.args.Composite(
            state=ocp.args.StandardRestore(wanted), reached=ocp.args.JsonRestore()
        ),
    )
    for path, one in variables.items():
        one.assign(kept.state[path])
    return Progress(**kept.reached)


def save_whole(file: Path, weights: list[np.ndarray], s: argparse.Namespace) -> None:
    """Write the trained model as Keras reads it on any machine, with keras.saving.load_model."""
    keras.distribution.set_distribution(None)
    model = network(s.width, s.dropout)
    model.set_weights(weights)
    model.save(file)


if __name__ == "__main__":
    run(main, settings(), digits.DataError, ResumeError, LayoutError)
