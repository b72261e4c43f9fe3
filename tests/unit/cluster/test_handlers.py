"""What the service answers to whom: its own application, and a stand-in for the hub's API."""

import asyncio
import itertools
import json
import random
import sqlite3
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from jupyterhub.httpclient import JupyterHubHTTPClient
from jupyterhub.services.auth import HubOAuth
from tornado.httpclient import HTTPClientError
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from dsportal import request_limits
from dsportal.cluster import handlers, page_handlers, words
from dsportal.cluster.__main__ import application
from dsportal.cluster.handlers import ServiceContext
from dsportal.cluster.pages import Pages
from dsportal.cluster.sessions import SessionList
from dsportal.cluster.shared_view import SharedView
from dsportal.cluster.viewer_access import STREAMS_EACH, ViewerAccess
from dsportal.look import appearance
from dsportal.settings.look import LookSettings
from jupyterhub_gpu_slurm.errors import CommandTimedOut
from tests.unit.cluster.snapshots import ADAS, NOW, snapshot

PREFIX = "/services/cluster/"
# No TLS here: to read the machine's authorities would cost more than a test.
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PAGES = Pages("/hub/", appearance(LookSettings()))
MAY_LOOK = ["access:services!service=cluster"]
LOGINS: dict[str, dict[str, Any]] = {
    "ada's": {"kind": "user", "name": "ada", "admin": False, "scopes": MAY_LOOK},
    "bob's": {"kind": "user", "name": "bob", "admin": False, "scopes": MAY_LOOK},
    "root's": {"kind": "user", "name": "root", "admin": True, "scopes": MAY_LOOK},
    "robot's": {"kind": "service", "name": "robot", "admin": True, "scopes": MAY_LOOK},
    "ada's session's": {"kind": "user", "name": "ada", "admin": False, "scopes": ["self"]},
}
"""Tokens, and whose they are."""


class HubUser(RequestHandler):
    """Stands in for ``/hub/api/user``."""

    async def get(self) -> None:
        token = self.request.headers.get("Authorization", "").removeprefix("token ")
        if token not in LOGINS:
            self.set_status(403)
            return
        self.finish(json.dumps(LOGINS[token]))


@dataclass
class StandIns:
    """Stand in for what asks Slurm, the hub and the record of GPU hours."""

    shown: SharedView | None = field(default_factory=lambda: SharedView(snapshot(), "portal-"))
    later: list[SharedView | None] = field(default_factory=list)
    stop_fails: Exception | None = None
    hours_fail: Exception | None = None
    hours_lack_jobs: bool = False
    hours_take_seconds: float = 0.0
    stopped: list[tuple[str, str, str]] = field(default_factory=list)
    trouble: str | None = None

    async def shared(self) -> SharedView:
        if self.shown is None:
            raise CommandTimedOut("Slurm does not answer.")
        return self.shown

    async def views(self) -> AsyncIterator[SharedView | None]:
        for shared in [self.shown, *self.later]:
            yield shared
        await asyncio.sleep(60)

    async def listing(self, seen: object) -> SessionList:
        return SessionList([], self.trouble)

    async def stop(self, user: str, server: str, token: str) -> None:
        if self.stop_fails:
            raise self.stop_fails
        self.stopped.append((user, server, token))

    async def gpu_hours(self, since: datetime, until: datetime) -> tuple[list[Any], bool]:
        if self.hours_fail:
            raise self.hours_fail
        await asyncio.sleep(self.hours_take_seconds)
        return [], self.hours_lack_jobs

    group_gpu_hours = gpu_hours


@pytest.fixture
def stand_ins() -> StandIns:
    return StandIns()


Ask = Callable[[httpx.AsyncClient], Awaitable[Any]]


@asynccontextmanager
async def serving(app: Application) -> AsyncIterator[str]:
    (listener,) = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(app)
    server.add_sockets([listener])
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        await server.close_all_connections()


def context_with(stand_ins: StandIns, **other: Any) -> ServiceContext:
    given: dict[str, Any] = {
        "watch": stand_ins,
        "sessions": stand_ins,
        "viewers": ViewerAccess(),
        "pages": PAGES,
        "usage": stand_ins,
        "show_names": False,
        "login_seconds": 60.0,
    }
    return ServiceContext(**given | other)


