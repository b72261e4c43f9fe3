"""Where a link may lead through the hub."""

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.handlers import BaseHandler

from dsportal.hub.patches import next_url
from dsportal.hub.patches.next_url import is_allowed

OWN = [
    "/user/ada/lab",
    "/user/ada",
    "/user/ada/lab/tree/user/bob?x=1#y",
    "/hub/user/ada/lab",
    "/hub/home",
    "/hub/spawn/bob",
    "/hub/user-redirect/lab/tree/a.ipynb",
    "/hub/api/oauth2/authorize?client_id=jupyterhub-user-bob&redirect_uri=%2Fuser%2Fbob%2Fx",
    "/services/cluster/",
    "/",
    "",
]
ANOTHERS = [
    "/user/bob/lab",
    "/user/bob",
    "/user/ada2/",
    "/user/ADA/",
    "/user/",
    "/user",
    "/hub/user/bob/lab",
    "//user/bob/lab",
    "/hub//user/bob",
    "/./user/bob",
    "/user%2fbob/lab",
    "/%75ser/bob/lab",
    "/%2575ser/bob/lab",
    "/user/%62ob/lab",
    "/hub/%2e%2e/user/bob/",
    "/hub/../user/bob/",
    "/user/ada/../bob/",
    "/user/ada/%2e%2e/bob/",
    "/user/ada/%252e%252e/bob/",
    "/hub/user-redirect/%252e%252e/bob/",
    "/user/ada/..%5cbob/",
    "/%5Cuser%5Cbob/",
    "\\user\\bob",
    "/us\ter/bob",
    "/us\ner/bob",
    "/hub/home\n/user/bob",
    f"/%{'25' * 9}75ser/bob",
]


@pytest.mark.parametrize("target", OWN)
def test_own_pages_the_hub_and_services_follow(target: str) -> None:
    assert is_allowed(target, "ada")


@pytest.mark.parametrize("target", ANOTHERS)
def test_no_other_users_pages_follow_however_they_are_written(target: str) -> None:
    assert not is_allowed(target, "ada")


def test_before_a_login_no_users_pages_follow() -> None:
    assert not is_allowed("/user/ada/lab", "")
    assert not is_allowed("/user//lab", "")
    assert is_allowed("/hub/home", "")


def test_a_portal_below_a_path_is_read_as_such() -> None:
    assert is_allowed("/here/user/ada/lab", "ada", "/here/")
    assert not is_allowed("/here/user/bob/lab", "ada", "/here/")
    assert not is_allowed("/here/hub/user/bob/lab", "ada", "/here/")


@pytest.mark.parametrize("asked", ["http://[", "//[", "//a]b/hub/home"])
def test_what_is_no_address_is_not_followed(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"next": [asked.encode()]}
    request = SimpleNamespace(arguments=arguments, protocol="http", host="hub.test", headers={})
    handler: Any = SimpleNamespace(
        request=request,
        current_user=None,
        base_url="/",
        settings={},
        subdomain_host="",
        domain="hub.test",
        get_argument=lambda name, default: arguments.get(name, [b""])[0].decode() or default,
        log=SimpleNamespace(warning=lambda *_: None),
    )
    handler._validate_next_url = lambda url: BaseHandler._validate_next_url(handler, url)
    monkeypatch.setattr(next_url, "_get_next_url", lambda *_: "/hub/home")
    assert next_url._next_url(handler) == "/hub/home"
    assert arguments == {}
