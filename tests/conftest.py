"""Fixtures for all tests that need the running portal."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import hypothesis
import pytest

from tests import instance
from tests.instance import Instance
from tests.visitor import Visitor

# How long an example takes is the machine's affair.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def portal() -> Iterator[Instance]:
    """The test instance: a real hub, proxy, directory and Slurm cluster."""
    with instance.running() as running:
        yield running


@pytest.fixture
def visit(portal: Instance) -> Iterator[Callable[[str], Visitor]]:
    """Log users in; stop their sessions at the end."""
    visitors: list[Visitor] = []

    def log_in(name: str) -> Visitor:
        visitor = Visitor(portal, name)
        visitors.append(visitor)
        visitor.log_in().raise_for_status()
        return visitor

    with ExitStack() as leaving:
        yield log_in
        for visitor in visitors:
            leaving.callback(visitor.close)
            leaving.callback(visitor.leave)
