"""Addresses that anybody may have written: a malformed one is of nowhere, and no error."""

from urllib.parse import SplitResult, urlsplit


def parts_of(address: str) -> SplitResult:
    """Split an address as ``urlsplit`` does; one that it refuses has no parts."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")
