import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.apihandlers import APIHandler
from jupyterhub.apihandlers.auth import OAuthTokenHandler
from jupyterhub.apihandlers.users import UserServerAPIHandler, UserTokenListAPIHandler
from jupyterhub.handlers import BaseHandler
from jupyterhub.scopes import Scope
from tornado import web

from dsportal.hub.patches import api_hardening
from dsportal.hub.patches.api_hardening import (
    LARGEST_OPTIONS,
    LONGEST_NOTE,
    MOST_TOKENS,
    HardenedActivityHandler,
    HardenedErrorHandler,
    HardenedServerHandler,
    HardenedTokenHandler,
    HardenedTokenListHandler,
    _json_body,
    _page,
)


def read(body: object, handler: Any = None) -> Any:
    handler = handler or SimpleNamespace()
    handler.request = SimpleNamespace(body=json.dumps(body).encode())
    return _json_body(handler)


@pytest.mark.parametrize(
    "body",
    [
        {"note": 10**30},
        {"note": "\0"},
        {"note": "x" * (LONGEST_NOTE + 1)},
        {"x": {"y": ["\ud800"]}},
        {"admin": 1},
        {"expires_in": True},
        {"expires_in": -1},
        {"expires_in": 10**30},
        {"usernames": True},
        {"users": [["x"]]},
        {"servers": 1.5},
        {"x": float("nan")},
        [1],
        "x",
    ],
    ids=ascii,
)
def test_a_body_of_wrong_types_is_the_senders_fault(body: object) -> None:
    with pytest.raises(web.HTTPError) as refused:
        read(body)
    assert refused.value.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"note": "mine", "expires_in": 3600, "scopes": ["self"], "roles": None},
        {"usernames": ["ada"], "admin": False},
        {"last_activity": "2026-01-01T00:00:00Z", "servers": {"": {"last_activity": "x"}}},
        {"servers": True, "proxy": False},
    ],
    ids=ascii,
)
def test_what_the_api_takes_is_read_as_it_is(body: object) -> None:
    assert read(body) == body


def test_nobody_is_made_an_admin_by_the_api() -> None:
    with pytest.raises(web.HTTPError) as refused:
        read({"usernames": ["ada"], "admin": True})
    assert refused.value.status_code == 403


def test_a_sessions_options_are_checked_by_those_who_know_them() -> None:
    handler = HardenedServerHandler.__new__(HardenedServerHandler)
    assert isinstance(handler, UserServerAPIHandler)
    assert read({"name": 1, "users": 2}, handler) == {"name": 1, "users": 2}


def test_options_of_any_size_are_not_kept() -> None:
    handler = HardenedServerHandler.__new__(HardenedServerHandler)
    with pytest.raises(web.HTTPError) as refused:
        read({"gpus": " " * LARGEST_OPTIONS + "1"}, handler)
    assert refused.value.status_code == 413


def named(monkeypatch: pytest.MonkeyPatch, name: str | None) -> Any:
    """Read the body of a start of a session that is called so; return its name."""
    monkeypatch.setattr(APIHandler, "get_json_body", _json_body)
    handler: Any = HardenedServerHandler.__new__(HardenedServerHandler)
    body = {"display_name": name, "user_options": {}} if name is not None else {"gpus": 1}
    handler.request = SimpleNamespace(body=json.dumps(body).encode())
    return handler.get_server_json_body()["display_name"]


@pytest.mark.parametrize(
    ("name", "is_kept_as"),
    [(None, None), ("", ""), ("Zweite Sitzung", "Zweite Sitzung"), ("e\u0301" * 200, "é" * 200)],
)
def test_a_session_is_called_what_its_user_calls_it(
    monkeypatch: pytest.MonkeyPatch, name: str | None, is_kept_as: str | None
) -> None:
    assert named(monkeypatch, name) == is_kept_as


@pytest.mark.parametrize("name", ["x" * 256, "a\u202eb", "a\nb", " a"], ids=ascii)
def test_a_name_that_no_new_session_may_have_is_no_name_for_an_old_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with pytest.raises(web.HTTPError) as refused:
        named(monkeypatch, name)
    assert refused.value.status_code == 400


