import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from dsportal.session.page.clock import (
    ClockReading,
    HubRefusal,
    SessionClock,
    minutes_from,
    reading_from,
)

ENVIRONMENT = {
    "JUPYTERHUB_API_TOKEN": "secret",
    "PORTAL_JOB_END_TIME": "1000",
    "PORTAL_JOB_ID": "7",
    "PORTAL_JOB_NODE": "node001",
    "PORTAL_JOB_GPUS": "2",
}
SAID = {"deadline": 2000, "longest_minutes": 60, "until": 5600, "reason": ""}


class Hub:
    """A hub that answers as it is told, and keeps what it was told."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        self.answers = list(answers)
        self.requests: list[HTTPServerRequest] = []
        self.environment = ENVIRONMENT

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Hub"]:
        hub = self

        class Handler(RequestHandler):
            def get(self) -> None:
                hub.requests.append(self.request)
                status, body = hub.answers.pop(0)
                self.set_status(status)
                self.finish(json.dumps(body))

            post = get

        server = HTTPServer(Application([("/hub/api/gpu-session/extend", Handler)]))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/hub/api"
        self.environment = {**ENVIRONMENT, "JUPYTERHUB_API_URL": url}
        try:
            yield self
        finally:
            server.stop()
            await server.close_all_connections()


def test_the_deadline_is_slurms_word_while_the_hub_is_silent() -> None:
    async def ask() -> dict[str, Any]:
        return await SessionClock(ENVIRONMENT, (2, 30, 10, 30), now=lambda: 400.0).tell()

    assert asyncio.run(ask()) == {
        "deadline": 1000,
        "longest_minutes": 0,
        "until": None,
        "reason": "",
        "times_left": 0,
        "job_id": "7",
        "node": "node001",
        "gpus": 2,
        "now": 400,
        "warning_minutes": [30, 10, 2],
    }


def test_the_hub_is_asked_once_a_minute_with_the_sessions_token() -> None:
    moment = 400.0
    hub = Hub((200, SAID), (200, {**SAID, "deadline": 3000}))

    async def ask() -> list[int]:
        nonlocal moment
        async with hub.listening():
            clock = SessionClock(hub.environment, now=lambda: moment)
            told = [(await clock.tell())["deadline"] for _ in range(3)]
            moment += 61
            return [*told, (await clock.tell())["deadline"]]

    assert asyncio.run(ask()) == [2000, 2000, 2000, 3000]
    assert [request.headers["Authorization"] for request in hub.requests] == ["token secret"] * 2


def test_an_extension_moves_the_deadline() -> None:
    hub = Hub((200, SAID))

    async def extend() -> dict[str, Any]:
        async with hub.listening():
            return await SessionClock(hub.environment).extend(30)

    assert asyncio.run(extend())["deadline"] == 2000
    (request,) = hub.requests
    assert (request.method, json.loads(request.body)) == ("POST", {"minutes": 30})


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, {"status": 403, "message": "Partition sxm2 allows 12 hours."}, "sxm2 allows 12"),
        (502, "no JSON of ours", "is not responding"),
        (200, {"deadline": "soon"}, "is not responding"),
    ],
)
def test_the_hubs_no_is_told_in_its_own_words(status: int, body: object, words: str) -> None:
    hub = Hub((status, body))

    async def extend() -> None:
        async with hub.listening():
            await SessionClock(hub.environment).extend(30)

    with pytest.raises(HubRefusal, match=words):
        asyncio.run(extend())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"deadline": "1", "longest_minutes": 0}',
        b'{"deadline": 1.5, "longest_minutes": 0}',
        b'{"deadline": 1, "longest_minutes": null}',
    ],
)
def test_only_the_hubs_own_form_is_read(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        reading_from(body)


def test_a_session_without_a_limit_has_no_deadline() -> None:
    body = b'{"deadline": null, "longest_minutes": 0, "until": null, "reason": "not limited"}'
    assert reading_from(body) == ClockReading(reason="not limited")


@pytest.mark.parametrize(
    "body", [b"", b"30", b"{}", b'{"minutes": "30"}', b'{"minutes": 30, "x": 1}']
)
def test_the_page_asks_for_minutes_and_nothing_else(body: bytes) -> None:
    with pytest.raises(ValueError, match="minutes"):
        minutes_from(body)
