"""Decision whether to stop a server: the hook of jupyterhub-idle-culler.

Whatever JupyterHub takes for the server's last activity is left aside. The hub has marked those
that said themselves that they are over their limit. For these the hub is asked once more, which
tells whether the user has come back meanwhile, and makes it remember the reason. Nothing here
speaks to a session, so none can hold this up.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from dsportal.hub import tls
from dsportal.settings.hub import HubSettings
from jupyterhub_gpu_slurm.hub_rest import HubRest

_PATH = "/gpu-session/unused"
_SECONDS = 20.0


@dataclass(frozen=True)
class CullDecision:
    """Asks the hub. Raises tornado's `HTTPClientError`, and `OSError`; the culler logs them."""

    url: str
    """``JUPYTERHUB_API_URL``."""
    token: str
    hub: HubSettings | None = None
    """The portal's settings, where the hub may speak TLS within; ``None``: a hub of JupyterHub's
    own. The culler copies this object, which an SSLContext does not bear."""

    async def decide(self, *, server: Mapping[str, Any], **_: object) -> bool:
        """Return whether to end the server now."""
        if not is_marked(server):
            return False
        context = None if self.hub is None else tls.client_context(self.hub)
        hub = HubRest(self.url, self.token, _SECONDS, context)
        return json.loads(await hub.fetch("POST", path_of(server), body="")).get("end") is True


def is_marked(server: Mapping[str, Any]) -> bool:
    """Say whether the hub marked a server of its API's list as unused."""
    return (server.get("state") or {}).get("is_unused") is True


def path_of(server: Mapping[str, Any]) -> str:
    """Return the address of the question, below the hub's API."""
    username, _, name = str(server["full_name"]).partition("/")
    return f"{_PATH}/{quote(username, safe='')}/{quote(name, safe='')}"
