"""Services that the hub starts: polled more often, and with TLS that works.

Tried with JupyterHub 6.1.1. It looks every 30 s whether a service has ended, and that cannot be
set. It hands `start_service` the context that the hub listens with, which cannot connect to
anything; without one it makes the right one. And it would make an RSA key for each service at each
start, while nothing else runs, and write all of them into one file.
"""

from pathlib import Path
from typing import Any

from jupyterhub.app import JupyterHub
from jupyterhub.services import service
from traitlets import Integer

from dsportal.hub.tls import pair, trusted

POLL_SECONDS = 2
"""How long a service that has ended may go unnoticed."""


class PolledService(service._ServiceSpawner):  # type: ignore[misc]  # untyped
    """A service's process, as JupyterHub starts it and starts it again."""

    poll_interval = Integer(POLL_SECONDS)


def look_after_services() -> None:
    """Let the hub start a service again soon after it has ended."""
    service._ServiceSpawner = PolledService


def use_internal_tls() -> None:
    """Let the hub look for its services as a client does, and lend them its own certificate."""
    JupyterHub.start_service = _start_service
    PolledService.create_certs = _lent


async def _start_service(self: Any, name: str, service: Any, _context: Any = None) -> Any:
    return await _as_released(self, name, service)


async def _lent(self: Any) -> dict[str, str]:
    folder = Path(self.internal_certs_location)
    certificate, key = pair(folder)
    return {"certfile": str(certificate), "keyfile": str(key), "cafile": str(trusted(folder))}


_as_released = JupyterHub.start_service
