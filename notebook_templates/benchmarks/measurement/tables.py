"""Figures in words, and tables of them in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from measurement.papers import MOST_VARIATION


def number(value: float) -> str:
    """Say a figure with the digits that it is good for.

    >>> number(12345.6), number(7.8967)
    ('12,346', '7.9')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percentage(value: float) -> str:
    """Say a part of a whole.

    >>> percentage(0.1234)
    '12.3 %'
    """
    return f"{100 * value:.1f} %"


def parts(shares: Mapping[str, float], names: Iterable[str]) -> list[str]:
    """Say the parts of a whole; nothing of those that are not known.

    >>> parts({"data": 0.1}, ["data", "optimiser"])
    ['10.0 %', '']
    """
    return [percentage(shares[name]) if name in shares else "" for name in names]


def variation(value: float | None) -> str:
    """Say how much something varies, with a mark where it is more than in the papers.

    >>> variation(0.004), variation(0.031), variation(None)
    ('0.4 %', '3.1 % (!)', 'not known')
    """
    if value is None:
        return "not known"
    return percentage(value) + (" (!)" if value > MOST_VARIATION else "")


def fs_cache(state: bool | None) -> str:
    """Say whether FS-Cache keeps what is read on the nodes' disks; nothing where that is not known.

    >>> fs_cache(True), fs_cache(False), fs_cache(None)
    ('FS-Cache on', 'FS-Cache off', '')
    """
    return "" if state is None else f"FS-Cache {'on' if state else 'off'}"


def transport(summary: Mapping[str, Any]) -> str:
    """Say what NCCL and its kind were told in a run, to follow the run's name; nothing as a rule.

    >>> transport({"configuration": {"transport": {"NCCL_ALGO": "Ring"}}})
    ', NCCL_ALGO=Ring'
    """
    told = summary["configuration"].get("transport", {})
    return "".join(f", {name}={value}" for name, value in told.items())


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; rows that are shorter than the head are filled up.

    >>> print(markdown(["a", "b"], [["1", "x|y"], ["2"]]))
    | a | b |
    | --- | --- |
    | 1 | x/y |
    | 2 |  |
    """
    filled = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    lines = [head, ["---"] * len(head), *filled]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
