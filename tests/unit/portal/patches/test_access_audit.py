"""Who enters another user's session is written down, however the request is written."""

import logging
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from jupyterhub.apihandlers.auth import OAuthAuthorizeHandler
from tornado import web
from tornado.escape import parse_qs_bytes
from tornado.httputil import HTTPHeaders, parse_body_arguments

from dsportal.hub.patches.access_audit import AuditedAuthorizeHandler

BOBS, OWN = "jupyterhub-user-bob", "jupyterhub-user-ada"
FORM = "application/x-www-form-urlencoded"
PARTS = (
    b'--x\r\nContent-Disposition: form-data; name="client_id"\r\n\r\n'
    + OWN.encode()
    + b"\r\n--x--\r\n"
)
REQUESTS = {
    "a form": ("", FORM, urlencode({"client_id": BOBS}).encode()),
    "in the address": (f"client_id={BOBS}", FORM, b"scopes=x"),
    "a text, which Tornado does not read": ("", "text/plain", f"client_id={BOBS}".encode()),
    "parts, which OAuth does not read": (
        f"client_id={BOBS}",
        "multipart/form-data; boundary=x",
        PARTS,
    ),
}


def handler(query: str, kind: str, body: bytes, *, may_enter: bool) -> Any:
    """Return one for a request of ada's."""
    made: Any = AuditedAuthorizeHandler.__new__(AuditedAuthorizeHandler)
    headers = HTTPHeaders({"Content-Type": kind})
    arguments = parse_qs_bytes(query, keep_blank_values=True)
    parse_body_arguments(kind, body, arguments, {}, headers)
    made.request = SimpleNamespace(
        uri=f"/hub/api/oauth2/authorize?{query}",
        method="POST",
        body=body,
        headers=headers,
        arguments=arguments,
    )
    made._jupyterhub_user = SimpleNamespace(name="ada")

    def client(client_id: str) -> Any:
        owner = client_id.removeprefix("jupyterhub-user-")
        user = SimpleNamespace(name=owner)
        spawner = SimpleNamespace(name="", user=user)
        return SimpleNamespace(spawner=spawner) if owner in ("ada", "bob") else None

    provider = SimpleNamespace(fetch_by_client_id=client)
    made.application = SimpleNamespace(
        settings={"oauth_provider": provider, "log": logging.getLogger("audit")}
    )
    made.get_scope_filter = lambda scope: lambda *_, **__: may_enter
    return made


@pytest.fixture(autouse=True)
def given(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what JupyterHub's own code has been handed."""
    found: list[object] = []
    monkeypatch.setattr(OAuthAuthorizeHandler, "post", lambda asked: found.append(asked))
    return found


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_who_may_enter_is_written_down(
    request_of: tuple[str, str, bytes], given: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    handler(*request_of, may_enter=True).post()
    assert len(given) == 1
    assert "ada enters the session '' of bob" in caplog.text


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_who_may_not_is_refused(request_of: tuple[str, str, bytes], given: list[object]) -> None:
    with pytest.raises(web.HTTPError) as refused:
        handler(*request_of, may_enter=False).post()
    assert (refused.value.status_code, given) == (403, [])


def test_ones_own_session_is_nobodys_affair(
    given: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    handler("", FORM, f"client_id={OWN}".encode(), may_enter=False).post()
    assert (len(given), caplog.text) == (1, "")
