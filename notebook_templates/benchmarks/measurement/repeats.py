"""The runs of the same part beside each other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def by(rows: Iterable[Row], *names: str) -> list[list[Row]]:
    """Put rows together that are the same in these values, in the order in which they come."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(repr([row[name] for name in names]), []).append(row)
    return list(found.values())


def spread(runs: Sequence[Row], name: str) -> dict[str, float | None]:
    """Return the mean of a value, the lowest and the highest; ``None`` where no run has one."""
    values = [run[name] for run in runs if run[name] is not None]
    if not values:
        return {name: None, f"{name}_lowest": None, f"{name}_highest": None}
    mean = sum(values) / len(values)
    return {name: mean, f"{name}_lowest": min(values), f"{name}_highest": max(values)}