def asked(context: ServiceContext, ask: Ask, hub_user: type[HubUser] = HubUser) -> Any:
    """Ask the service, which asks the hub who it is."""

    async def run() -> Any:
        async with serving(Application([(r"/hub/api/user", hub_user)])) as hub:
            HubOAuth.clear_instance()
            HubOAuth.instance(
                api_url=f"{hub}/hub/api",
                api_token="service's",
                oauth_client_id="service-cluster",
                base_url=PREFIX,
                access_scopes=set(MAY_LOOK),
                cache_max_age=0,
            )
            app = application(context, PREFIX, is_encrypted=False)
            async with (
                serving(app) as service,
                httpx.AsyncClient(
                    base_url=f"{service}{PREFIX}", timeout=20, verify=NOBODY
                ) as client,
            ):
                try:
                    return await asyncio.wait_for(ask(client), 20)
                finally:
                    await JupyterHubHTTPClient.loop_instance().close()

    try:
        return asyncio.run(run())
    finally:
        HubOAuth.clear_instance()


def answer(
    context: ServiceContext, path: str, token: str | None, method: str = "GET"
) -> httpx.Response:
    headers = {} if token is None else {"Authorization": f"token {token}"}
    found: httpx.Response = asked(
        context, lambda client: client.request(method, path, headers=headers)
    )
    return found


READS = ["api/v1/cluster", "api/v1/jobs", "api/openapi.json"]
ADMINS = ["api/v1/sessions", "api/v1/usage", "api/v1/usage.csv"]


# --- who may look ---


@pytest.mark.parametrize("path", [*READS, *ADMINS, "api/v1/events", "events", "sizing", ""])
@pytest.mark.parametrize("token", [None, "nobody's"])
def test_who_is_not_logged_in_sees_nothing(
    stand_ins: StandIns, path: str, token: str | None
) -> None:
    found = answer(context_with(stand_ins), path, token)
    if path in ("", "sizing"):
        assert found.status_code == 302
        assert found.headers["Location"].startswith("/hub/api/oauth2/authorize?")
    else:
        assert found.status_code == 403
    assert "node1" not in found.text


@pytest.mark.parametrize("path", [*READS, *ADMINS, "api/v1/events", ""])
def test_a_token_that_is_not_meant_for_this_page_is_refused(stand_ins: StandIns, path: str) -> None:
    found = answer(context_with(stand_ins), path, "ada's session's")
    assert found.status_code == 403
    assert words.NOT_ALLOWED in found.text


@pytest.mark.parametrize("path", ADMINS)
@pytest.mark.parametrize("token", ["ada's", "robot's"])
def test_what_is_for_admins_is_for_admins(stand_ins: StandIns, path: str, token: str) -> None:
    found = answer(context_with(stand_ins), path, token)
    assert found.status_code == 403
    assert found.json()["message"] == words.ADMINS_ONLY


@pytest.mark.parametrize("path", [*READS, *ADMINS, "", "sizing"])
def test_an_admin_sees_all_of_it(stand_ins: StandIns, path: str) -> None:
    found = answer(context_with(stand_ins), path, "root's")
    assert found.status_code == 200
    assert found.headers["Cache-Control"] == "no-store"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in found.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("token", "show_names", "seen"),
    [
        ("ada's", False, ["ada", None, None]),
        ("ada's", True, ["ada", "bob", "bob"]),
        ("root's", False, ["ada", "bob", "bob"]),
        ("robot's", False, [None, None, None]),
    ],
)
def test_names_of_others_are_for_whom_they_may_be(
    stand_ins: StandIns, token: str, show_names: bool, seen: list[str | None]
) -> None:
    found = answer(context_with(stand_ins, show_names=show_names), "api/v1/jobs", token)
    assert [job["user"] for job in found.json()["jobs"]] == seen


@pytest.mark.parametrize(("own", "count"), [("true", 1), ("false", 3)])
def test_a_user_may_ask_for_their_own_jobs_only(stand_ins: StandIns, own: str, count: int) -> None:
    found = answer(context_with(stand_ins), f"api/v1/jobs?own={own}", "ada's")
    assert len(found.json()["jobs"]) == count


