from types import SimpleNamespace

from tornado.httputil import HTTPHeaders

from dsportal.session.tensorboard.proxy import BoardProxy


def test_what_lets_the_user_in_is_not_handed_on() -> None:
    handler = object.__new__(BoardProxy)
    handler.request = SimpleNamespace(
        headers=HTTPHeaders(
            {
                "Authorization": "token secret",
                "Cookie": "jupyterhub-user-you=secret; _xsrf=secret",
                "X-XSRFToken": "secret",
                "Accept-Encoding": "gzip",
            }
        ),
    )
    assert dict(handler.proxy_request_headers()) == {"Accept-Encoding": "gzip"}
