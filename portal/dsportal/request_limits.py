"""Limits on requests to our servers: until a caller is known, they cost little.

A *caller* is who sends a request; *known* is one whose login or token the hub confirms. The body of
a request is read for known callers alone, so that nobody else fills a server's memory, and
connections of callers who are not known give way to newer ones. A server behind the portal's proxy
does all this too, since its port may be reached beside the proxy.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, cast

from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.web import Application, HTTPError, RequestHandler

from dsportal import response_headers

SMALL_BODY = 2**20
"""Bytes: more than any request needs that is no upload."""
OAUTH_BODY = 2**13
"""Bytes; JupyterHub's OAuth library reads all fields of a body, for half a second if it may."""
MAX_HEADER_SIZE = 2**15
"""Bytes of a request's head. Node's proxy takes half of it."""
SERVER_ARGUMENTS = {
    # Of a request's head, and until the next one.
    "idle_connection_timeout": 30.0,
    "max_header_size": MAX_HEADER_SIZE,
}
"""For tornado's `HTTPServer`."""

_MOST_STRANGERS = 256
_STRANGERS_BODY_SECONDS = 10.0
# More than JupyterLab sends at once, so that a page whose login has ended hears of it.
_THROWN_AWAY = 4 * 2**20
_SLOWEST_BYTES_A_SECOND = 2**14
_LONGEST_BODY_SECONDS = 3600.0
_MOST_LOGINS_CACHED = 500


def refuse_longer(request: HTTPServerRequest, most: int) -> None:
    """Refuse a body of more bytes than that. Raises `HTTPError`."""
    if len(request.body) > most:
        raise HTTPError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Over {most} bytes are not taken here."
        )


class Caller:
    """Sender of the current request, known or not yet known to the hub."""

    def __init__(self, forget: Callable[[], object]) -> None:
        """``forget``: the connection is a stranger's no longer."""
        self.is_known = False
        self._forget = forget

    def welcome(self) -> None:
        """Note that the hub knows who it is."""
        self.is_known = True
        self._forget()


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def welcome() -> None:
    """Note that the hub knows who sends the request that is being answered."""
    caller = _caller.get()
    if caller is not None:
        caller.welcome()


def is_stranger() -> bool:
    """Say whether a request is being answered whose caller is not known (yet)."""
    caller = _caller.get()
    return caller is not None and not caller.is_known


@dataclass(frozen=True)
class Rules:
    """Rules for requests: whom to trust, and how much to accept."""

    knows: Callable[[HTTPServerRequest], Awaitable[bool]]
    """Asks the hub about the caller; an `HTTPError` where the hub does not say."""
    body_bytes: Callable[[HTTPServerRequest], int]
    """The longest body that a known caller may send."""
    most_strangers: int = _MOST_STRANGERS
    """How many connections there may be whose callers are not known."""


class _Bounded:
    """Connections of which there are so many at most: the oldest give way to new ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        # In the order in which they came, or were added last.
        self._connections: dict[Any, None] = {}

    def add(self, connection: object) -> None:
        self.forget(connection)
        if len(self._connections) >= self._most:
            self._make_room()
        self._connections[connection] = None

    def forget(self, connection: object) -> bool:
        """Count it no more; say whether it was counted."""
        was_counted = connection in self._connections
        self._connections.pop(connection, None)
        return was_counted

    def _make_room(self) -> None:
        for connection in [one for one in self._connections if one.stream.closed()]:
            del self._connections[connection]
        if len(self._connections) >= self._most:
            # Several: each look goes over all.
            for longest in list(islice(self._connections, max(1, self._most // 8))):
                del self._connections[longest]
                longest.stream.close()


class RequestLimiter(HTTPServerConnectionDelegate):
    """Stands between a tornado `HTTPServer` and its application."""

    def __init__(self, application: Application, rules: Rules) -> None:
        self.application, self.rules = application, rules
        self._strangers = _Bounded(rules.most_strangers)

    def start_request(
        self, server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Await a request: of a stranger, until something else is known."""
        self._strangers.add(server_conn)
        caller = Caller(lambda: self._strangers.forget(server_conn))
        # The context is the connection's own; a handler's is a copy of it.
        _caller.set(caller)
        inner = self.application.start_request(server_conn, request_conn)
        return _Request(self.rules, caller, inner, request_conn)


class ConnectionLimiter(HTTPServerConnectionDelegate):
    """Bounds the connections of a server that answers everybody.

    Those that wait for their first request, those that were answered and are kept for another one,
    as a proxy keeps them, and those whose request is being answered, or whose answer is being read,
    are counted apart: none can take the place of another.
    """

    def __init__(
        self, application: HTTPServerConnectionDelegate, most_idle: int, most_answered: int
    ) -> None:
        """Let so many wait for their first request, and as many for another one."""
        self._application = application
        self._new, self._kept = _Bounded(most_idle), _Bounded(most_idle)
        self._answered = _Bounded(most_answered)

    def start_request(
        self, server_conn: object, request_conn: HTTPConnection
    ) -> HTTPMessageDelegate:
        """Await a request: the connection is idle until it has come whole."""
        idle = self._kept if self._answered.forget(server_conn) else self._new
        idle.add(server_conn)

        def has_come() -> None:
            idle.forget(server_conn)
            self._answered.add(server_conn)

        return _Awaited(self._application.start_request(server_conn, request_conn), has_come)


