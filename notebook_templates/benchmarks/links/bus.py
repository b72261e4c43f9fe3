"""How fast an all-reduce is, so that groups of different sizes can be compared.

In an all-reduce of S bytes over n processes each link carries at least 2(n-1)/n x S. S / time, the
algorithm bandwidth, therefore falls with n also where the links are as fast as before. The bus
bandwidth does not: S / time x 2(n-1)/n, which is to be held against what a link can do. It is what
NCCL's tests report: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from typing import Any


def gb_per_second(size: int, microseconds: float) -> float:
    """Return the algorithm bandwidth; GB are 10^9 bytes."""
    return size / microseconds / 1000


def bus_gb_per_second(size: int, microseconds: float, processes: int) -> float:
    """Return the bus bandwidth of an all-reduce of ``size`` bytes."""
    return gb_per_second(size, microseconds) * 2 * (processes - 1) / processes


def sizes(least: int, most: int, factor: int) -> list[int]:
    """Return the sizes of messages to measure, in bytes.

    Raises `ValueError` for what is no range of whole 32-bit numbers.
    """
    if least < 4 or least % 4 or most < least or factor < 2:
        raise ValueError(
            f"sizes from {least} to {most} bytes by a factor of {factor} cannot be used: the "
            "smallest must be a multiple of 4, the largest not below it, the factor at least 2"
        )
    found = []
    while least <= most:
        found.append(least)
        least *= factor
    return found


def measured(times: list[dict[str, Any]], processes: int) -> dict[str, Any]:
    """Return what follows from times: ``bytes`` and ``microseconds`` of each size.

    The best bandwidth and the least time stand for all sizes.
    """
    bandwidths = [bus_gb_per_second(one["bytes"], one["microseconds"], processes) for one in times]
    return {
        "processes": processes,
        "bus_gb_per_second": max(bandwidths),
        "least_microseconds": min(one["microseconds"] for one in times),
        "sizes": [
            {**one, "bus_gb_per_second": bandwidth}
            for one, bandwidth in zip(times, bandwidths, strict=True)
        ],
    }