def test_what_is_no_answer_to_own_is_refused(stand_ins: StandIns) -> None:
    found = answer(context_with(stand_ins), "api/v1/jobs?own=1", "ada's")
    assert found.status_code == 400
    assert found.json()["message"] == words.OWN_IS_TRUE_OR_FALSE


# --- what it says ---


def test_an_answer_says_as_of_when_it_holds(stand_ins: StandIns) -> None:
    for path, key in (("api/v1/cluster", "nodes"), ("api/v1/jobs", "jobs")):
        found = answer(context_with(stand_ins), path, "ada's")
        assert found.headers["Content-Type"] == "application/json"
        body = found.json()
        assert (body["as_of"], body["trouble"]) == (NOW.timestamp(), None)
        assert body[key]


def test_a_head_is_an_answer_without_its_body(stand_ins: StandIns) -> None:
    found = answer(context_with(stand_ins), "api/v1/cluster", "ada's", "HEAD")
    assert (found.status_code, found.content) == (200, b"")


def test_a_slurm_that_has_never_answered_is_said(stand_ins: StandIns) -> None:
    stand_ins.shown = None
    for path in ("api/v1/cluster", "api/v1/jobs", "api/v1/sessions", ""):
        found = answer(context_with(stand_ins), path, "root's")
        assert found.status_code == 503
        assert words.try_again("Slurm does not answer.") in found.text


def test_the_sessions_say_which_of_the_two_is_in_trouble(stand_ins: StandIns) -> None:
    stand_ins.shown = SharedView(snapshot(), "portal-", "Slurm is old.")
    found = answer(context_with(stand_ins), "api/v1/sessions", "root's").json()
    assert (found["trouble"], found["as_of"]) == ("Slurm is old.", NOW.timestamp())
    stand_ins.trouble = "The hub is away."
    assert answer(context_with(stand_ins), "api/v1/sessions", "root's").json()["trouble"] == (
        "The hub is away."
    )


@pytest.mark.parametrize(("token", "times"), [("ada's", 1), ("nobody's", 0)])
def test_only_whom_the_hub_knows_is_no_stranger(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, token: str, times: int
) -> None:
    welcomed: list[str] = []
    monkeypatch.setattr(request_limits, "welcome", lambda: welcomed.append(token))
    answer(context_with(stand_ins), "api/v1/cluster", token)
    assert len(welcomed) == times


@pytest.mark.parametrize("path", ["api/v1/usage?days=2", "api/v1/usage.csv?by=planet", "?days=x"])
def test_a_question_about_hours_that_is_none(stand_ins: StandIns, path: str) -> None:
    assert answer(context_with(stand_ins), path, "root's").status_code == 400


def test_a_record_of_hours_that_cannot_be_read(stand_ins: StandIns) -> None:
    stand_ins.hours_fail = sqlite3.OperationalError("locked")
    assert answer(context_with(stand_ins), "api/v1/usage", "root's").status_code == 503
    # The page goes without.
    assert answer(context_with(stand_ins), "", "root's").status_code == 200


def test_hours_of_sessions_alone_are_not_taken_for_those_of_all_jobs(stand_ins: StandIns) -> None:
    assert answer(context_with(stand_ins), "api/v1/usage", "root's").json()["trouble"] is None
    stand_ins.hours_lack_jobs = True
    found = answer(context_with(stand_ins), "api/v1/usage", "root's").json()
    assert found["trouble"] == words.SESSIONS_ALONE
    assert words.SESSIONS_ALONE in answer(context_with(stand_ins), "", "root's").text
    file = answer(context_with(stand_ins), "api/v1/usage.csv", "root's")
    assert (file.status_code, file.json()["message"]) == (503, words.try_again(words.NO_FILE))


def test_the_page_does_not_wait_for_an_accounting_that_is_slow(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_handlers, "_HOURS_SECONDS", 0.05)
    stand_ins.hours_take_seconds = 60.0
    page = answer(context_with(stand_ins), "", "root's")
    assert page.status_code == 200
    assert words.STILL_COUNTED in page.text
    assert "No GPU was used" not in page.text


