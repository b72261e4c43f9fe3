#!/usr/bin/env python
"""Time all-reduces over messages of several sizes with PyTorch; started by interconnect.py.

    srun --ntasks-per-node=4 python allreduce.py    in a Slurm job: a process for each GPU
    python allreduce.py --here 4                    as many processes on this machine

NCCL carries the sums between GPUs, gloo between CPUs. The first process prints one line of JSON.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in (".", "../distributed")]

import torch
import torch.distributed as dist
from ranks import Rank, place

from links.bus import sizes


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--least", type=int, default=1024, help="the smallest message, in bytes")
    add("--most", type=int, default=64 * 2**20, help="the largest message, in bytes")
    add("--factor", type=int, default=4, help="from one size to the next")
    add("--iterations", type=int, default=20, help="timed all-reduces for each size")
    add("--warmup", type=int, default=5, help="untimed all-reduces before them")
    add("--here", type=int, default=0, help="processes to start on this machine, without Slurm")
    return parser.parse_args()


def join(here: Rank, meeting: str) -> torch.device:
    """Take a GPU, where there is one, and meet the others."""
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    if has_gpu:
        torch.cuda.set_device(here.local_rank % torch.cuda.device_count())
    backend = "nccl" if has_gpu else "gloo"
    dist.init_process_group(backend, init_method=meeting, rank=here.rank, world_size=here.ranks)
    return device


def microseconds(size: int, device: torch.device, warmup: int, iterations: int) -> float:
    """Return the mean time of an all-reduce, over all iterations and processes.

    Raises `RuntimeError` where the sum is not what it must be.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    numbers = torch.full((size // 4,), float(rank + 1), device=device)
    dist.all_reduce(numbers)
    expected = ranks * (ranks + 1) / 2
    if wrong := int((numbers != expected).sum()):
        raise RuntimeError(f"an all-reduce of {size} bytes has {wrong} wrong sums")
    numbers.zero_()
    for _ in range(warmup):
        dist.all_reduce(numbers)
    settle(device)
    dist.barrier()
    seconds = timed(lambda: dist.all_reduce(numbers), device, iterations)
    taken = torch.tensor(seconds / iterations * 1e6, device=device)
    dist.all_reduce(taken)
    return float(taken) / ranks


def timed(work: Callable[[], object], device: torch.device, iterations: int) -> float:
    """Return how long it takes so many times: by a GPU's own clock, without what Python takes."""
    if device.type != "cuda":
        began = time.perf_counter()
        for _ in range(iterations):
            work()
        return time.perf_counter() - began
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(iterations):
        work()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1000


def settle(device: torch.device) -> None:
    """Wait for what a GPU was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(here: Rank, meeting: str, s: argparse.Namespace) -> None:
    """Measure with all the others; the first prints the results."""
    device = join(here, meeting)
    times = [
        {"bytes": size, "microseconds": microseconds(size, device, s.warmup, s.iterations)}
        for size in sizes(s.least, s.most, s.factor)
    ]
    if here.is_first:
        print(json.dumps({"backend": dist.get_backend(), "times": times}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def measure_here(rank: int, ranks: int, meeting: str, s: argparse.Namespace) -> None:
    """Be one of the processes of this machine."""
    alone = place({})
    measure(replace(alone, rank=rank, ranks=ranks, local_rank=rank, local_ranks=ranks), meeting, s)


def main() -> None:
    """Find the others, by Slurm or on this machine."""
    s = settings()
    if s.here:
        with tempfile.TemporaryDirectory() as folder:
            given = (s.here, f"file://{folder}/meeting", s)
            torch.multiprocessing.spawn(measure_here, args=given, nprocs=s.here)
        return
    here = place(os.environ)
    measure(here, f"tcp://{here.address}:{here.port}", s)


if __name__ == "__main__":
    main()
