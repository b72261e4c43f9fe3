"""The hub's client of the proxy: one that was restarted is told its routes at once.

JupyterHub looks for missing routes only as often as it asks the proxy for everybody's last
activity, which is too much to ask every second. Until then, live sessions could not be reached.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.proxy import ConfigurableHTTPProxy

RETRY_SECONDS = 0.1
AGAIN_SECONDS = 10.0
"""When a proxy that lives and could not be told all is told once more."""
ALL_TOLD = "/portal-all-told"
"""Where the proxy hears that it knows all routes; until then it answers for those it lacks."""


class FollowedProxy(ConfigurableHTTPProxy):  # type: ignore[misc]  # untyped
    """configurable-http-proxy as a service of its own, which may end at any time."""

    _following: asyncio.Task[None] | None = None

    async def check_routes(
        self, users: Mapping[Any, Any], services: Mapping[Any, Any], routes: Any = None
    ) -> None:
        """Tell the proxy what it lacks; at the hub's start, which comes first, begin to follow."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow(users, services))
        await super().check_routes(users, services, routes)

    async def _follow(self, users: Mapping[Any, Any], services: Mapping[Any, Any]) -> None:
        """Hold a connection on which nothing is said; a new one may lead to a new proxy.

        A proxy that lives closes such a connection after a minute or so.
        """
        while True:
            reader, writer = await self._connected()
            patience: float | None = None
            try:
                await super().check_routes(users, services)
                await self.api_request(ALL_TOLD, method="POST")
            except Exception as error:  # noqa: BLE001  the next round may fare better
                self.log.warning("The proxy could not be told its routes: %s", error)
                patience = AGAIN_SECONDS
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(reader.read(), patience)
            writer.close()
            await asyncio.sleep(RETRY_SECONDS)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self.api_url)
        while True:
            with suppress(OSError):
                return await asyncio.open_connection(address.hostname, address.port)
            await asyncio.sleep(RETRY_SECONDS)
