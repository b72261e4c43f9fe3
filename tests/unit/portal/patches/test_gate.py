"""The hub's side of the gate before sessions that share one host name."""

import asyncio
import base64
import hashlib
import hmac
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from jupyterhub.handlers import BaseHandler, default_handlers
from tornado.web import HTTPError

from dsportal.hub.patches.gate import Gate, GateHandler, cookie_name, cookie_value, owner

TOKEN = "what hub and proxy share"


class Handler:
    """Stands in for a request at the hub."""

    def __init__(self, user: str | None, address: str, mode: str | None = "navigate") -> None:
        self.current_user = None if user is None else SimpleNamespace(name=user)
        self.address = address
        headers = {} if mode is None else {"Sec-Fetch-Mode": mode}
        self.request = SimpleNamespace(headers=headers, uri=f"/portal/gate?next={address}")
        self.settings = {"login_url": "/hub/login"}
        self.gate = Gate(TOKEN, is_encrypted=True, days=2)
        self.cookies: dict[str, tuple[str, dict[str, Any]]] = {}
        self.sent_to: list[str] = []

    def get_argument(self, name: str, default: str) -> str:
        return {"next": self.address}.get(name, default)

    def _validate_next_url(self, address: str) -> str:
        urlsplit(address)
        return address

    def redirect(self, address: str) -> None:
        self.sent_to.append(address)

    def _set_cookie(self, name: str, value: str, **how: Any) -> None:
        self.cookies[name] = value, how

    def clear_cookie(self, name: str, **how: Any) -> None:
        self.cookies[name] = "", how


def asked(handler: Handler) -> Handler:
    get: Any = GateHandler.get
    asyncio.run(get(handler))
    return handler


def test_a_user_is_sent_on_to_the_own_session_with_a_cookie() -> None:
    handler = asked(Handler("ada", "/user/ada/lab?x=1"))
    assert handler.sent_to == ["/user/ada/lab?x=1"]
    value, how = handler.cookies["__Host-portal-gate"]
    assert how == {"encrypted": False, "path": "/", "expires_days": 2}
    expires = int(value.partition(".")[0])
    assert abs(expires - time.time() - 2 * 86400) < 60


@pytest.mark.parametrize(
    "address", ["/user/bob/lab", "/user/adax/", "/hub/home", "", "/x/user/ada/", "//user/ada/"]
)
@pytest.mark.parametrize("mode", ["navigate", "cors", None])
def test_nobody_is_sent_anywhere_else(address: str, mode: str | None) -> None:
    handler = Handler("ada", address, mode)
    with pytest.raises(HTTPError) as raised:
        asked(handler)
    assert raised.value.status_code == 403
    assert (handler.cookies, handler.sent_to) == ({}, [])


@pytest.mark.parametrize("mode", ["navigate", None])
def test_a_page_without_a_login_gets_one_first(mode: str | None) -> None:
    handler = asked(Handler(None, "/user/ada/", mode))
    (address,) = handler.sent_to
    assert address == "/hub/login?next=%2Fportal%2Fgate%3Fnext%3D%2Fuser%2Fada%2F"
    assert handler.cookies == {}


def test_what_cannot_be_read_as_an_address_is_refused() -> None:
    with pytest.raises(HTTPError) as refused:
        asked(Handler("ada", "//["))
    assert refused.value.status_code == 400


def test_what_is_no_page_is_refused_without_one() -> None:
    with pytest.raises(HTTPError) as raised:
        asked(Handler(None, "/user/ada/", "cors"))
    assert raised.value.status_code == 403


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/user/ada/", "ada"),
        ("/user/ada", "ada"),
        ("/user/ada?x=/user/bob/", "ada"),
        ("/user/a%40b/lab", "a@b"),
        ("/user//lab", None),
        ("/hub/user/ada/", None),
        ("", None),
    ],
)
def test_whose_session_an_address_is_in(address: str, name: str | None) -> None:
    assert owner(address) == name


def test_the_cookie_says_who_until_when_and_is_signed() -> None:
    value = cookie_value(TOKEN, "a@b", 1234)
    expires, user, signature = value.split(".")
    assert expires == "1234"
    assert base64.urlsafe_b64decode(user + "==") == b"a@b"
    key = hmac.digest(TOKEN.encode(), b"portal gate", hashlib.sha256)
    expected = hmac.digest(key, f"{expires}.{user}".encode(), hashlib.sha256)
    assert base64.urlsafe_b64decode(signature + "=") == expected
    assert cookie_value("another", "a@b", 1234) != value


def test_only_an_encrypted_cookie_has_the_name_that_nobody_can_overlay() -> None:
    assert cookie_name(is_encrypted=True) == "__Host-portal-gate"
    assert cookie_name(is_encrypted=False) == "portal-gate"


def test_each_login_gives_the_cookie_and_each_logout_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[object] = []
    monkeypatch.setattr(
        "dsportal.hub.patches.gate._set_login_cookie", lambda *given: done.append(given[1].name)
    )
    monkeypatch.setattr(
        "dsportal.hub.patches.gate._clear_login_cookie", lambda *given: done.append("out")
    )
    for name in ("set_login_cookie", "clear_login_cookie"):
        monkeypatch.setattr(BaseHandler, name, getattr(BaseHandler, name))
    monkeypatch.setattr(
        "dsportal.hub.patches.gate.default_handlers", handlers := list(default_handlers)
    )
    gate = Gate(TOKEN, is_encrypted=False, days=1)
    gate.install()
    gate.install()
    assert [one[1] for one in handlers].count(GateHandler) == 1
    handler = Handler("ada", "")
    BaseHandler.set_login_cookie(handler, SimpleNamespace(name="ada"))
    assert handler.cookies["portal-gate"][0] != ""
    BaseHandler.clear_login_cookie(handler)
    assert handler.cookies["portal-gate"] == ("", {"path": "/", "secure": False})
    assert set(done) == {"ada", "out"}
