"""Fixtures for tests that work in a session."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import faults
from tests.desk import Desk
from tests.instance import USERS, Instance
from tests.visitor import session_of


@pytest.fixture(scope="module")
def desk(portal: Instance) -> Iterator[Desk]:
    with session_of(portal, USERS[2]) as visitor:
        home = Path(visitor.run("import os; print(os.environ['HOME'])").strip())
        visitor.run("import shutil; shutil.rmtree('logs', ignore_errors=True)")
        yield Desk(visitor, home)


@pytest.fixture
def waiting_queue(portal: Instance) -> Iterator[None]:
    """A queue in which a job waits for all nodes, so that only backfill starts others."""
    with faults.only_backfill_starts(portal):
        yield


@pytest.fixture
def kernel(desk: Desk) -> Iterator[Callable[..., str]]:
    """Open kernels that end with the test."""
    opened: list[str] = []

    def open_one(name: str = "pytorch") -> str:
        opened.append(desk.user.open_kernel(kernel=name))
        return opened[-1]

    yield open_one
    for name in opened:
        desk.user.session("DELETE", f"/api/kernels/{name}")
