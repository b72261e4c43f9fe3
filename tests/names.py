"""Host names for this process, where a site has a name service."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def resolved(domain: str, address: str) -> Iterator[None]:
    """Let a name and all names below it be one address."""
    ask = socket.getaddrinfo

    def answer(host: Any, *arguments: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        is_ours = name == domain or name.endswith(f".{domain}")
        return ask(address if is_ours else host, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", answer)
        yield
