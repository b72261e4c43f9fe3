"""Another order of the tests: none may need what another has left."""

import random
from collections.abc import Hashable, Iterable

import pytest


def shuffled(items: Iterable[pytest.Item], seed: str) -> list[pytest.Item]:
    """Shuffle files, the classes of each, and the tests of each class."""
    draw = random.Random(seed)  # noqa: S311  # no secret

    def groups(of: Iterable[pytest.Item], key: str) -> list[list[pytest.Item]]:
        found: dict[Hashable, list[pytest.Item]] = {}
        for item in of:
            found.setdefault(getattr(item, key, None), []).append(item)
        values = list(found.values())
        draw.shuffle(values)
        return values

    return [
        item
        for file in groups(items, "path")
        for tests in groups(file, "cls")
        for item in draw.sample(tests, len(tests))
    ]
