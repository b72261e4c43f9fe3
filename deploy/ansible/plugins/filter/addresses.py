"""Addresses before a port or a path: as `ansible.utils.ipwrap`, a collection that is not here."""

from collections.abc import Callable


def ipwrap(address: str) -> str:
    """Put an IPv6 address in brackets; names and IPv4 addresses stay as they are."""
    return f"[{address}]" if ":" in address and not address.startswith("[") else address


class FilterModule:
    """Ansible looks for a class of this name."""

    def filters(self) -> dict[str, Callable[[str], str]]:
        """Return the filters by their names."""
        return {"ipwrap": ipwrap}
