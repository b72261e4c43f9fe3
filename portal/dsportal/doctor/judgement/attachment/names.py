"""Lists of names within a sentence."""

from collections.abc import Iterable

_MOST = 6


def some(names: Iterable[str]) -> str:
    """Write the first of them, in order, and how many more there are."""
    ordered = sorted(set(names))
    left = len(ordered) - _MOST
    return ", ".join(ordered[:_MOST]) + (f" and {left} more" if left > 0 else "")
