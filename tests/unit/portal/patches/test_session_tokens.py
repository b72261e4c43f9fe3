"""A session's own token is not revoked under it."""

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.apihandlers import default_handlers
from jupyterhub.apihandlers.users import UserTokenAPIHandler
from tornado.web import HTTPError

from dsportal.hub.patches import session_tokens
from dsportal.hub.patches.session_tokens import GuardedTokenHandler

STATES: tuple[dict[str, Any] | None, ...] = ({"token_id": 7}, {}, None, {"token_id": 0})
USER = SimpleNamespace(
    orm_spawners={f"{at}": SimpleNamespace(state=state) for at, state in enumerate(STATES)},
    spawners={
        "": SimpleNamespace(oauth_client_id="client of one", active=True),
        "two": SimpleNamespace(oauth_client_id="client of two", active=False),
    },
)
CLIENTS = {"a9": "client of one", "a10": "client of two"}


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Any:
    def find(_: object, user: object, token_id: str) -> Any:
        return SimpleNamespace(id=int(token_id[1:]), client_id=CLIENTS.get(token_id, "jupyterhub"))

    monkeypatch.setattr(UserTokenAPIHandler, "find_token_by_id", find)
    found: Any = GuardedTokenHandler.__new__(GuardedTokenHandler)
    found.request = SimpleNamespace(method="DELETE")
    return found


def test_the_tokens_of_sessions_are_known() -> None:
    assert session_tokens.session_tokens(USER) == {7}
    assert session_tokens.session_tokens(None) == frozenset()
    assert session_tokens.session_clients(USER) == {"client of one"}
    assert session_tokens.session_clients(None) == frozenset()


@pytest.mark.parametrize("token", ["a7", "a9"])
def test_a_sessions_token_is_not_revoked(handler: Any, token: str) -> None:
    with pytest.raises(HTTPError) as refused:
        handler.find_token_by_id(USER, token)
    assert refused.value.status_code == 409


@pytest.mark.parametrize("token", ["a8", "a10"])
def test_another_one_is(handler: Any, token: str) -> None:
    assert f"a{handler.find_token_by_id(USER, token).id}" == token


def test_a_sessions_token_can_be_looked_at(handler: Any) -> None:
    handler.request.method = "GET"
    assert handler.find_token_by_id(USER, "a7").id == 7


def test_it_takes_the_place_of_jupyterhubs() -> None:
    before = list(default_handlers)
    try:
        session_tokens.install()
        kinds = [one[1] for one in default_handlers]
        assert kinds.count(GuardedTokenHandler) == 1
        assert UserTokenAPIHandler not in kinds
    finally:
        default_handlers[:] = before
