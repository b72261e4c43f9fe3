"""A real server with nothing behind it, and callers that it knows or does not know."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyterhub.services.auth import HubOAuth
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, create_signed_value

from dsportal import request_limits
from dsportal.request_limits import (
    SMALL_BODY,
    ConnectionLimiter,
    RequestLimiter,
    Rules,
    is_login,
    is_stranger,
)
from dsportal.response_headers import Unversioned
from tests.unit.loops import in_a_loop

LONG = 3 * SMALL_BODY
HUGE = 400 * 2**20


@dataclass
class House:
    """A server: what it was sent, and a way to it."""

    port: int
    bodies: list[int] = field(default_factory=list)
    wires: list["Wire"] = field(default_factory=list)

    async def connect(self) -> "Wire":
        self.wires.append(Wire(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.wires[-1]


@dataclass
class Wire:
    """A connection to it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> "Wire":
        self.writer.write(data)
        return self

    async def answer(self) -> tuple[int, HTTPHeaders]:
        """Return status and head of the next answer; 0 where the connection ends instead."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return 0, HTTPHeaders()
        line, _, rest = head.decode().partition("\r\n")
        return int(line.split()[1]), HTTPHeaders.parse(rest)

    async def is_open(self) -> bool:
        """Ask for something small."""
        self.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return (await self.answer())[0] == 200


class Page(RequestHandler):
    """Answers everybody: the login is the reception's matter here."""

    def initialize(self, house: House) -> None:
        self._house = house

    def get(self) -> None:
        if self.request.headers.get("Authorization"):
            request_limits.welcome()
        logging.getLogger("of a handler").warning("stranger: %s", is_stranger())
        self.finish()

    def post(self) -> None:
        self._house.bodies.append(len(self.request.body))
        self.finish()


async def by_token(request: HTTPServerRequest) -> bool:
    if request.headers.get("Authorization") == "away":
        raise HTTPError(500)
    return request.headers.get("Authorization") == "token"


def longest(request: HTTPServerRequest) -> int:
    return LONG if request.path == "/long" else SMALL_BODY


RULES = Rules(by_token, longest)


@asynccontextmanager
async def served(
    server_of: Callable[[House], HTTPServer],
) -> AsyncIterator[House]:
    (listener,) = bind_sockets(0, "127.0.0.1")
    house = House(listener.getsockname()[1])
    server = server_of(house)
    server.add_socket(listener)
    try:
        yield house
    finally:
        for wire in house.wires:
            wire.writer.close()
        server.stop()
        await server.close_all_connections()


def a_house(
    rules: Rules = RULES,
    arguments: dict[str, Any] = request_limits.SERVER_ARGUMENTS,
) -> AbstractAsyncContextManager[House]:
    def server_of(house: House) -> HTTPServer:
        app = Application([("/.*", Page, {"house": house})], transforms=[Unversioned])
        return HTTPServer(RequestLimiter(app, rules), **arguments)

    return served(server_of)


def post(length: int, token: str = "", path: str = "/") -> bytes:
    login = f"Authorization: {token}\r\n" if token else ""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{login}Content-Length: {length}\r\n\r\n".encode()


@in_a_loop
async def test_a_strangers_long_body_is_refused_before_it_comes() -> None:
    async with a_house() as house:
        for token in ("", "a wrong one"):
            status, headers = await (await house.connect()).send(post(HUGE, token)).answer()
            assert (status, headers["Connection"]) == (403, "close")
        assert house.bodies == []


@in_a_loop
async def test_a_strangers_short_body_is_thrown_away() -> None:
    async with a_house() as house:
        for length in (5, 2 * SMALL_BODY):
            wire = (await house.connect()).send(post(length) + b"a" * length)
            assert (await wire.answer())[0] == 403
        assert house.bodies == []


