#!/usr/bin/env python
"""Time copies between the GPUs of this machine, two by two; started by interconnect.py.

Prints a line of JSON: for each pair the bandwidth of a large copy in GB/s (10^9 bytes), the time of
one of four bytes in microseconds, both also with peer-to-peer off, and whether the one may read the
other's memory directly. A copy within one GPU's memory reads and writes it; its bandwidth counts
both.

With peer-to-peer off, a copy goes to the host's pinned memory and on to the other GPU, in pieces,
so that both ways are used at once. PyTorch cannot be told to do without peer-to-peer access.
"""

import json
import os
import platform
from collections.abc import Callable, Sequence
from functools import partial

import torch

SIZE = 256 * 2**20
COPIES, SMALL_COPIES = 10, 50
DELAY_CYCLES = 50_000_000
"""Of the GPU's clock, some 30 ms, in which Python queues the copies."""
PIECE, BUFFERS = 8 * 2**20, 2
"""Of a copy through the host's memory: bytes of a piece, and pieces that are there at once."""
Copy = Callable[[torch.Tensor, torch.Tensor], object]


def direct(source: torch.Tensor, target: torch.Tensor) -> None:
    """Start a copy as PyTorch makes it: peer-to-peer, where the GPUs can."""
    target.copy_(source, non_blocking=True)


def pinned() -> list[torch.Tensor]:
    """Return buffers in the host's memory that GPUs read and write by themselves."""
    return [torch.empty(PIECE, dtype=torch.uint8, pin_memory=True) for _ in range(BUFFERS)]


def through_host(
    source: torch.Tensor, target: torch.Tensor, buffers: Sequence[torch.Tensor]
) -> None:
    """Start a copy of bytes without peer-to-peer; to the source's GPU it ends when all is there."""
    here, there = (torch.cuda.current_stream(one.device) for one in (source, target))
    is_read: list[torch.cuda.Event] = []
    pieces = zip(source.split(PIECE), target.split(PIECE), strict=True)
    for number, (piece, place) in enumerate(pieces):
        if number >= len(buffers):
            here.wait_event(is_read[number - len(buffers)])
        buffer = buffers[number % len(buffers)][: piece.numel()]
        buffer.copy_(piece, non_blocking=True)
        there.wait_event(here.record_event())
        place.copy_(buffer, non_blocking=True)
        is_read.append(there.record_event())
    here.wait_event(is_read[-1])


def microseconds(
    source: torch.Tensor, target: torch.Tensor, copies: int, copy: Copy = direct
) -> float:
    """Return the mean time of a copy, by the clock of the GPU that it starts on."""
    with torch.cuda.device(source.device):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(2):
            copy(source, target)
        torch.cuda.synchronize(source.device)
        torch.cuda.synchronize(target.device)
        # As CUDA's own test does: else small copies are as fast as Python asks for them.
        torch.cuda._sleep(DELAY_CYCLES)
        began.record()
        for _ in range(copies):
            copy(source, target)
        ended.record()
        ended.synchronize()
        return began.elapsed_time(ended) / copies * 1000


def bandwidth(source: int, target: int, copy: Copy = direct) -> float:
    """Return GB/s from one GPU to another."""
    from_, to = (torch.zeros(SIZE, dtype=torch.uint8, device=f"cuda:{n}") for n in (source, target))
    moved = SIZE * (2 if source == target else 1)
    return moved / microseconds(from_, to, COPIES, copy) / 1000


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


def latency(source: int, target: int, copy: Copy = direct) -> float:
    """Return the time of a small copy, in microseconds."""
    from_, to = (torch.zeros(4, dtype=torch.uint8, device=f"cuda:{n}") for n in (source, target))
    return microseconds(from_, to, SMALL_COPIES, copy)


def is_direct(source: int, target: int) -> bool:
    """Say whether a GPU may read another's memory without the host's."""
    return source == target or torch.cuda.can_device_access_peer(source, target)


def without_peers(measure: Callable[..., float], source: int, target: int) -> float:
    """Measure a copy with peer-to-peer off; within one GPU there is nothing to turn off."""
    if source == target:
        return measure(source, target)
    return measure(source, target, partial(through_host, buffers=pinned()))


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
        "gb_per_second_without_peers": matrix(partial(without_peers, bandwidth)),
        "microseconds_without_peers": matrix(partial(without_peers, latency)),
        "is_direct": matrix(is_direct),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
