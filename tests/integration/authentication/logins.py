"""Logins, as JupyterHub makes them when its form comes in."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tornado import web

from dsportal.authentication.ldap import DirectoryAuthenticator
from tests.integration.authentication.slapd import PASSWORD, READER_DN


def browser() -> SimpleNamespace:
    """Give a handler with what a login looks at: the two ends of its connection."""
    socket = SimpleNamespace(
        getpeername=lambda: ("192.0.2.7", 50000), getsockname=lambda: ("192.0.2.1", 8000)
    )
    connection = SimpleNamespace(stream=SimpleNamespace(socket=socket))
    request = SimpleNamespace(connection=connection, headers={}, remote_ip="192.0.2.7")
    return SimpleNamespace(request=request)


async def log_in_async(
    authenticator: DirectoryAuthenticator, name: str, password: str = PASSWORD
) -> dict[str, Any] | None:
    data = {"username": name, "password": password}
    found: dict[str, Any] | None = await authenticator.get_authenticated_user(browser(), data)
    return found


def log_in(
    authenticator: DirectoryAuthenticator, name: str, password: str = PASSWORD
) -> dict[str, Any] | None:
    return asyncio.run(log_in_async(authenticator, name, password))


def refusal(authenticator: DirectoryAuthenticator, name: str) -> web.HTTPError:
    with pytest.raises(web.HTTPError) as caught:
        log_in(authenticator, name)
    return caught.value


def reader(wanted: bool = True) -> dict[str, str]:
    account = {"lookup_dn_search_user": READER_DN, "lookup_dn_search_password": PASSWORD}
    return account if wanted else {}
