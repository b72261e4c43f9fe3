"""What the tiering test concludes from how full each tier is."""

import os
from typing import Any

import pytest

from filesystem import tiers


@pytest.mark.parametrize(
    ("hot", "cold", "tier"),
    [(1300, 0, "hot"), (0, 1300, "cold"), (700, 600, "unknown"), (100, 0, "unknown")],
)
def test_where_files_are_is_told_from_what_each_tier_gained(hot: int, cold: int, tier: str) -> None:
    before = tiers.Tiers(5000, 9000)
    now = tiers.Tiers(5000 + hot, 9000 + cold)
    assert tiers.gained(before, now, 1000)["tier"] == tier


def test_a_verdict_says_what_was_otherwise() -> None:
    places = ["hot", "hot", "hot"]
    rows: dict[str, dict[str, Any]] = {f"{n} move": {"tier": one} for n, one in enumerate(places)}
    rows |= {f"{n} read x": {"mb_per_second": 100.0 * n} for n in (1, 2, 3)}
    found = tiers.judged(rows)
    assert not found["is_tiered"]
    assert "hot, hot, hot instead of hot, cold, hot" in found["verdict"]
    assert os.linesep not in found["verdict"]
