"""Configuration of a real hub that has the directory's logins and nothing to start."""

import asyncio
import json
import os
import warnings
from typing import Any

from jupyterhub.proxy import Proxy
from jupyterhub.spawner import Spawner
from traitlets.config import get_config

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.ldap import DirectoryAuthenticator


class NoProxy(Proxy):  # type: ignore[misc]  # no types
    """Nobody is in front: the tests ask the hub itself."""

    should_start = False

    async def add_route(self, routespec: str, target: str, data: dict[str, Any]) -> None:
        """Forget it."""

    async def delete_route(self, routespec: str) -> None:
        """There is none."""

    async def get_all_routes(self) -> dict[str, Any]:
        """There are none."""
        return {}


class Waiting(Spawner):  # type: ignore[misc]  # no types
    """A start that goes on until it is stopped."""

    async def start(self) -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    async def stop(self, now: bool = False) -> None:
        """Nothing runs."""

    async def poll(self) -> int | None:
        """Nothing runs."""
        return 0


c = get_config()
given = json.loads(os.environ["TEST_HUB"])
c.JupyterHub.bind_url = "http://127.0.0.1:1"
c.JupyterHub.hub_bind_url = given["url"]
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.spawner_class = Waiting
c.JupyterHub.authenticator_class = DirectoryAuthenticator
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.DirectoryAuthenticator.update(given["directory"])
