"""Where a request comes from, whatever its sender writes into it."""

import pytest

from dsportal.authentication.origin import household, origin

PROXY = HERE = "127.0.0.1"


@pytest.mark.parametrize(
    ("peer", "here", "forwarded", "expected"),
    [
        (PROXY, HERE, "192.0.2.7", "192.0.2.7"),
        (PROXY, HERE, "10.0.0.1,192.0.2.7", "192.0.2.7"),
        (PROXY, HERE, "127.0.0.1, ::ffff:192.0.2.7", "192.0.2.7"),
        (PROXY, HERE, "10.0.0.1,", "unknown"),
        (PROXY, HERE, None, "127.0.0.1"),
        ("10.0.0.5", "10.0.0.5", "192.0.2.7", "192.0.2.7"),
        # From another machine, past the proxy: nothing that it says counts.
        ("192.0.2.66", "10.0.0.5", "192.0.2.7", "192.0.2.66"),
        ("2001:db8::1%eth0", "::1", "192.0.2.7", "2001:db8::1"),
    ],
)
def test_only_what_our_own_proxy_saw_counts(
    peer: str, here: str, forwarded: str | None, expected: str
) -> None:
    assert origin(peer, here, forwarded) == expected


def test_a_sites_own_proxies_are_looked_through() -> None:
    trusted = frozenset({"192.0.2.80"})
    assert origin(PROXY, HERE, "192.0.2.7, 192.0.2.80", trusted) == "192.0.2.7"
    assert origin(PROXY, HERE, "10.0.0.1, 192.0.2.7, 192.0.2.80", trusted) == "192.0.2.7"
    assert origin(PROXY, HERE, "192.0.2.80", trusted) == PROXY


def test_a_network_of_ipv6_is_one_place() -> None:
    assert household("2001:db8:1:2::3") == household("2001:db8:1:2:ffff::4")
    assert household("2001:db8:1:3::3") != household("2001:db8:1:2::3")
    assert household("192.0.2.7") == "192.0.2.7"
