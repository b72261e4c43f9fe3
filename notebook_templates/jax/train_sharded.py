#!/usr/bin/env python
"""Train a transformer that is divided over many devices, on one node or more; resume it.

    python train_sharded.py --results run1                  all devices of this machine
    srun --ntasks-per-node=4 python train_sharded.py ...    in a job: one process a GPU

Texts and weights are divided (sharded_lm.py) with nothing but jax.jit and a layout: the training
is the same on any number of devices, and may go on on another.

In RESULTS stay progress.jsonl, summary.json, checkpoints/ (Orbax), tensorboard/, and error.txt when
a process failed.
"""

import argparse
import hashlib
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

# A copy of this file finds the modules in the templates.
sys.path += [
    str(place / name)
    for place in (Path("~/templates").expanduser(), Path(__file__).resolve().parents[1])
    for name in ("jax", "distributed", "language")
]
import devices
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import sharded_lm
import texts
import tf32
from devices import LayoutError, join, megabytes_on_a_device
from flax import nnx
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import NamedSharding
from ranks import place
from record import (
    Progress,
    Record,
    ResumeError,
    StepTimer,
    Stop,
    StopChecks,
    run,
    same_run,
)
from sampler import Sampler


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--data", default=texts.LICENCES, help="'licences', or a file or folder: .txt, .md, .jsonl")
    add("--steps", type=int, default=100, help="of training; more with the same folder continue")
    add("--texts", type=int, default=32, help="of a step, on all devices together")
    add("--length", type=int, default=128, help="bytes of a text")
    add("--width", type=int, default=128, help="hidden size")
    add("--layers", type=int, default=3, help="transformer blocks")
    add("--heads", type=int, default=4, help="attention heads; a multiple of model-devices")
    add("--model-devices", type=int, default=1, help="devices that work on the same texts")
    add("--cpu-devices", type=int, default=1, help="without GPUs: simulated devices per process")
    add("--precision", default="fp32", choices=("fp32", "bf16"), help="of what is computed")
    add("--rate", type=float, default=2e-3, help="learning rate, after the first steps")
    add("--rising", type=int, default=10, help="first steps, in which the rate rises")
    add("--held-out", type=float, default=0.1, help="share of the texts that is not trained on")
    add("--seed", type=int, default=1, help="same seed: same training, on any number of devices")
    add("--report-every", type=int, default=10, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=50, help="steps between checkpoints, at a report")
    return parser.parse_args()


def blocks_of(data: str, length: int) -> Any:
    """Return the texts as rows of ``length`` bytes and the one that comes next."""
    joined = "\n".join(texts.texts(data)).encode()
    rows = len(joined) // (length + 1)
    found = np.frombuffer(joined[: rows * (length + 1)], np.uint8).astype(np.int32)
    blocks = found.reshape(rows, length + 1)
    return blocks[np.random.default_rng(0).permutation(rows)]


