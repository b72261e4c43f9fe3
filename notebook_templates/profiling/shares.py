"""What the times of a training's steps say: shares of the whole, and what to try next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ON_THE_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of a trace's events, as PyTorch's profiler (Kineto) names them."""
BUSY = 0.9
"""A GPU that computes for this share of the time is not held up by anything."""
WAITING = 0.1
"""From this share on, waiting for data is worth a change."""


@dataclass(frozen=True)
class TimeShares:
    """Where the time of some steps went, as shares of it."""

    waiting: float
    """In which the training waited for its next batch."""
    gpu: float | None
    """In which the GPU computed or copied; ``None`` without a GPU."""


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return how long at least one of the spans lasts: (begin, end), in any order and unit."""
    total, reached = 0.0, -float("inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def gpu_seconds(trace: Mapping[str, Any]) -> float:
    """Return how long a GPU was busy in a trace in Chrome's format (times in microseconds)."""
    spans = [
        (float(event["ts"]), float(event["ts"]) + float(event["dur"]))
        for event in trace["traceEvents"]
        if event.get("cat") in ON_THE_GPU
    ]
    return covered(spans) / 1e6


def advice(shares: TimeShares) -> str:
    """Say what holds the training up, and what to try."""
    waits = f"{shares.waiting:.0%} of the time the training waits for data"
    if shares.gpu is None:
        if shares.waiting < WAITING:
            return (
                "No GPU: the CPU cores do the computing; the training waits for data only "
                f"{shares.waiting:.0%} of the time. A session with a GPU would make it faster."
            )
        return f"No GPU. {waits}: load it in other processes (workers), or keep it unpacked."
    if shares.gpu == 0:
        return (
            "The GPU has nothing to do: the network and its batches seem to be on the CPU. Move "
            f'both to the GPU with .to("cuda"). {waits}.'
        )
    if shares.gpu >= BUSY:
        return (
            f"The GPU computes {shares.gpu:.0%} of the time: nothing holds it up. Lower precision "
            "(bf16), torch.compile or more GPUs make it faster."
        )
    idle = f"The GPU is idle {1 - shares.gpu:.0%} of the time"
    if shares.waiting >= WAITING:
        return (
            f"{idle}, and {waits}: more workers in the DataLoader, smaller pictures, or shards "
            "(template Prepare)."
        )
    return (
        f"{idle}, although its data is there: the steps are too short for Python to keep up. Try "
        "larger batches, torch.compile, and fewer .item() and print in a step."
    )
