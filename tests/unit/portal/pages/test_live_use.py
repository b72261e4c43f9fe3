import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httpclient import HTTPError
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from dsportal.hub.pages.live_use import (
    LiveUse,
    LiveUseHandler,
    SessionTlsContext,
    WayIn,
    use_from,
)


def test_what_a_session_says_is_read() -> None:
    assert use_from(b'{"cores": 1.25, "memory_bytes": 1024}') == LiveUse(1.25, 1024)
    assert use_from(b'{"cores": null, "memory_bytes": 7.0}') == LiveUse(None, 7)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<script>",
        b"[]",
        b"[" * 5000,
        b"{}",
        b'{"cores": "1", "memory_bytes": true}',
        b'{"cores": NaN, "memory_bytes": Infinity}',
        b'{"cores": -1, "memory_bytes": 1e300}',
        b'{"cores": [1], "memory_bytes": {"a": 1}}',
        # More than a float can be.
        b'{"cores": 1%s, "memory_bytes": -1%s}' % (b"0" * 400, b"0" * 400),
    ],
)
def test_what_a_hostile_session_says_is_not_passed_on(body: bytes) -> None:
    assert use_from(body) == LiveUse()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**16,
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
        b"no HTTP\r\n\r\n",
    ],
    ids=["long head", "long body", "other protocol"],
)
def test_an_answer_that_is_none_is_no_fault_of_the_hubs(answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        # It is closed by whom it is too much for.
        with suppress(OSError):
            await reader.read()
        writer.close()

    async def ask() -> LiveUse:
        server = await asyncio.start_server(say, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        handler: Any = LiveUseHandler.__new__(LiveUseHandler)
        spawner = SimpleNamespace(
            user=SimpleNamespace(name="ada"),
            name="",
            server=SimpleNamespace(url=f"http://127.0.0.1:{port}/user/ada/"),
        )
        way_in = WayIn("token", ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), float("inf"))
        handler.entries = {f"ada/ {spawner.server.url}": way_in}
        log = SimpleNamespace(debug=lambda *_: None)
        handler.application = SimpleNamespace(settings={"log": log})
        async with server:
            found: LiveUse = await handler._ask(spawner)
        return found

    assert asyncio.run(ask()) == LiveUse()


def test_a_sessions_own_name_is_asked_for_whatever_the_node_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        ssl.SSLContext, "wrap_socket", lambda *_, **named: asked.append(named["server_hostname"])
    )
    context = SessionTlsContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = "ada.session.internal"
    assert context.check_hostname
    with socket.socket() as plain:
        context.wrap_socket(plain, server_hostname="node001", do_handshake_on_connect=False)
    assert asked == ["ada.session.internal"]


@pytest.mark.parametrize(
    ("code", "age_seconds", "tokens"), [(403, 61, 2), (403, 10, 1), (599, 61, 1)]
)
def test_a_token_that_was_revoked_is_made_anew(
    code: int, age_seconds: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def new_api_token(**_: object) -> str:
        made.append("token")
        return made[-1]

    async def refuse(*_: object) -> None:
        raise HTTPError(code)

    user = SimpleNamespace(name="ada", new_api_token=new_api_token)
    server = SimpleNamespace(url="https://node001:1/user/ada/")
    spawner = SimpleNamespace(user=user, name="", server=server)
    handler: Any = LiveUseHandler.__new__(LiveUseHandler)
    handler.entries = {}
    handler._tls = lambda name: ssl.create_default_context()
    handler.application = SimpleNamespace(settings={"log": SimpleNamespace(debug=lambda *_: None)})
    monkeypatch.setattr(SimpleAsyncHTTPClient, "fetch", refuse)

    async def ask() -> None:
        # One that is so old is refused by the first look; the second has it or another.
        handler._entry("ada/ https://node001:1/user/ada/", spawner)
        ((key, entry),) = handler.entries.items()
        handler.entries[key] = replace(entry, ends=entry.ends - age_seconds)
        for _ in range(2):
            assert await handler._ask(spawner) == LiveUse()

    asyncio.run(ask())
    assert len(made) == tokens
