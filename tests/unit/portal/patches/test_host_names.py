"""On which host the hub answers where each user has one, and which host a user has."""

import string
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from jupyterhub.handlers import BaseHandler
from jupyterhub.utils import subdomain_hook_idna

from dsportal.hub import configuration
from dsportal.hub.patches import host_names
from dsportal.hub.patches.host_names import OwnHost
from dsportal.settings.whole import Settings

OWN = OwnHost("https://portal.example.org:8000")
LABEL = set(string.ascii_lowercase + string.digits + "-")
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)
NAMES |= st.from_regex(r"[A-Za-z0-9_.@-]{1,70}", fullmatch=True)
NAMES |= st.sampled_from(["cluster--service", "xn--a", "a-", "-a", "a_b", "a.b", "1", "café"])


@pytest.mark.parametrize(
    ("host", "is_below"),
    [
        ("portal.example.org:8000", False),
        ("portal.example.org", False),
        ("10.0.0.1:8000", False),
        ("[::1]:8000", False),
        ("notportal.example.org", False),
        ("ada.portal.example.org:8000", True),
        ("ADA.Portal.Example.ORG.:8000", True),
        ("a.b.portal.example.org", True),
        ("cluster--service.portal.example.org:8000", True),
        ("", False),
        ("[", False),
    ],
)
def test_hosts_below_the_portals_are_not_the_hubs(host: str, is_below: bool) -> None:
    assert OWN.is_below(host) is is_below


@pytest.mark.parametrize(
    ("method", "host", "origin", "is_refused"),
    [
        ("POST", "portal.example.org:8000", "https://portal.example.org:8000", False),
        ("POST", "10.0.0.1:8081", "https://portal.example.org:8000", False),
        ("POST", "10.0.0.1:8000", "https://10.0.0.1:8000", False),
        ("POST", "portal.example.org:8000", None, False),
        ("GET", "portal.example.org:8000", "https://ada.portal.example.org:8000", False),
        ("POST", "portal.example.org:8000", "https://ada.portal.example.org:8000", True),
        ("DELETE", "portal.example.org:8000", "https://ada.portal.example.org:8000", True),
        ("POST", "portal.example.org:8000", "https://portal.example.org:9000", True),
        ("POST", "portal.example.org:8000", "null", True),
        ("POST", "portal.example.org:8000", "", True),
    ],
)
def test_what_a_page_of_another_host_sends_is_known(
    method: str, host: str, origin: str | None, is_refused: bool
) -> None:
    assert OWN.is_of_another_page(method, host, origin) is is_refused


def test_without_hosts_for_users_the_hub_answers_everywhere(c: Any, settings: Settings) -> None:
    host_names.install("https://portal.example.org")
    assert BaseHandler.prepare is not host_names._prepare
    configuration.configure_encryption(c, settings)
    assert BaseHandler.prepare is host_names._prepare


def host_of(name: str, kind: str = "user") -> str:
    return host_names.host_of(name, "portal.example.org", kind)


def test_names_that_dns_takes_are_the_hosts(c: Any, settings: Settings) -> None:
    with_names = settings.hub.model_copy(update={"subdomain_host": "https://portal.example.org"})
    configuration.configure_encryption(c, settings.model_copy(update={"hub": with_names}))
    host_names.install("")
    assert c.JupyterHub.subdomain_hook is host_names.host_of
    assert host_of("ada-l") == "ada-l.portal.example.org"
    assert host_of("josé") == "xn--jos-dma.portal.example.org"
    assert host_of("cluster", "service") == "cluster--service.portal.example.org"
    assert len(host_of("ada.lovelace")) > 40


def test_a_name_that_is_chosen_to_meet_anothers_mark_does_not_meet_it() -> None:
    """JupyterHub's host is the same for these two, found in a second."""
    one, other = "adalovelace.9968", "adalovelace.18906"
    assert subdomain_hook_idna(one, "x", "user") == subdomain_hook_idna(other, "x", "user")
    assert host_of(one) != host_of(other)


@hypothesis.given(NAMES)
def test_each_user_has_a_host_of_one_label_that_dns_takes(name: str) -> None:
    label, _, rest = host_of(name.lower()).partition(".")
    assert rest == "portal.example.org"
    assert set(label) <= LABEL, label
    assert 0 < len(label) <= 63
    assert not label.startswith("-")
    assert not label.endswith("-")


@hypothesis.given(NAMES, NAMES)
def test_no_two_users_have_one_host(one: str, other: str) -> None:
    one, other = one.lower(), other.lower()
    hypothesis.assume(one != other)
    assert host_of(one) != host_of(other)


@hypothesis.given(NAMES)
def test_no_user_has_the_host_of_a_service(name: str) -> None:
    assert host_of(name.lower()) != host_of("cluster", "service")
