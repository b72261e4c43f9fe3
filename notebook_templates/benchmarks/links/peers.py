#!/usr/bin/env python
"""Time copies between the GPUs of this machine, two by two; started by interconnect.py.

Prints a line of JSON: for each pair the bandwidth of a large copy in GB/s (10^9 bytes), the time of
one of four bytes in microseconds, and whether the one may read the other's memory directly. A copy
within one GPU's memory reads and writes it; its bandwidth counts both.
"""

import json
import os
import platform
from collections.abc import Callable

import torch

SIZE = 256 * 2**20
COPIES, SMALL_COPIES = 10, 200


def microseconds(source: torch.Tensor, target: torch.Tensor, copies: int) -> float:
    """Return the mean time of a copy, by the clock of the GPU that it starts on."""
    with torch.cuda.device(source.device):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(2):
            target.copy_(source, non_blocking=True)
        torch.cuda.synchronize(source.device)
        torch.cuda.synchronize(target.device)
        began.record()
        for _ in range(copies):
            target.copy_(source, non_blocking=True)
        ended.record()
        ended.synchronize()
        return began.elapsed_time(ended) / copies * 1000


def bandwidth(source: int, target: int) -> float:
    """Return GB/s from one GPU to another."""
    from_, to = (torch.zeros(SIZE, dtype=torch.uint8, device=f"cuda:{n}") for n in (source, target))
    moved = SIZE * (2 if source == target else 1)
    return moved / microseconds(from_, to, COPIES) / 1000


def both_ways(source: int, target: int) -> float:
    """Return GB/s from one GPU to another and back at the same time, added up."""
    if source == target:
        return bandwidth(source, target)
    ways = []
    for here, there in ((source, target), (target, source)):
        parts = (torch.zeros(SIZE, dtype=torch.uint8, device=f"cuda:{n}") for n in (here, there))
        ways.append((*parts, torch.cuda.Stream(here)))
    for rounds in (2, COPIES):  # the first ones do not count
        began, ended = [], []
        for gpu in (source, target):
            torch.cuda.synchronize(gpu)
        for from_, to, stream in ways:
            with torch.cuda.device(from_.device), torch.cuda.stream(stream):
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record(stream)
                for _ in range(rounds):
                    to.copy_(from_, non_blocking=True)
                last.record(stream)
            began.append(first)
            ended.append(last)
        for event in ended:
            event.synchronize()
    slowest = max(a.elapsed_time(b) for a, b in zip(began, ended, strict=True))
    return 2 * SIZE * COPIES / slowest / 1e6


def latency(source: int, target: int) -> float:
    """Return the time of a small copy, in microseconds."""
    from_, to = (torch.zeros(4, dtype=torch.uint8, device=f"cuda:{n}") for n in (source, target))
    return microseconds(from_, to, SMALL_COPIES)


def is_direct(source: int, target: int) -> bool:
    """Say whether a GPU may read another's memory without the host's."""
    return source == target or torch.cuda.can_device_access_peer(source, target)


def matrix(of: Callable[[int, int], float | bool]) -> list[list[float | bool]]:
    """Measure each pair: rows are where a copy comes from, columns where it goes."""
    gpus = range(torch.cuda.device_count())
    return [[of(source, target) for target in gpus] for source in gpus]


def main() -> None:
    """Measure, and print."""
    found = {
        "node": os.environ.get("SLURMD_NODENAME", platform.node()),
        "gpus": [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())],
        "gb_per_second": matrix(bandwidth),
        "both_ways_gb_per_second": matrix(both_ways),
        "microseconds": matrix(latency),
        "is_direct": matrix(is_direct),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