def test_only_admins_have_hours_and_sessions_on_their_page(stand_ins: StandIns) -> None:
    assert 'id="sessions-title"' in answer(context_with(stand_ins), "", "root's").text
    page = answer(context_with(stand_ins), "", "ada's").text
    assert 'id="sessions-title"' not in page
    assert "node1" in page


# --- the end of a session ---


def test_an_admin_ends_a_session_by_the_own_right(stand_ins: StandIns) -> None:
    found = answer(context_with(stand_ins), "api/v1/sessions/ada/lab", "root's", "DELETE")
    assert found.status_code == 202
    assert stand_ins.stopped == [("ada", "lab", "root's")]


@pytest.mark.parametrize("token", ["ada's", "bob's", "robot's", None])
def test_nobody_else_does(stand_ins: StandIns, token: str | None) -> None:
    found = answer(context_with(stand_ins), "api/v1/sessions/ada/", token, "DELETE")
    assert found.status_code == 403
    assert stand_ins.stopped == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (HTTPClientError(403), 403),
        (HTTPClientError(404), 403),
        (HTTPClientError(500), 502),
        (OSError(), 502),
    ],
)
def test_a_hub_that_does_not_end_it_is_said(
    stand_ins: StandIns, error: Exception, status: int
) -> None:
    stand_ins.stop_fails = error
    found = answer(context_with(stand_ins), "api/v1/sessions/ada/", "root's", "DELETE")
    assert found.status_code == status
    assert "hub" in found.json()["message"]


@pytest.mark.parametrize("token", ["ada's", "robot's"])
def test_the_pages_button_is_for_admins(stand_ins: StandIns, token: str) -> None:
    async def press(client: httpx.AsyncClient) -> httpx.Response:
        client.headers["Authorization"] = f"token {token}"
        return await client.post("stop", data={"session": "ada/lab"})

    assert asked(context_with(stand_ins), press).status_code == 403
    assert stand_ins.stopped == []


def test_the_pages_button_leads_back_to_the_page(stand_ins: StandIns) -> None:
    async def press(client: httpx.AsyncClient) -> list[httpx.Response]:
        client.headers["Authorization"] = "token root's"
        pressed = await client.post("stop", data={"session": "ada/lab"})
        return [pressed, await client.get("stop")]

    pressed, read = asked(context_with(stand_ins), press)
    assert (pressed.status_code, read.status_code) == (303, 302)
    assert pressed.headers["Location"] == f"{PREFIX}#sessions-title"
    assert stand_ins.stopped == [("ada", "lab", "root's")]


# --- the stream ---


async def events(response: httpx.Response, count: int) -> list[tuple[str, Any]]:
    """Read so many events."""
    found: list[tuple[str, Any]] = []
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((name, json.loads(line.removeprefix("data: "))))
            if len(found) == count:
                break
    return found


def followed(
    context: ServiceContext,
    count: int,
    path: str = "api/v1/events",
    who: str = "ada",
    hub_user: type[HubUser] = HubUser,
) -> list[tuple[str, Any]]:
    async def follow(client: httpx.AsyncClient) -> list[tuple[str, Any]]:
        headers = {"Authorization": f"token {who}'s"}
        async with client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.headers["X-Accel-Buffering"] == "no"
            return await events(response, count)

    found: list[tuple[str, Any]] = asked(context, follow, hub_user)
    return found


def test_the_stream_tells_what_changes_and_only_that(stand_ins: StandIns) -> None:
    stand_ins.later = [
        SharedView(snapshot(), "portal-"),
        SharedView(snapshot(ADAS), "portal-"),
        None,
    ]
    told = followed(context_with(stand_ins), 5)
    kinds = [name for name, _ in told]
    assert kinds == ["cluster", "jobs", "heartbeat", "jobs", "heartbeat"]
    assert told[2][1] == {"as_of": NOW.timestamp(), "trouble": None}
    assert told[0][1]["as_of"] == NOW.timestamp()


def test_the_pages_stream_has_the_sessions_for_admins_only(stand_ins: StandIns) -> None:
    ((name, told),) = followed(context_with(stand_ins), 1, "events", "root")
    assert name == "parts"
    assert "sessions" in told["parts"]
    ((name, told),) = followed(context_with(stand_ins), 1, "events", "ada")
    assert "sessions" not in told["parts"]


