"""Streamed responses through jupyter-server-proxy.

It hands an answer on when all of it is there (`_proxy_buffered`), unless the request accepts
nothing but events (`_proxy_progressive`): clients of OpenAI's API accept JSON, too. An answer may
take it five minutes. And what a proxied server does for somebody goes on when they have left.

Tried with jupyter_server_proxy 4.6.0.
"""

import io
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from tornado.httpclient import HTTPError, HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders, parse_response_start_line
from tornado.iostream import IOStream, StreamClosedError
from tornado.tcpclient import TCPClient
from tornado.web import RequestHandler

EVENTS = "text/event-stream"
_OF_A_CONNECTION = ("Connection", "Content-Length", "Transfer-Encoding")
_HAS_LEFT = 499
"""As nginx's log says it of a client that closed its request."""


def streamed(handler: type) -> type:
    """Give a handler of jupyter-server-proxy that hands events on, and hangs up."""

    class Streamed(handler):  # type: ignore[misc]
        _upstream: "_Upstream | None" = None

        def proxy_request_options(self) -> dict[str, Any]:
            # Who waits decides how long: what they asked for ends when they leave.
            return {**super().proxy_request_options(), "request_timeout": 0}

        async def _proxy_buffered(self, *where: Any) -> None:
            *to, client = where
            self._upstream = _Upstream(self, client)
            await super()._proxy_buffered(*to, self._upstream)

        async def _proxy_progressive(self, *where: Any) -> None:
            await self._proxy_buffered(*where)

        def on_connection_close(self) -> None:
            super().on_connection_close()
            if self._upstream is not None:
                self._upstream.hang_up()

    return Streamed


class _Upstream:
    """A client of tornado's with which one request is made."""

    def __init__(self, handler: Any, client: Any) -> None:
        self._handler, self._client = handler, client
        self._connection = client.tcp_client = _HeldConnection(client.tcp_client)
        self._lines: list[str] = []
        self._kept: list[bytes] = []
        self._is_passed_on = False

    async def fetch(self, request: HTTPRequest, **options: Any) -> HTTPResponse:
        """Return the answer, without a body where that was handed on as it came."""
        request.header_callback = self._lines.append
        request.streaming_callback = self._take
        try:
            answer: HTTPResponse = await self._client.fetch(request, **options)
        except HTTPError:
            if self._connection.is_over:
                return HTTPResponse(request, _HAS_LEFT, reason="Client closed the request")
            if not self._is_passed_on:
                raise
            # The end that tornado writes would make half an answer look whole.
            self._handler.request.connection.stream.close()
            return HTTPResponse(request, HTTPStatus.BAD_GATEWAY)
        answer.buffer = io.BytesIO(b"".join(self._kept))
        return answer

    def hang_up(self) -> None:
        """End the request: nobody waits for its answer."""
        self._connection.hang_up()

    async def _take(self, chunk: bytes) -> None:
        if not self._is_passed_on and not self._begin():
            self._kept.append(chunk)
            return
        self._handler._record_activity()
        self._handler.write(chunk)
        with suppress(StreamClosedError):
            # The handler's own, which knows of websockets, cannot be waited for.
            await RequestHandler.flush(self._handler)

    def _begin(self) -> bool:
        """Hand the head on if it is that of events; say whether it is."""
        first, *lines = self._lines
        headers = HTTPHeaders.parse("".join(lines))
        if not headers.get("Content-Type", "").startswith(EVENTS):
            return False
        self._is_passed_on = True
        for name in _OF_A_CONNECTION:
            headers.pop(name, None)
        self._handler.set_status(parse_response_start_line(first.strip()).code)
        self._handler._headers = headers
        return True


class _HeldConnection(TCPClient):
    """Connects, and can hang up."""

    def __init__(self, client: TCPClient) -> None:
        self._client = client
        self._stream: IOStream | None = None
        self.is_over = False

    async def connect(self, *where: Any, **how: Any) -> IOStream:
        """Connect, and keep what to close."""
        self._stream = await self._client.connect(*where, **how)
        if self.is_over:
            self._stream.close()
        return self._stream

    def hang_up(self) -> None:
        """Close the connection, now or as soon as it is there."""
        self.is_over = True
        if self._stream is not None:
            self._stream.close()
