"""A directory that answers, one that is silent, and logins against them."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.ldap import DirectoryAuthenticator

# isort: split
from tests.integration.authentication import slapd
from tests.integration.authentication.slapd import Slapd
from tests.network.sockets import free_port

MakeAuthenticator = Callable[..., DirectoryAuthenticator]


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """A directory that answers."""
    with slapd.running(tmp_path_factory.mktemp("slapd")) as running:
        yield running


@pytest.fixture
def silent_directory(tmp_path: Path) -> Iterator[Slapd]:
    """A directory that accepts connections and answers nothing."""
    with slapd.running(tmp_path) as running, running.silent():
        yield running


@pytest.fixture(scope="session")
def strict_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """A directory that takes passwords over TLS only."""
    folder = tmp_path_factory.mktemp("strict")
    with slapd.running(folder, "security simple_bind=128") as running:
        yield running


@pytest.fixture
def silent_host() -> Iterator[str]:
    """A server that does not even accept."""
    with slapd.full_queue() as url:
        yield url


@pytest.fixture
def no_directory() -> str:
    """A server that refuses connections."""
    return f"ldap://127.0.0.1:{free_port()}"


@pytest.fixture
def authenticator(directory: Slapd) -> MakeAuthenticator:
    """Make an authenticator as the hub configuration sets it up, with short limits."""

    def make(*servers: str, **traits: Any) -> DirectoryAuthenticator:
        return DirectoryAuthenticator(
            **{
                "servers": list(servers) or [directory.url],
                "tls_strategy": "insecure",
                "user_search_base": slapd.USER_BASE,
                "group_search_base": slapd.GROUP_BASE,
                "allowed_groups": {"data-scientists", "unix-primary", "vision"},
                "admin_groups": {"portal-admins"},
                "connect_timeout": 1,
                "receive_timeout": 2,
                "next_server_seconds": 0.3,
                "login_timeout": 10.0,
                **traits,
            }
        )

    return make