def test_the_pages_stream_tells_each_part_once_as_long_as_it_stays(stand_ins: StandIns) -> None:
    stand_ins.later = [
        SharedView(snapshot(), "portal-"),
        SharedView(snapshot(ADAS), "portal-"),
    ]
    (_, first), (same, _), (_, changed) = followed(context_with(stand_ins), 3, "events")
    assert same == "heartbeat"
    assert {"layout", "running"} <= set(first["parts"])
    assert "running" in changed["parts"]
    assert "layout" not in changed["parts"]


def test_a_stream_ends_with_the_login(stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.later = [None] * 3
    later = iter([True, False])

    async def is_still_allowed(handler: object) -> bool:
        return next(later)

    monkeypatch.setattr(handlers.Handler, "is_still_allowed", is_still_allowed)
    told = followed(context_with(stand_ins, login_seconds=-1.0), 3)
    assert [name for name, _ in told] == ["cluster", "jobs", "end"]


@pytest.mark.parametrize(
    ("status", "holds"), [(403, False), (503, True), (200, True)], ids=["ended", "away", "there"]
)
def test_a_hub_that_is_away_ends_no_stream(stand_ins: StandIns, status: int, holds: bool) -> None:
    asked_again: list[str] = []

    class Hub(HubUser):
        async def get(self) -> None:
            asked_again.append("")
            if len(asked_again) > 1 and status != 200:
                self.set_status(status)
                return
            await super().get()

    stand_ins.later = [None]
    told = followed(context_with(stand_ins, login_seconds=-1.0), 3, hub_user=Hub)
    expected = ["cluster", "jobs", "heartbeat"] if holds else ["end"]
    assert [name for name, _ in told] == expected
    assert len(asked_again) > 1


def test_a_login_is_asked_for_again_only_after_its_time(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[object] = []

    async def is_still_allowed(handler: object) -> bool:
        checks.append(handler)
        return True

    # The stream begins at 0; a minute later each look at the clock takes a second.
    seconds = itertools.chain([0], itertools.count(61))
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr(handlers, "time", clock)
    monkeypatch.setattr(handlers.Handler, "is_still_allowed", is_still_allowed)
    stand_ins.later = [None] * 3
    followed(context_with(stand_ins, login_seconds=60.0), 5)
    assert len(checks) == 1


@pytest.mark.parametrize(("drawn", "asked_at_once"), [(0.0, False), (60.0, True)])
def test_streams_that_begin_together_ask_for_their_logins_at_different_times(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, drawn: float, asked_at_once: bool
) -> None:
    checks: list[object] = []

    async def is_still_allowed(handler: object) -> bool:
        checks.append(handler)
        return True

    def draw(low: float, high: float) -> float:
        assert (low, high) == (0, 60.0)
        return drawn

    monkeypatch.setattr(random, "uniform", draw)
    monkeypatch.setattr(handlers.Handler, "is_still_allowed", is_still_allowed)
    stand_ins.later = [None] * 3
    followed(context_with(stand_ins, login_seconds=60.0), 5)
    assert len(checks) == asked_at_once


def test_one_follows_so_many_streams_and_others_theirs(stand_ins: StandIns) -> None:
    shared = context_with(stand_ins)
    seats = [shared.viewers.seat("ada") for _ in range(STREAMS_EACH)]
    for seat in seats:
        seat.__enter__()
    found = answer(shared, "api/v1/events", "ada's")
    assert found.status_code == 429
    assert found.json()["message"] == words.too_many_streams(STREAMS_EACH)
    assert followed(shared, 1, who="bob")[0][0] == "cluster"


def test_a_seat_is_given_back_when_the_viewer_leaves(stand_ins: StandIns) -> None:
    shared = context_with(stand_ins)

    async def look_and_leave(client: httpx.AsyncClient) -> None:
        headers = {"Authorization": "token ada's"}
        async with client.stream("GET", "api/v1/events", headers=headers) as response:
            await events(response, 1)
            assert shared.viewers.streams == 1
        async with asyncio.timeout(10):
            while shared.viewers.streams:  # noqa: ASYNC110  the context tells nobody
                await asyncio.sleep(0.01)

    asked(shared, look_and_leave)