class _Awaited(HTTPMessageDelegate):
    """Hands a request on, and says when it has come whole."""

    def __init__(self, inner: HTTPMessageDelegate, has_come: Callable[[], None]) -> None:
        self._inner, self._has_come = inner, has_come

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        return self._inner.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._inner.data_received(chunk)

    def finish(self) -> None:
        self._has_come()
        self._inner.finish()

    def on_connection_close(self) -> None:
        self._inner.on_connection_close()


class _Request(HTTPMessageDelegate):
    """A request on its way to the application."""

    def __init__(
        self, rules: Rules, caller: Caller, inner: HTTPMessageDelegate, connection: Any
    ) -> None:
        self._rules, self._caller = rules, caller
        self._inner, self._connection = inner, connection
        self._refusal: tuple[int, str] | None = None

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        if not has_body(headers):
            return self._inner.headers_received(start_line, headers)
        return self._receive(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return None if self._refusal else self._inner.data_received(chunk)

    def finish(self) -> None:
        if self._refusal:
            self._refuse()
        else:
            self._inner.finish()

    def on_connection_close(self) -> None:
        if not self._refusal:
            self._inner.on_connection_close()

    async def _receive(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> None:
        request = HTTPServerRequest(
            connection=self._connection,
            start_line=cast(RequestStartLine, start_line),
            headers=headers,
        )
        length = _length(headers)
        self._refusal = await self._reason_against(request, length)
        if self._refusal is None:
            longest = self._rules.body_bytes(request)
            self._allow(longest, _seconds_for(longest if length is None else length))
            received = self._inner.headers_received(start_line, headers)
            if received is not None:
                await received
        elif length is None or length <= _THROWN_AWAY:
            # As it comes: who still sends may not read an answer.
            self._allow(_THROWN_AWAY, _STRANGERS_BODY_SECONDS)
        else:
            # Answered at once; what still comes until the connection closes is thrown away.
            self._allow(sys.maxsize, _STRANGERS_BODY_SECONDS)
            self._refuse()

    def _allow(self, size: int, seconds: float) -> None:
        self._connection.set_max_body_size(size)
        self._connection.set_body_timeout(seconds)

    async def _reason_against(
        self, request: HTTPServerRequest, length: int | None
    ) -> tuple[int, str] | None:
        try:
            if not await self._rules.knows(request):
                return 403, "Log in to the portal, or send a token that may access this."
        except HTTPError:
            return 502, "The hub does not say who you are. Try again in a moment."
        self._caller.welcome()
        longest = self._rules.body_bytes(request)
        if length is not None and length > longest:
            return 413, f"More than {longest} bytes are not taken here."
        return None

    def _refuse(self) -> None:
        if self._refusal is None or self._connection.stream.closed():
            return
        status, words = self._refusal
        body = json.dumps({"message": words}).encode()
        headers = HTTPHeaders(
            {
                "Server": response_headers.NAME,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "X-Content-Type-Options": "nosniff",
                "Connection": "close",
            }
        )
        line = ResponseStartLine("HTTP/1.1", status, HTTPStatus(status).phrase)
        # A caller who has left is told nothing.
        self._connection.write_headers(line, headers, body).add_done_callback(
            lambda written: written.exception()
        )
        self._connection.finish()


def has_body(headers: HTTPHeaders) -> bool:
    """Say whether a body follows a request's head (RFC 9112, section 6.3)."""
    return headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers


def _length(headers: HTTPHeaders) -> int | None:
    """Read how long the body is; ``None`` for one in chunks, and for what tornado will refuse."""
    text = headers.get("Content-Length", "")
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return int(text) if is_number and "Transfer-Encoding" not in headers else None


def _seconds_for(length: int) -> float:
    seconds = _STRANGERS_BODY_SECONDS + length / _SLOWEST_BYTES_A_SECOND
    return min(seconds, _LONGEST_BODY_SECONDS)


async def is_login(auth: Any, application: Application, request: HTTPServerRequest) -> bool:
    """Ask the hub, by its `HubOAuth`, whether a request comes with a login or a token.

    A login does not count in a request that a page of another origin makes: handlers refuse that
    too, but after its body. Raises `HTTPError` where the hub does not answer.
    """
    handler = RequestHandler(application, request)
    session_id = auth.get_session_id(handler)
    tokens = [auth.get_token(handler, in_cookie=False)]
    if request.headers.get("Sec-Fetch-Site") not in ("cross-site", "same-site"):
        tokens.append(
            (handler.get_secure_cookie(auth.cookie_name) or b"").decode("ascii", "replace")
        )
    for token in tokens:
        model = token and await auth.user_for_token(token, session_id=session_id, sync=False)
        if model and auth.check_scopes(auth.access_scopes, model):
            return True
    return False


def bound_cache(auth: Any) -> None:
    """Let the hub's answers about tokens, right or wrong, fill no memory."""

    class Bounded(type(auth.cache)):  # type: ignore[misc]
        def __setitem__(self, key: str, model: Any) -> None:
            while len(self) >= _MOST_LOGINS_CACHED:
                del self[next(iter(self.timestamps))]
            super().__setitem__(key, model)

    auth.cache = Bounded(auth.cache_max_age)
