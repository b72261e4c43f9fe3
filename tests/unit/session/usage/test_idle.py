"""What a session reports of its use, to a hub that listens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from dsportal.session.usage.idle import (
    IdleRule,
    IdleWatch,
    Kernels,
    is_change,
    kernels_of,
    rule_from,
)
from dsportal.session.usage.meter import Meter

BEGIN = 1_000_000.0
LIMIT = 100


class Scene:
    """A session whose time and kernels are told, and a hub that keeps what it hears."""

    def __init__(self) -> None:
        self.time = BEGIN
        self.kernels = Kernels()
        self.heard: list[Any] = []
        self.status = 200
        self.limit = LIMIT
        self.watch: IdleWatch

    @asynccontextmanager
    async def playing(self) -> AsyncIterator["Scene"]:
        scene = self

        class Handler(RequestHandler):
            def post(self) -> None:
                assert self.request.headers["Authorization"] == "token secret"
                scene.heard.append(json.loads(self.request.body))
                self.set_status(scene.status)
                self.finish(json.dumps({"limit_seconds": scene.limit, "warning_seconds": 20}))

        server = HTTPServer(Application([("/hub/api/gpu-session/activity", Handler)]))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/hub/api"
        environment = {"JUPYTERHUB_API_URL": url, "JUPYTERHUB_API_TOKEN": "secret"}
        # Of no job at all, so that no process counts.
        meter = Meter({"PORTAL_JOB_ID": "none"}, lambda: self.time)
        self.watch = IdleWatch(lambda: self.kernels, meter, environment, lambda: self.time)
        self.watch._used_at = self.watch._page_used_at = BEGIN
        try:
            yield self
        finally:
            server.stop()
            await server.close_all_connections()

    async def turn(self, seconds: float) -> None:
        """Let time pass, then look and report as the session does."""
        self.time += seconds
        await self.watch.look()
        if self.watch._is_report_due():
            await self.watch._report()


def play(*seconds: float, limit: int = LIMIT) -> Scene:
    async def run() -> Scene:
        async with Scene().playing() as scene:
            scene.limit = limit
            for pause in seconds:
                await scene.turn(pause)
            return scene

    return asyncio.run(run())


def test_reports_come_seldom_before_the_limit_and_at_each_look_from_there_on() -> None:
    scene = play(0, 30, 30, 30, 15, 15)
    assert scene.heard == [{"idle_seconds": n} for n in (0, 105, 120)]


def test_a_session_far_from_its_limit_is_heard_of_every_five_minutes() -> None:
    scene = play(0, 100, 199, 1, 299, 1, limit=7200)
    assert scene.heard == [{"idle_seconds": n} for n in (0, 300, 600)]


def test_a_look_that_fails_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    looks = iter([OSError("too many open files"), SystemExit("once more")])

    def kernels() -> Kernels:
        raise next(looks)

    async def run() -> None:
        watch = IdleWatch(kernels, Meter({"PORTAL_JOB_ID": "none"}), {})
        watch.keep()
        watch._rule = IdleRule(1)
        await watch.run()

    with pytest.raises(SystemExit):
        asyncio.run(asyncio.wait_for(run(), 20))
    assert "use could not be looked at" in caplog.text


def test_who_comes_back_is_reported_at_once() -> None:
    async def run() -> list[Any]:
        async with Scene().playing() as scene:
            await scene.turn(0)
            await scene.turn(150)
            scene.watch.note_request("PUT", "/user/ada/api/contents/a.ipynb", 200)
            assert scene.watch._woken.is_set()
            await scene.turn(0)
            await scene.turn(10)
            return scene.heard

    assert [one["idle_seconds"] for one in asyncio.run(run())] == [0, 150, 0]


@pytest.mark.parametrize(
    ("method", "path", "status", "is_use"),
    [
        ("PUT", "api/contents/a.ipynb", 200, True),
        ("POST", "api/kernels", 201, True),
        ("POST", "api/kernels/7/interrupt", 204, True),
        ("DELETE", "api/terminals/1", 204, True),
        ("GET", "api/kernels", 200, False),
        ("HEAD", "api/contents", 200, False),
        ("PUT", "api/contents/read-only.ipynb", 403, False),
        # What an open page does by itself.
        ("PUT", "lab/api/workspaces/default", 204, False),
        ("POST", "portal/shutdown/saved", 204, False),
        (None, "", 200, False),
    ],
)
def test_what_changes_something_is_use(
    method: str | None, path: str, status: int, is_use: bool
) -> None:
    async def run() -> int:
        async with Scene().playing() as scene:
            scene.time += 50
            scene.watch.note_request(method, f"/user/ada/{path}", status)
            return await scene.watch.look()

    assert asyncio.run(run()) == (0 if is_use else 50)


def test_the_page_hears_when_the_session_ends() -> None:
    scene = play(0, 30)
    assert scene.watch.tell() == {
        "now": BEGIN + 30,
        "used_at": BEGIN,
        "limit_seconds": LIMIT,
        "ends_at": BEGIN + LIMIT,
        "warning_seconds": 20,
    }


def test_without_the_hubs_word_there_is_no_limit() -> None:
    async def run() -> Scene:
        async with Scene().playing() as scene:
            scene.status = 503
            await scene.turn(500)
            await scene.turn(1)
            return scene

    scene = asyncio.run(run())
    assert scene.watch.tell()["ends_at"] is None
    # And it is tried again at the next look.
    assert len(scene.heard) == 2


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b'{"limit_seconds": 60, "warning_seconds": 6}', IdleRule(60, 6)),
        (b'{"limit_seconds": null, "warning_seconds": 0}', IdleRule(None, 0)),
    ],
)
def test_a_rule_is_read(body: bytes, rule: IdleRule) -> None:
    assert rule_from(body) == rule


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"limit_seconds": 0, "warning_seconds": 0}', b'{"limit_seconds": 9}'],
)
def test_no_other_answer_is_taken_for_one(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        rule_from(body)


def test_kernels_are_asked_for_their_state() -> None:
    used = datetime(2026, 11, 20, 12, tzinfo=UTC)
    by_id = {
        "starting": SimpleNamespace(),
        "idle": SimpleNamespace(execution_state="idle", last_activity=used),
    }
    manager = SimpleNamespace(list_kernel_ids=lambda: list(by_id), get_kernel=by_id.get)
    assert kernels_of(manager) == Kernels(False, used.timestamp())
    by_id["busy"] = SimpleNamespace(execution_state="busy", last_activity=used)
    assert kernels_of(manager).are_busy


@pytest.mark.parametrize(
    ("path", "is_somebody"),
    [
        ("/user/ada/api/contents/git/notes.txt", True),
        ("/user/ada/git/status", False),
        ("/user/ada/git/work/api/status", False),
        ("/user/ada/lab/api/workspaces/default", False),
    ],
)
def test_what_a_page_asks_by_itself_is_no_sign_of_somebody(path: str, is_somebody: bool) -> None:
    assert is_change("POST", path, 200) is is_somebody