@in_a_loop
async def test_a_strangers_chunks_end_with_the_connection() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with a_house() as house:
        wire = (await house.connect()).send(head)
        for _ in range(request_limits._THROWN_AWAY // 2**16 + 1):
            wire.send(b"10000\r\n" + b"a" * 2**16 + b"\r\n")
        assert (await wire.answer())[0] in (0, 400)
        assert house.bodies == []


@in_a_loop
async def test_who_is_known_may_send_what_the_place_takes() -> None:
    async with a_house() as house:
        for length, path in ((5, "/"), (SMALL_BODY, "/"), (LONG, "/long")):
            wire = (await house.connect()).send(post(length, "token", path) + b"a" * length)
            assert (await wire.answer())[0] == 200
        for length, path in ((SMALL_BODY + 1, "/"), (LONG + 1, "/long"), (HUGE, "/long")):
            wire = (await house.connect()).send(post(length, "token", path))
            assert (await wire.send(b"a" * min(length, LONG + 1)).answer())[0] == 413
        assert house.bodies == [5, SMALL_BODY, LONG]


@in_a_loop
async def test_a_silent_hub_is_no_reason_to_read_a_body() -> None:
    async with a_house() as house:
        assert (await (await house.connect()).send(post(HUGE, "away")).answer())[0] == 502
        assert house.bodies == []


@in_a_loop
async def test_what_is_half_sent_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "_STRANGERS_BODY_SECONDS", 0.1)
    soon = {**request_limits.SERVER_ARGUMENTS, "idle_connection_timeout": 0.1}
    async with a_house(arguments=soon) as house:
        for half in (post(10, "token") + b"a", post(10) + b"a", b"GET / HTTP/1.1\r\nHost:", b""):
            assert (await (await house.connect()).send(half).answer())[0] == 0


def test_a_long_body_has_the_time_that_a_slow_line_needs() -> None:
    assert request_limits._seconds_for(2**20) == 74
    assert request_limits._seconds_for(HUGE) == request_limits._LONGEST_BODY_SECONDS


@in_a_loop
async def test_a_long_head_is_refused() -> None:
    async with a_house() as house:
        wire = (await house.connect()).send(b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000)
        assert (await wire.answer())[0] == 0


@in_a_loop
async def test_strangers_give_way_to_newer_ones_and_not_who_is_known() -> None:
    async with a_house(Rules(by_token, longest, most_strangers=3)) as house:
        known = await house.connect()
        known.send(post(10, "token") + b"12345")
        strangers = []
        for _ in range(5):
            strangers.append(await house.connect())
            assert await strangers[-1].is_open()
        assert [await one.is_open() for one in reversed(strangers)] == [True] * 3 + [False] * 2
        assert (await known.send(b"67890").answer())[0] == 200
        assert house.bodies == [10]


@in_a_loop
async def test_connections_that_ended_count_no_more() -> None:
    async with a_house(Rules(by_token, longest, most_strangers=2)) as house:
        first = await house.connect()
        assert await first.is_open()
        for _ in range(4):
            other = await house.connect()
            assert await other.is_open()
            other.writer.close()
            await other.writer.wait_closed()
        assert await first.is_open()


class SlowPage(RequestHandler):
    """Answers nobody before it is told to."""

    def initialize(self, may_answer: asyncio.Event) -> None:
        self._may_answer = may_answer

    async def get(self) -> None:
        await self._may_answer.wait()


def a_bounded_house(may_answer: asyncio.Event) -> AbstractAsyncContextManager[House]:
    """Two connections may wait for a request, and two be answered."""

    def server_of(house: House) -> HTTPServer:
        routes: list[Any] = [
            ("/slow", SlowPage, {"may_answer": may_answer}),
            ("/", Page, {"house": house}),
        ]
        return HTTPServer(ConnectionLimiter(Application(routes), most_idle=2, most_answered=2))

    return served(server_of)


ASK_SLOWLY = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


@in_a_loop
async def test_a_request_that_is_answered_does_not_give_way_to_connections_without_one() -> None:
    may_answer = asyncio.Event()
    async with a_bounded_house(may_answer) as house:
        answered = (await house.connect()).send(ASK_SLOWLY)
        half_sent = (await house.connect()).send(post(5, "") + b"12")
        idle = [await house.connect() for _ in range(3)]
        for closed in (half_sent, idle[0]):
            assert await closed.reader.read() == b""
        assert [await kept.is_open() for kept in idle[1:]] == [True, True]
        may_answer.set()
        assert (await answered.answer())[0] == 200


