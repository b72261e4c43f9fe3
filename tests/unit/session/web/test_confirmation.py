"""From where a page is opened, as far as the request tells."""

from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from dsportal.session.web.confirmation import is_from_elsewhere

HOST = "hub.example:8443"


def handler(has_token: bool, headers: dict[str, str]) -> Any:
    line = RequestStartLine("GET", "/user/u/tools/x/", "HTTP/1.1")
    request = HTTPServerRequest(start_line=line, headers=HTTPHeaders({"Host": HOST} | headers))
    return SimpleNamespace(request=request, base_url="/user/u/", _token_authenticated=has_token)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Referer": f"https://{HOST}/user/u/lab"}, False),
        # With one host name for all: it leads on to wherever a link has said.
        ({"Sec-Fetch-Site": "same-origin", "Referer": f"https://{HOST}/hub/login"}, True),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        # Another user's host, where each has one.
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Referer": f"https://{HOST}/user/u/lab"}, True),
        # Without TLS a browser says nothing but this.
        ({"Referer": f"http://{HOST}/user/u/lab"}, False),
        ({"Referer": f"http://{HOST}/user/other/lab"}, True),
        ({"Referer": "http://elsewhere.example/user/u/"}, True),
        ({"Referer": "http://["}, True),
        ({"Host": "[", "Referer": "/user/u/lab"}, True),
        ({}, True),
    ],
)
def test_what_is_not_the_users_own_wish_comes_from_elsewhere(
    headers: dict[str, str], expected: bool
) -> None:
    assert is_from_elsewhere(handler(False, headers)) is expected


def test_a_program_with_a_token_is_the_users() -> None:
    assert not is_from_elsewhere(handler(True, {}))
