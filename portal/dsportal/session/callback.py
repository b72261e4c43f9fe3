"""The port of a session: chosen here, and reported to the hub.

The hub never guesses a port: the system gives a free one, and the hub is told when
the server behind it answers.
"""

import asyncio
import json
import logging
import socket
from collections.abc import Sequence

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from dsportal.session import internal_tls

log = logging.getLogger(__name__)

# Long enough for a hub that is being repaired: a quarter of an hour.
RETRY_SECONDS: Sequence[float] = (0.2, 0.5, 1, 2, 4, 8, *[15.0] * 60)
_REQUEST_SECONDS = 20.0


class HubRefusedError(RuntimeError):
    """The hub does not want this session, or was not heard of for long."""


def open_socket() -> socket.socket:
    """Take a free port of all addresses; connections wait until the server accepts them."""
    if socket.has_dualstack_ipv6():
        listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        listener = socket.create_server(("", 0))
    listener.setblocking(False)
    return listener


async def report_port(
    url: str, token: str, port: int, retry_seconds: Sequence[float] = RETRY_SECONDS
) -> None:
    """Tell the hub the port.

    Raises HubRefusedError when the hub says no (4xx), or still cannot be reached
    after the last of ``retry_seconds``.
    """
    request = HTTPRequest(
        url,
        method="POST",
        headers={"Authorization": f"token {token}", "Content-Type": "application/json"},
        body=json.dumps({"port": port}),
        connect_timeout=_REQUEST_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        ssl_options=internal_tls.client_context(),
    )
    for pause_seconds in (*retry_seconds, None):
        try:
            await AsyncHTTPClient().fetch(request)
        except HTTPClientError as error:
            if 400 <= error.code < 500:
                raise HubRefusedError(f"the hub refused the port: {error}") from error
            reason: Exception = error
        except OSError as error:
            reason = error
        else:
            return
        if pause_seconds is None:
            raise HubRefusedError(f"the hub did not take the port: {reason}") from reason
        log.warning("The hub did not take the port, again in %g s: %s", pause_seconds, reason)
        await asyncio.sleep(pause_seconds)
