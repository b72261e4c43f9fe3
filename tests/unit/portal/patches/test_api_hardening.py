import json
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.apihandlers.users import UserServerAPIHandler
from tornado import web

from dsportal.hub.patches.api_hardening import HardenedServerHandler, _json_body


def read(body: object, handler: Any = None) -> Any:
    handler = handler or SimpleNamespace()
    handler.request = SimpleNamespace(body=json.dumps(body).encode())
    return _json_body(handler)


@pytest.mark.parametrize(
    "body",
    [
        {"note": 10**30},
        {"note": "\0"},
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


def test_a_sessions_options_are_checked_by_those_who_know_them() -> None:
    handler = HardenedServerHandler.__new__(HardenedServerHandler)
    assert isinstance(handler, UserServerAPIHandler)
    assert read({"name": 1, "users": 2}, handler) == {"name": 1, "users": 2}
