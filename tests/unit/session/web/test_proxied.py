import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from dsportal.session.web.proxied import guarded, is_forged, without_secrets


def test_what_lets_in_at_the_hub_is_not_handed_on() -> None:
    headers = HTTPHeaders(
        {
            "Authorization": "token of-the-hub",
            "X-Xsrftoken": "x",
            "Accept": "text/html",
            "Cookie": 'jupyterhub-user-u="2|1:0"; jupyterhub-session-id=1; _xsrf=2; '
            "jupyterhub-hub-login=3; username-localhost-8888=4",
        }
    )
    assert dict(without_secrets(headers)) == {"Accept": "text/html"}
    assert "Authorization" in headers


@pytest.mark.parametrize(
    "ours", ["_xsrf=1", "jupyterhub-session-id=1", "__Host-jupyterhub-user-a=2", "portal-gate=3"]
)
def test_cookies_of_the_proxied_server_itself_are_kept(ours: str) -> None:
    headers = HTTPHeaders()
    headers.add("Cookie", f"theme=dark; {ours};session=a=b")
    headers.add("Cookie", f"{ours}; third=1")
    assert without_secrets(headers)["Cookie"] == "theme=dark; session=a=b; third=1"


def test_a_handler_of_the_proxy_hands_on_what_is_left() -> None:
    class Handler:
        def proxy_request_headers(self) -> HTTPHeaders:
            return HTTPHeaders({"Authorization": "token secret", "Accept": "*/*"})

    assert dict(guarded(Handler)().proxy_request_headers()) == {"Accept": "*/*"}


OWN = "https://hub.example:8443/user/u/"


@pytest.mark.parametrize(
    ("method", "page", "forged"),
    [
        ("POST", f"{OWN}tools/x/", False),
        ("GET", None, False),
        ("GET", "https://hub.example:8443/user/other/", False),
        # A proxy in front may leave the port out of the host.
        ("POST", "https://hub.example/user/u/tensorboard/", False),
        ("POST", "https://hub.example:8443/user/other/tools/x/", True),
        ("POST", "https://hub.example:8443/user/u2/", True),
        ("DELETE", "https://hub.example:8443/hub/home", True),
        ("PUT", "https://elsewhere.example/user/u/", True),
        ("POST", None, True),
    ],
)
def test_a_change_that_another_page_asks_for_is_forged(
    method: str, page: str | None, forged: bool
) -> None:
    headers = HTTPHeaders({"Host": "hub.example:8443"})
    if page is not None:
        headers["Referer"] = page
    line = RequestStartLine(method, "/user/u/tools/x/", "HTTP/1.1")
    request = HTTPServerRequest(start_line=line, headers=headers)
    assert is_forged(request, "/user/u/") is forged