@pytest.mark.parametrize(("length", "is_read"), [(2000, True), (2**20, False)])
def test_strangers_have_no_million_fields_read(
    monkeypatch: pytest.MonkeyPatch, length: int, is_read: bool
) -> None:
    bodies: list[bytes] = []
    monkeypatch.setattr(OAuthTokenHandler, "post", lambda one: bodies.append(one.request.body))
    handler: Any = HardenedTokenHandler.__new__(HardenedTokenHandler)
    handler.request = SimpleNamespace(body=b"a&" * (length // 2))
    if is_read:
        handler.post()
    else:
        with pytest.raises(web.HTTPError) as refused:
            handler.post()
        assert refused.value.status_code == 413
    assert bool(bodies) is is_read


def test_a_user_makes_tokens_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    database = orm.new_session_factory("sqlite:///:memory:")()
    database.add(orm.OAuthClient(identifier="jupyterhub"))
    ada = orm.User(name="ada")
    database.add(ada)
    database.commit()
    made: list[str] = []

    async def post(_: object, user_name: str) -> None:
        made.append(user_name)

    monkeypatch.setattr(UserTokenListAPIHandler, "post", post)
    handler: Any = HardenedTokenListHandler.__new__(HardenedTokenListHandler)
    handler.application = SimpleNamespace(settings={"db": database})
    handler.find_user = {"ada": ada}.get

    def have(number: int) -> None:
        for _ in range(number):
            database.add(orm.APIToken(user=ada, client_id="jupyterhub", expires_at=None))
        database.commit()

    have(MOST_TOKENS - 1)
    asyncio.run(handler.post("ada"))
    asyncio.run(handler.post("nobody"))
    have(1)
    with pytest.raises(web.HTTPError) as refused:
        asyncio.run(handler.post("ada"))
    assert (refused.value.status_code, made) == (409, ["ada", "nobody"])


def test_both_are_in_the_place_of_jupyterhubs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [("/tokens", UserTokenListAPIHandler), ("/oauth", OAuthTokenHandler)]
    monkeypatch.setattr(api_hardening, "default_handlers", found)
    monkeypatch.setattr(api_hardening, "page_handlers", [])
    for kind, name in (
        (APIHandler, "get_api_pagination"),
        (APIHandler, "get_json_body"),
        (APIHandler, "head"),
        (BaseHandler, "head"),
        (web.Application, "find_handler"),
    ):
        monkeypatch.setattr(kind, name, getattr(kind, name))
    api_hardening.install()
    assert [one[1] for one in found] == [HardenedTokenListHandler, HardenedTokenHandler]


class Starting:
    """The spawner of a start that is cancelled, which takes so many looks."""

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self.stopper = ""

    @property
    def pending(self) -> str | None:
        self._looks -= 1
        return "spawn" if self._looks >= 0 else None

    def note_stopper(self, name: str) -> None:
        self.stopper = name


def stopped(monkeypatch: pytest.MonkeyPatch, spawner: Starting, seconds: float) -> list[str | None]:
    """Stop it; return what was pending when JupyterHub's own code came to it."""
    seen: list[str | None] = []

    async def stop(_: object, user: Any, server_name: str = "") -> None:
        seen.append(spawner.pending)

    monkeypatch.setattr(UserServerAPIHandler, "stop_single_user", stop)
    monkeypatch.setattr(HardenedServerHandler, "current_user", SimpleNamespace(name="ada"))
    handler: Any = HardenedServerHandler.__new__(HardenedServerHandler)
    handler.application = SimpleNamespace(settings={"slow_stop_timeout": seconds})
    asyncio.run(handler.stop_single_user(SimpleNamespace(spawners={"": spawner})))
    return seen


def test_a_stop_waits_for_the_end_of_the_start_that_it_cancels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spawner = Starting(looks=3)
    assert stopped(monkeypatch, spawner, seconds=60) == [None]
    assert spawner.stopper == "ada"


def test_a_start_that_does_not_end_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(web.HTTPError) as told:
        stopped(monkeypatch, Starting(looks=10_000), seconds=0.2)
    assert told.value.status_code == 503


class Stopping:
    """The spawner of a session that is being stopped, once somebody has asked for it."""

    _log_name = "ada"
    _stop_future: asyncio.Future[None] | None = None
    _stop_pending = False

    def __init__(self) -> None:
        self.stoppers: list[str] = []

    @property
    def pending(self) -> str | None:
        return "stop" if self._stop_pending else None

    def note_stopper(self, name: str) -> None:
        self.stoppers.append(name)


def test_two_stops_at_once_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request looks whether the session runs before it stops it; JupyterHub's own code."""
    spawner, orders = Stopping(), []

    async def delete_user(*_: object) -> None:
        await asyncio.sleep(0.05)

    async def stop(server_name: str) -> None:
        orders.append(server_name)

    user = SimpleNamespace(name="ada", spawners={"": spawner}, stop=stop)
    settings = {
        "slow_stop_timeout": 5,
        "authenticator": SimpleNamespace(refresh_pre_stop=False),
        "proxy": SimpleNamespace(delete_user=delete_user),
        "eventlog": SimpleNamespace(emit=lambda **_: None),
    }

    def handler_of(name: str) -> Any:
        handler: Any = HardenedServerHandler.__new__(HardenedServerHandler)
        handler.application = SimpleNamespace(settings=settings)
        handler.current_user = SimpleNamespace(name=name)
        return handler

    async def both() -> None:
        handlers = [handler_of(name) for name in ("ada", "root")]
        await asyncio.gather(*(one.stop_single_user(user) for one in handlers))
        del user.spawners[""]
        # This one looked before the others had stopped it.
        assert await handlers[1].stop_single_user(user) is None

    monkeypatch.setattr(HardenedServerHandler, "current_user", None)
    asyncio.run(both())
    assert (orders, spawner.stoppers) == ([""], ["ada"])


def test_a_start_that_is_stopped_meanwhile_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(_: object, user_name: str, server_name: str = "") -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(UserServerAPIHandler, "post", post)
    handler: Any = HardenedServerHandler.__new__(HardenedServerHandler)
    with pytest.raises(web.HTTPError) as told:
        asyncio.run(handler.post("ada"))
    assert told.value.status_code == 409


@pytest.mark.parametrize(("pending", "status"), [("spawn", 202), (None, 201)])
def test_a_start_after_one_that_failed_says_whether_it_still_waits(
    monkeypatch: pytest.MonkeyPatch, pending: str | None, status: int
) -> None:
    handler: Any = HardenedServerHandler.__new__(HardenedServerHandler)
    said: list[int] = []

    async def post(_: object, user_name: str, server_name: str = "") -> None:
        handler.set_status(201)

    monkeypatch.setattr(UserServerAPIHandler, "post", post)
    handler.set_status = said.append
    user = SimpleNamespace(spawners={"": SimpleNamespace(pending=pending)})
    handler.find_user = {"ada": user}.get
    asyncio.run(handler.post("ada"))
    assert said[-1] == status


def test_a_status_of_thousands_of_digits_is_no_page() -> None:
    handler = object.__new__(HardenedErrorHandler)
    with pytest.raises(web.HTTPError) as refused:
        asyncio.run(handler.get("5" * 5000))
    assert refused.value.status_code == 404


@pytest.mark.parametrize(
    "moment",
    ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "2026-11-30T00:00:00+99:00"],
)
def test_a_moment_that_no_calendar_has_is_the_senders_fault(
    monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    handler: Any = HardenedActivityHandler.__new__(HardenedActivityHandler)
    handler.application = SimpleNamespace(settings={"db": None})
    handler.request = SimpleNamespace(path="/")
    handler.expanded_scopes = {"users:activity"}
    handler.parsed_scopes = {"users:activity": Scope.ALL}
    handler.find_user = lambda name: SimpleNamespace(name=name, last_activity=None)
    handler.get_json_body = lambda: {"last_activity": moment}
    monkeypatch.setattr(HardenedActivityHandler, "current_user", SimpleNamespace(name="ada"))
    with pytest.raises(web.HTTPError) as refused:
        handler.post("ada")
    assert refused.value.status_code == 400


@pytest.mark.parametrize(("offset", "is_read"), [("0", True), ("-50", True), ("9" * 30, False)])
def test_a_page_that_no_database_has_is_the_senders_fault(offset: str, is_read: bool) -> None:
    asked = {"offset": offset}
    handler: Any = SimpleNamespace(
        settings={"api_page_default_limit": 50, "api_page_max_limit": 200},
        accepts_pagination=True,
        get_argument=asked.get,
    )
    if is_read:
        assert _page(handler) == (abs(int(offset)), 50)
    else:
        with pytest.raises(web.HTTPError) as refused:
            _page(handler)
        assert refused.value.status_code == 400
