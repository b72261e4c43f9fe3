"""Fixtures for tests that work in a session."""

from collections.abc import Iterator

import pytest

from tests import faults
from tests.instance import Instance


@pytest.fixture
def waiting_queue(portal: Instance) -> Iterator[None]:
    """A queue in which a job waits for all nodes, so that only backfill starts others."""
    with faults.only_backfill_starts(portal):
        yield
