import pytest
from tornado.httputil import HTTPHeaders

from portal.session.proxied import guarded, without_secrets


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
    "ours", ["_xsrf=1", "jupyterhub-session-id=1", "__Host-jupyterhub-user-a=2"]
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
