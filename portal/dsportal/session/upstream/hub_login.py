"""JupyterHub's login for a session, as its own single-user extension does it.

Only the order differs: JupyterHub's extension asks the hub for its version before it
listens; here the server listens first, and asks afterwards. So a hub that does not answer
then ends nothing.

Tried with JupyterHub 6.1.1.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from dsportal.lazy_imports import postponed
from dsportal.tls_context import reuse_contexts

with postponed():
    from jupyterhub.services import auth
    from jupyterhub.singleuser.extension import JupyterHubIdentityProvider, JupyterHubSingleUser

# How Jupyter Server's extensions change what JupyterLab's page is told.
PageConfigHook = Callable[[Any, dict[str, Any]], dict[str, Any]]

# Plugins of JupyterLab that would ask for what is not there, or open what is closed.
DISABLED_PLUGINS = (
    # News and updates come from the outer network, and sessions are updated by the admins.
    "@jupyterlab/apputils-extension:announcements",
    # Installing into the session's environment, which is read-only.
    "@jupyterlab/extensionmanager-extension",
)

log = logging.getLogger(__name__)

# The user's first page comes before the first report of activity.
_FIRST_REPORT_SECONDS = 10.0


class HubLogin(JupyterHubSingleUser):  # type: ignore[misc]
    """JupyterHub's extension, with what it asks of the hub put off until later."""

    # Listed by name in the server's settings, nothing else is looked for.
    load_other_extensions = False

    def initialize(self, args: Any = None) -> None:
        """Add the hub's login, and take from the page what a session has no use for."""
        reuse_contexts(auth)
        super().initialize(args)
        settings = self.serverapp.web_app.settings
        settings["page_config_hook"] = _without_plugins(settings["page_config_hook"])

    async def check_hub_version(self) -> None:
        """Leave the question for keep_activity_updated; the start does not wait for it."""

    async def keep_activity_updated(self) -> None:
        """Compare versions, then report activity as long as the server runs.

        JupyterHub's own ends a server whose hub does not answer at its start. Here somebody may
        work in it already, and versions are compared for a warning only.
        """
        await asyncio.sleep(_FIRST_REPORT_SECONDS)
        with contextlib.suppress(SystemExit):
            await super().check_hub_version()
        await super().keep_activity_updated()


def is_login_of_the_hub(identity_provider: Any) -> bool:
    """Whether a server really has JupyterHub's login.

    Jupyter's extensions may fail to load with a mere warning, which would leave a
    server with the login that is its default.
    """
    return isinstance(identity_provider, JupyterHubIdentityProvider)


def _without_plugins(hook: PageConfigHook) -> PageConfigHook:
    def page_config(handler: Any, config: dict[str, Any]) -> dict[str, Any]:
        config = hook(handler, config)
        config["disabledExtensions"] = [*config.get("disabledExtensions", []), *DISABLED_PLUGINS]
        return config

    return page_config


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": __name__, "app": HubLogin}]
