"""The devices of all processes: how a process joins the others, and the grid that all devices are.

The grid has two axes. Along "data" devices divide the rows of a step, along "model" the work on
each row.
"""

import math
import os
from collections.abc import Iterable

import jax
import tf32
from ranks import Rank, own_gpu

AXES = ("data", "model")
THREADS_A_DEVICE = 4
"""In XLA's pool: some compute while others wait."""


class LayoutError(ValueError):
    """A model cannot be divided over these devices; the message names the number and the rule."""


def join(here: Rank, cpu_devices: int) -> None:
    """Let JAX know the other processes; each has one GPU, or so many devices on its CPU.

    This must come before anything is asked of a device.
    """
    jax.config.update("jax_num_cpu_devices", cpu_devices)
    if cpu_devices > 1:
        # Devices that wait for each other hold a thread each: in XLA's pool there are too few for
        # the last ones to begin, on a machine with few cores. It takes their number from NPROC.
        threads = max(len(os.sched_getaffinity(0)), THREADS_A_DEVICE * cpu_devices)
        os.environ["NPROC"] = str(threads)
    if here.ranks > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            f"{here.address}:{here.port}",
            here.ranks,
            here.rank,
            local_device_ids=own_gpu(here.local_rank, os.environ),
        )


def grid_shape(model_devices: int) -> tuple[int, int]:
    """Return how many groups all devices are, and ``model_devices``: those of each group.

    Raises `LayoutError` where they do not divide all.
    """
    devices = jax.device_count()
    if model_devices < 1 or devices % model_devices:
        raise LayoutError(
            f"model_devices is {model_devices}; it must divide the {devices} devices there are"
        )
    return devices // model_devices, model_devices


def is_tf32(precision: str) -> bool:
    """Say whether products of fp32 may be TF32's: JAX allows it unless more is asked for."""
    allowed = (None, "default", "high", "tensorfloat32")  # jax.lax.Precision's page
    is_allowed = jax.config.jax_default_matmul_precision in allowed
    return tf32.is_used(precision, jax.devices()[0].platform == "gpu", is_allowed)


def megabytes_on_a_device(weights: Iterable[jax.Array]) -> float:
    """Return what each device holds of them."""
    # By their layout: to ask an array that was just put on the devices of several processes for its
    # parts fails in JAX 0.10, where each process has one device.
    parts = ((one.sharding.shard_shape(one.shape), one.dtype.itemsize) for one in weights)
    return sum(math.prod(shape) * size for shape, size in parts) / 1e6