@in_a_loop
async def test_a_connection_that_was_answered_does_not_give_way_to_new_ones() -> None:
    async with a_bounded_house(asyncio.Event()) as house:
        kept = await house.connect()
        assert [await kept.is_open(), await kept.is_open()] == [True, True]
        idle = [await house.connect() for _ in range(3)]
        assert await idle[0].reader.read() == b""
        assert await kept.is_open()
        for other in idle[1:]:
            assert await other.is_open()
        assert not await kept.is_open()


@in_a_loop
async def test_answers_that_nobody_reads_give_way_to_newer_ones() -> None:
    may_answer = asyncio.Event()
    async with a_bounded_house(may_answer) as house:
        asked = [(await house.connect()).send(ASK_SLOWLY) for _ in range(3)]
        assert (await asked[0].answer())[0] == 0
        may_answer.set()
        assert [(await kept.answer())[0] for kept in asked[1:]] == [200, 200]


@in_a_loop
async def test_whoever_answers_knows_whether_it_is_to_a_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert not is_stranger()
    async with a_house() as house:
        wire = await house.connect()
        assert await wire.is_open()
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: token\r\n\r\n")
        assert (await wire.answer())[0] == 200
        assert await wire.is_open()
    said = [record.getMessage() for record in caplog.records if record.name == "of a handler"]
    assert said == ["stranger: True", "stranger: False", "stranger: True"]


@in_a_loop
async def test_no_answer_names_a_version() -> None:
    async with a_house() as house:
        for method, body in ((b"GET", 0), (b"PUT", 0), (b"POST", 1)):
            wire = await house.connect()
            wire.send(method + b" / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % body)
            _, headers = await wire.send(b"a" * body).answer()
            assert headers["Server"] == "portal"


COOKIE = "jupyterhub-user-u"
SECRET = "a secret of this test"


class Hub(HubOAuth):  # type: ignore[misc]
    """What the hub says of tokens, without a hub."""

    async def _check_hub_authorization(self, url: str, api_token: str, **_: Any) -> Any:
        scopes = {"right": ["access:servers!server=u/"], "other": ["read:users"]}
        return {"scopes": scopes[api_token]} if api_token in scopes else None


def login(**headers: str) -> Awaitable[bool]:
    auth = Hub(
        api_token="x",
        oauth_client_id=COOKIE,
        access_scopes={"access:servers!server=u/"},
    )
    line = RequestStartLine("PUT", "/user/u/api/contents/x", "HTTP/1.1")
    named = {"Host": "x"} | {name.replace("_", "-"): value for name, value in headers.items()}

    class Connection:
        def set_close_callback(self, callback: object) -> None:
            pass

    connection: Any = Connection()
    request = HTTPServerRequest(start_line=line, headers=HTTPHeaders(named), connection=connection)
    return is_login(auth, Application(cookie_secret=SECRET), request)


def cookie(token: str, secret: str = SECRET) -> str:
    return f"{COOKIE}={create_signed_value(secret, COOKIE, token).decode()}"


@in_a_loop
async def test_a_login_is_a_token_or_a_cookie_that_the_hub_confirms() -> None:
    assert await login(Authorization="token right")
    assert await login(Cookie=cookie("right"))
    # A web tool has tokens of its own.
    assert await login(Authorization="Bearer of-the-tool", Cookie=cookie("right"))
    for nobody in (
        {},
        {"Authorization": "token wrong"},
        {"Authorization": "token other"},
        {"Cookie": cookie("other")},
        {"Cookie": cookie("right", "another secret")},
    ):
        assert not await login(**nobody)


@in_a_loop
async def test_a_login_does_not_count_for_a_page_of_another_origin() -> None:
    assert await login(Cookie=cookie("right"), Sec_Fetch_Site="same-origin")
    for site in ("cross-site", "same-site"):
        assert not await login(Cookie=cookie("right"), Sec_Fetch_Site=site)
        assert await login(Authorization="token right", Sec_Fetch_Site=site)


def test_guessed_tokens_fill_no_memory() -> None:
    auth = HubOAuth(api_token="x", oauth_client_id="x")
    request_limits.bound_cache(auth)
    for number in range(2000):
        auth.cache[str(number)] = None
    assert len(auth.cache) == request_limits._MOST_LOGINS_CACHED
    assert "1999" in auth.cache
