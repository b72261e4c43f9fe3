"""A user with a session, and another user who is hostile: shared by all attacks."""

from collections.abc import Iterator

import httpx
import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

OWNER, STRANGER = USERS[2], USERS[3]
SESSION_TOKEN = "import os; print(os.environ['JUPYTERHUB_API_TOKEN'])"


@pytest.fixture(scope="package")
def owner(portal: Instance) -> Iterator[Visitor]:
    """The user who is attacked, with a session."""
    with session_of(portal, OWNER) as owner:
        yield owner


@pytest.fixture(scope="package")
def stranger(portal: Instance) -> Iterator[Visitor]:
    """The attacker, with an account and a session."""
    with session_of(portal, STRANGER) as stranger:
        yield stranger


@pytest.fixture(scope="package")
def session_token(stranger: Visitor) -> str:
    """What the attacker finds in the environment of an own session."""
    return stranger.run(SESSION_TOKEN).strip()


@pytest.fixture(scope="package")
def http(portal: Instance) -> Iterator[httpx.Client]:
    """A client without any login, which follows no redirect."""
    with httpx.Client(base_url=portal.url, timeout=30) as client:
        yield client
