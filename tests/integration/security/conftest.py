"""A user with a session, and another user who is hostile: shared by all attacks."""

from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from tests.instance import USERS, Instance
from tests.network.wire import Wire
from tests.visitor import Visitor, session_of

OWNER, STRANGER = USERS[2], USERS[3]
SESSION_TOKEN = "import os; print(os.environ['JUPYTERHUB_API_TOKEN'])"


@pytest.fixture(scope="module")
def owner(portal: Instance) -> Iterator[Visitor]:
    """The user who is attacked, with a session."""
    with session_of(portal, OWNER) as owner:
        stay_in_one_kernel(owner)
        yield owner


@pytest.fixture(scope="module")
def stranger(portal: Instance) -> Iterator[Visitor]:
    """The attacker, with an account and a session."""
    with session_of(portal, STRANGER) as stranger:
        stay_in_one_kernel(stranger)
        yield stranger


def stay_in_one_kernel(visitor: Visitor) -> None:
    """Let all code of a user run in one kernel: a new one for each line takes its time."""
    visitor.run = partial(visitor.run_in, visitor.open_kernel())  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def session_token(stranger: Visitor) -> str:
    """What the attacker finds in the environment of an own session."""
    return stranger.run(SESSION_TOKEN).strip()


@pytest.fixture(scope="module")
def http(portal: Instance) -> Iterator[httpx.Client]:
    """A client without any login, which follows no redirect."""
    with httpx.Client(base_url=portal.url, timeout=30) as client:
        yield client


@pytest.fixture
def wire(portal: Instance) -> Iterator[Wire]:
    """A connection for what no client would send."""
    wire = Wire(portal)
    yield wire
    wire.close()
