"""The address at which ``portal_ssh.py`` connects: ``/portal/ssh``, a WebSocket.

The client's first message is JSON: ``{"keys": ["ssh-ed25519 AAAA...", ...]}``, the public keys that
it may log in with. Then SSH's own bytes go both ways, as binary messages. Where there can be no
connection, the close says why.
"""

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any

from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from dsportal.session.ssh.connection import SshConnection, SshError, SshServer
from dsportal.session.ssh.server_config import KeysError

log = logging.getLogger(__name__)

# RFC 6455, 7.4.1.
_UNACCEPTABLE, _FAILED = 1008, 1011
_MOST_REASON_BYTES = 123


class SshHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """Joins a WebSocket and an SSH connection."""

    def initialize(self, server: SshServer) -> None:
        """Take what starts connections."""
        super().initialize()
        self.server = server
        self.connection: SshConnection | None = None
        self.sending: asyncio.Task[None] | None = None
        self.is_ending = False

    def get_compression_options(self) -> None:
        """Return none: what is encrypted cannot be made smaller."""

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Connect programs, which have a token; a browser's login opens nothing here."""
        # Set by JupyterHub's login: a token came with the request, which no page has.
        if not getattr(self, "_token_authenticated", False):
            raise web.HTTPError(403, "This address is for programs that come with a token.")
        await super().get(*args, **kwargs)

    async def on_message(self, message: str | bytes) -> None:
        """Start the connection, or hand bytes over. The next message waits until this returns."""
        if isinstance(message, bytes) and self.connection is not None:
            await self.connection.write(message)
        elif isinstance(message, str) and self.connection is None:
            await self._connect(message)
        else:
            self._refuse(_UNACCEPTABLE, "This is not what portal_ssh.py sends.")

    def on_close(self) -> None:
        """Hang up."""
        super().on_close()
        # Where the server has ended first, this is the answer to our own close: what is removed
        # then is not to be interrupted.
        if self.sending is not None and not self.is_ending:
            self.sending.cancel()

    async def _connect(self, message: str) -> None:
        try:
            told = json.loads(message)
            keys = told.get("keys") if isinstance(told, dict) else None
            self.connection = await self.server.connect(keys)
        except KeysError as error:
            self._refuse(_UNACCEPTABLE, str(error))
        except ValueError:
            self._refuse(_UNACCEPTABLE, "The first message is not JSON.")
        except (SshError, OSError) as error:
            log.warning("No SSH connection: %s", error)
            self._refuse(_FAILED, str(error))
        else:
            self.sending = asyncio.create_task(self._send(self.connection))

    async def _send(self, connection: SshConnection) -> None:
        try:
            with suppress(WebSocketClosedError):
                await connection.run(self._write)
        finally:
            self.is_ending = True
            self.close()
            await connection.close()

    async def _write(self, data: bytes) -> None:
        await self.write_message(data, binary=True)

    def _refuse(self, code: int, reason: str) -> None:
        self.close(code, reason.encode()[:_MOST_REASON_BYTES].decode(errors="ignore"))


def routes(
    base_url: str, server: SshServer
) -> list[tuple[str, type[WebSocketHandler], dict[str, Any]]]:
    """Give the server's route."""
    return [(url_path_join(base_url, "portal/ssh"), SshHandler, {"server": server})]
