"""Another order of the tests: none may need what another has left."""

import random
from collections.abc import Hashable, Iterable

import pytest


def shuffled(items: Iterable[pytest.Item], seed: str) -> list[pytest.Item]:
    """Shuffle files, the classes of each, and the tests of each class.

    A test that goes on with another's page (`same_page`) stays behind it.
    """
    draw = random.Random(seed)  # noqa: S311  # no secret

    def groups(of: Iterable[pytest.Item], key: str) -> list[list[pytest.Item]]:
        found: dict[Hashable, list[pytest.Item]] = {}
        for item in of:
            found.setdefault(getattr(item, key, None), []).append(item)
        values = list(found.values())
        draw.shuffle(values)
        return values

    def blocks(of: list[pytest.Item]) -> list[list[pytest.Item]]:
        found: list[list[pytest.Item]] = []
        for item in of:
            if found and item.get_closest_marker("same_page"):
                found[-1].append(item)
            else:
                found.append([item])
        draw.shuffle(found)
        return found

    return [
        item
        for file in groups(items, "path")
        for tests in groups(file, "cls")
        for block in blocks(tests)
        for item in block
    ]
