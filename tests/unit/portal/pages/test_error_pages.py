"""What the hub's pages of errors say."""

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub._xsrf_utils import check_xsrf_cookie
from tornado.web import HTTPError

from tests.hub_pages import rendered


def refused(token: str | None) -> HTTPError:
    """Return what JupyterHub says to a form that was opened with another login."""
    handler: Any = SimpleNamespace(
        request=SimpleNamespace(headers={"Sec-Fetch-Mode": "navigate"}, method="POST"),
        get_argument=lambda name, default: token,
        xsrf_token=b"new",
    )
    with pytest.raises(HTTPError) as error:
        check_xsrf_cookie(handler)
    return error.value


def page_of(error: HTTPError) -> str:
    message = error.get_message()
    return rendered(
        "403.html", status_code=403, status_message=message, message=message, message_html=""
    )


@pytest.mark.parametrize("token", ["old", None])
def test_a_form_of_an_older_login_says_what_to_do(token: str | None) -> None:
    page = page_of(refused(token))
    assert "This page is out of date" in page
    assert "reload the page" in page
    assert "XSRF cookie" not in page
    assert "_xsrf" not in page.partition("<main")[2].partition("</main>")[0]


def test_any_other_refusal_says_its_own_words() -> None:
    page = page_of(HTTPError(403, "Not yours."))
    assert "Not yours." in page
    assert "out of date" not in page
