"""A websocket for tests that wait: asyncio's client, in a thread of its own.

websockets' own synchronous client reads and writes one TLS connection in two threads, which Python
3.11 does not guard: now and then what was written is lost.
"""

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import connect

# A kernel that has just been begun answers when it is up.
_OPEN_SECONDS = 60


class Websocket:
    """An open connection; a context manager that closes it."""

    def __init__(self, url: str, headers: dict[str, str], trust: ssl.SSLContext) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._connection = self._done(_opened(url, headers, trust))
        except BaseException:
            self._end()
            raise

    def send(self, text: str | bytes) -> None:
        """Send one message."""
        self._done(self._connection.send(text))

    def recv(self, timeout: float | None = None) -> str | bytes:
        """Wait for the next message; raises TimeoutError after so many seconds."""
        message: str | bytes = self._done(asyncio.wait_for(self._connection.recv(), timeout))
        return message

    def closed_with(self, seconds: float) -> int:
        """Wait for the other end to close; return its code (RFC 6455, 7.4)."""
        self._done(asyncio.wait_for(self._connection.wait_closed(), seconds))
        return int(self._connection.close_code)

    def ping(self, seconds: float) -> None:
        """Wait for the answer to a ping; raises TimeoutError after so many seconds."""
        self._done(_answered(self._connection, seconds))

    def close(self) -> None:
        """Say goodbye."""
        try:
            self._done(self._connection.close())
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _done(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _opened(url: str, headers: dict[str, str], trust: ssl.SSLContext) -> Any:
    tls = trust if url.startswith("wss:") else None
    return await connect(url, additional_headers=headers, open_timeout=_OPEN_SECONDS, ssl=tls)


async def _answered(connection: Any, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await (await connection.ping())
