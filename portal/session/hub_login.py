"""Who is let in: JupyterHub's login, as its own single-user extension does it.

Only the order differs: JupyterHub's extension asks the hub for its version before it
listens; here the server listens first, and asks afterwards.
"""

import asyncio
import logging
from typing import Any

from portal.session.slow_imports import postponed

with postponed():
    from jupyterhub.singleuser.extension import JupyterHubIdentityProvider, JupyterHubSingleUser

log = logging.getLogger(__name__)

# The user's first page comes before the first report of activity.
_FIRST_REPORT_SECONDS = 10.0


class HubLogin(JupyterHubSingleUser):  # type: ignore[misc]
    """JupyterHub's extension, with what it asks of the hub put off until later."""

    # Listed by name in the server's settings, nothing else is looked for.
    load_other_extensions = False

    async def check_hub_version(self) -> None:
        """Leave the question for keep_activity_updated; the start does not wait for it."""

    async def keep_activity_updated(self) -> None:
        """Compare versions, then report activity as long as the server runs."""
        await asyncio.sleep(_FIRST_REPORT_SECONDS)
        await super().check_hub_version()
        await super().keep_activity_updated()


def is_login_of_the_hub(identity_provider: Any) -> bool:
    """Whether a server really has JupyterHub's login.

    Jupyter's extensions may fail to load with a mere warning, which would leave a
    server with the login that is its default.
    """
    return isinstance(identity_provider, JupyterHubIdentityProvider)


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": __name__, "app": HubLogin}]
