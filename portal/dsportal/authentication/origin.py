"""The client address of a login request, which its sender cannot choose.

JupyterHub's own ``remote_ip`` believes a header ``X-Real-Ip`` that any browser may send.
"""

import ipaddress
from collections.abc import Collection


def origin(peer: str, here: str, forwarded: str | None, proxies: Collection[str] = ()) -> str:
    """Give the address of who speaks to the portal.

    ``peer`` and ``here`` are the two ends of the connection to the hub. Only a peer on the hub's
    own machine, which is where the portal's proxy runs, is believed what it forwards, and of that
    only the last address: the proxy appended it. ``proxies`` are further ones before it that a
    site trusts (``JupyterHub.trusted_downstream_ips``).

    >>> origin("127.0.0.1", "127.0.0.1", "10.0.0.1, 192.0.2.7")
    '192.0.2.7'
    >>> origin("192.0.2.7", "10.0.0.5", "10.0.0.1")
    '192.0.2.7'
    """
    if forwarded is None or plain(peer) != plain(here):
        return plain(peer)
    for candidate in reversed(forwarded.split(",")):
        address = plain(candidate.strip())
        if address not in proxies:
            return address
    return plain(peer)


def plain(text: str) -> str:
    """Write an address in one way; what is none is called ``unknown``.

    >>> plain("::ffff:192.0.2.7")
    '192.0.2.7'
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "unknown"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def household(address: str) -> str:
    """Give what is counted as one place: of IPv6 a subscriber's network, which is 64 bits wide.

    >>> household("2001:db8::1:2:3:4")
    '2001:db8::/64'
    """
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/64", strict=False))