def main(s: argparse.Namespace) -> None:
    """Train: the story from top to bottom."""
    results = Path(s.results).expanduser().resolve()
    results.mkdir(parents=True, exist_ok=True)
    here = place(os.environ)
    join(here, s.cpu_devices)
    # JAX puts a handler of its own on SIGTERM where processes join.
    stop = Stop()

    # The texts: every process has all, and gives its devices their rows.
    blocks = blocks_of(s.data, s.length)
    held = max(s.texts, round(len(blocks) * s.held_out))
    train, test = blocks[:-held], blocks[-held:][: s.texts]
    sampler = Sampler(len(train), s.texts, 0, 1, s.seed)
    if sampler.steps == 0:
        raise texts.TextError(
            f"{len(blocks)} texts of {s.length} bytes are too few: {s.texts} are needed for a step "
            "and as many to hold out. Set fewer texts or a smaller length, or give more text."
        )

    # The devices, and a model that never is in one place.
    mesh = sharded_lm.grid(s.model_devices)
    if s.texts % mesh.shape["data"] or s.heads % s.model_devices or s.width % s.heads:
        raise LayoutError(
            f"texts ({s.texts}) must be a multiple of the {mesh.shape['data']} groups of devices, "
            f"heads ({s.heads}) of model_devices ({s.model_devices}), width ({s.width}) of heads"
        )
    numbers = jnp.bfloat16 if s.precision == "bf16" else jnp.float32

    def model() -> Any:
        rngs = nnx.Rngs(s.seed)
        return sharded_lm.Transformer(s.width, s.layers, s.heads, s.length, numbers, rngs)

    graph, shapes = nnx.split(nnx.eval_shape(model))
    rate = optax.schedules.linear_schedule(s.rate / max(1, s.rising), s.rate, s.rising - 1)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate))
    of_weights = sharded_lm.layout(mesh, shapes)
    of_moments = sharded_lm.layout(mesh, jax.eval_shape(optimizer.init, shapes))
    everywhere, rows = NamedSharding(mesh, sharded_lm.Axes()), NamedSharding(mesh, sharded_lm.ROWS)

    def loss_of(weights: Any, some: jax.Array) -> jax.Array:
        logits = nnx.merge(graph, weights)(some[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, some[:, 1:]).mean()

    @partial(jax.jit, donate_argnums=(0, 1), out_shardings=(of_weights, of_moments, everywhere))
    def trained(weights: Any, moments: Any, some: jax.Array) -> tuple[Any, Any, jax.Array]:
        loss, slopes = jax.value_and_grad(loss_of)(weights, some)
        changes, moments = optimizer.update(slopes, moments, weights)
        return optax.apply_updates(weights, changes), moments, loss

    def on_devices(some: Any) -> jax.Array:
        return jax.make_array_from_callback(some.shape, rows, lambda part: some[part])

    tested = jax.jit(loss_of, out_shardings=everywhere)
    held_out = on_devices(test)

    # What was reached before.
    checkpoint_manager = ocp.CheckpointManager(
        results / "checkpoints", options=ocp.CheckpointManagerOptions(max_to_keep=1)
    )
    begun = checkpoint_manager.latest_step()
    # With other texts, some that were trained on would be held out.
    digest = hashlib.sha256(blocks.tobytes()).hexdigest()
    ours = vars(s) | {"cpu_devices": 0, "model_devices": 0, "texts_sha256": digest}
    same_run(results, argparse.Namespace(**ours), 0, here.is_first, begun is not None)
    reached = Progress()
    if begun is None:
        weights = jax.jit(lambda: nnx.split(model())[1], out_shardings=of_weights)()
        moments = jax.jit(optimizer.init, out_shardings=of_moments)(weights)
        first_loss = float(tested(weights, held_out))
    else:
        weights, moments, kept = restored(
            checkpoint_manager, begun, shapes, of_weights, optimizer, of_moments
        )
        first_loss = kept.pop("first_loss")
        reached = Progress(**kept)
    record = Record(results, here.is_first, reached.step)
    is_tf32 = devices.is_tf32(s.precision)
    count = sum(leaf.size for leaf in jax.tree_util.tree_leaves(weights))
    on_each = megabytes_on_a_device(jax.tree_util.tree_leaves(weights))
    record.say(
        f"{count:,} weights, {count * 4 / 1e6:.2f} MB, of which each device holds {on_each:.2f} MB",
        f"{jax.device_count()} devices = {mesh.shape['data']} groups with texts of their own x "
        f"{s.model_devices} that work on the same",
        f"{len(train):,} texts of {s.length} bytes to train on, {len(test)} held out",
        f"held-out loss before: {first_loss:.4f}",
    )
    record.say(f"precision {tf32.said(s.precision, is_tf32)}")
    if reached.step:
        record.say(f"resumed after step {reached.step} of {s.steps}")

    def sums(*figures: float) -> Any:
        return process_allgather(jnp.asarray(figures)).reshape(-1, len(figures)).sum(0)

    # A job's processes end together: one is told, and all know when they ask each other.
    checks = StopChecks(stop, sums)
    is_stopped, timer, saved_at, losses = False, StepTimer(), reached.step, []
    while reached.step < s.steps and not is_stopped:
        epoch, first = divmod(reached.step, sampler.steps)
        for chosen in sampler.epoch(epoch, first):
            some = on_devices(train[[index for _, index in chosen]])
            weights, moments, loss = trained(weights, moments, some)
            losses.append(loss)
            reached.step += 1
            # Of a row, the last byte is only predicted.
            timer.step(s.texts * s.length, loss.block_until_ready)
            is_due = reached.step % s.report_every == 0 or reached.step == s.steps
            if not is_due and not checks.says_stop(reached.step):
                continue

            loss.block_until_ready()
            stretch = timer.end()
            stops, seconds = sums(stop.is_wanted, stretch.seconds)
            is_stopped = bool(stops > 0)
            checks.told(float(seconds) / here.ranks / len(losses))
            if stretch.is_settled:
                reached.images += stretch.images
                reached.seconds += stretch.seconds
            record.add(
                {
                    "epoch": epoch + 1,
                    "step": reached.step,
                    "steps": s.steps,
                    "loss": sum(map(float, losses)) / len(losses),
                    "held_out_loss": float(tested(weights, held_out)),
                    "tokens_per_second": round(stretch.images / stretch.seconds, 1),
                }
            )
            is_last = is_stopped or reached.step == s.steps
            if is_last or reached.step - saved_at >= s.checkpoint_every:
                saved_at = reached.step
                kept = vars(reached) | {"first_loss": first_loss}
                checkpoint_manager.save(
                    reached.step,
                    args=ocp.args.Composite(
                        weights=ocp.args.StandardSave(weights),
                        moments=ocp.args.StandardSave(moments),
                        reached=ocp.args.JsonSave(kept),
                    ),
                )
            if is_last:
                break
            losses = []
            timer.begin()
    checkpoint_manager.wait_until_finished()
    checkpoint_manager.close()

    if is_stopped and reached.step < s.steps:
        record.say(f"stopped after step {reached.step} of {s.steps}: run again to resume")
    else:
        last_loss = float(tested(weights, held_out))
        if here.is_first:
            summary = {
                "settings": vars(s),
                "processes": here.ranks,
                "devices": jax.device_count(),
                "device": jax.devices()[0].device_kind,
                "steps": reached.step,
                "weights": count,
                "megabytes_on_a_device": on_each,
                "tokens_per_second": reached.images_per_second,
                "held_out_loss": [first_loss, last_loss],
                "tf32": is_tf32,
                "jax": jax.__version__,
            }
            record.summarize(summary)
            record.say(f"held-out loss {first_loss:.4f} before, {last_loss:.4f} after")
    if here.ranks > 1:
        jax.distributed.shutdown()


def restored(
    checkpoint_manager: Any,
    step: int,
    shapes: Any,
    of_weights: Any,
    optimizer: Any,
    of_moments: Any,
) -> tuple[Any, Any, dict[str, Any]]:
    """Read a checkpoint onto the devices there are now, whatever wrote it."""

    def wanted(shape: Any, sharding: Any) -> Any:
        return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=sharding)

    moments = jax.eval_shape(optimizer.init, shapes)
    kept = checkpoint_manager.restore(
        step,
        args=ocp.args.Composite(
            weights=ocp.args.StandardRestore(jax.tree_util.tree_map(wanted, shapes, of_weights)),
            moments=ocp.args.StandardRestore(jax.tree_util.tree_map(wanted, moments, of_moments)),
            reached=ocp.args.JsonRestore(),
        ),
    )
    return kept.weights, kept.moments, dict(kept.reached)


if __name__ == "__main__":
    run(main, settings(), texts.TextError, ResumeError, LayoutError)
