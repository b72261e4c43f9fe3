"""Where a tiering test's files are, told from how full the NAS's two tiers are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from measurement import tables

GB = 1e9
ENOUGH = 0.5
"""Of the files' size. What a tier uses is with protection, so it gains more than that; what others
write and remove meanwhile counts, too."""
HEAD = ("step", "seconds", "hot tier gained, GB", "cold tier gained, GB", "MB/s")


@dataclass(frozen=True)
class Tiers:
    """What is used of each."""

    hot_bytes: int
    cold_bytes: int


def described(found: Tiers) -> dict[str, float]:
    """Return what a result keeps of them."""
    return {"hot_used_gb": found.hot_bytes / GB, "cold_used_gb": found.cold_bytes / GB}


def gained(before: Tiers, now: Tiers, size_bytes: int) -> dict[str, Any]:
    """Say what each has gained since the begin, and where files of this size are by that.

    >>> gained(Tiers(100, 0), Tiers(100, 1_300), 1_000)["tier"]
    'cold'
    """
    hot, cold = now.hot_bytes - before.hot_bytes, now.cold_bytes - before.cold_bytes
    least = ENOUGH * size_bytes
    tier = "unknown"
    if hot >= least > cold:
        tier = "hot"
    if cold >= least > hot:
        tier = "cold"
    return {"hot_gained_gb": hot / GB, "cold_gained_gb": cold / GB, "tier": tier}


def judged(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Say whether the files went where they should, and how much slower the cold tier is."""
    where = [row["tier"] for row in rows.values() if "tier" in row]
    hot, cold, again = (row["mb_per_second"] for name, row in rows.items() if " read " in name)
    is_tiered = where == ["hot", "cold", "hot"]
    told = "hot, cold and hot again, as they should"
    if not is_tiered:
        told = (
            f"{', '.join(where)} instead of hot, cold, hot: see the file pool policies and their "
            "order (`isi filepool policies list`); others may also have written meanwhile"
        )
    speeds = (
        f"Read at {tables.number(hot)} MB/s from the hot tier, {tables.number(cold)} from the "
        f"cold one, {tables.number(again)} after coming back."
    )
    return {
        "is_tiered": is_tiered,
        "cold_over_hot": cold / hot if hot else None,
        "verdict": f"The files were {told}. {speeds}",
    }


def markdown(rows: Mapping[str, Mapping[str, Any]], hot: str, cold: str) -> str:
    """Write the steps as a table; ``hot`` and ``cold`` are the tiers' names."""
    names = ("seconds", "hot_gained_gb", "cold_gained_gb", "mb_per_second")
    cells = [
        [step, *(tables.number(row[name]) if name in row else "" for name in names)]
        for step, row in rows.items()
    ]
    head = [word.replace("hot tier", hot).replace("cold tier", cold) for word in HEAD]
    return tables.markdown(head, cells)
