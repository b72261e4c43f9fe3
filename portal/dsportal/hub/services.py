"""The hub's services: settings in, JupyterHub's configuration out, as in `configuration`.

Each is a process of its own with the few rights that it needs; Prometheus is a service in the hub's
eyes only, which comes from outside with a token.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from traitlets.config import Config

from dsportal.hub import process as hub_process
from dsportal.settings.whole import Settings
from dsportal.settings_file import VARIABLE, SettingsError, file_of

RECONCILER = "session-reconciler"
CULLER = "idle-culler"
PROMETHEUS = "prometheus"
CLUSTER = "cluster"

_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")


def configure_reconciler(c: Config, environment: Mapping[str, str]) -> None:
    """Set the service that looks for lost sessions, and the few rights that it needs."""
    scopes = ["list:users", "read:servers", "admin:server_state", "start:servers"]
    add_service(c, RECONCILER, "dsportal.reconciler", scopes, environment)


def configure_culler(c: Config, settings: Settings, environment: Mapping[str, str]) -> None:
    """Set how long a session may be unused, and the service that ends those beyond it."""
    idle = settings.idle
    spawner = c.GpuSlurmSpawner
    spawner.idle_minutes = idle.minutes
    spawner.group_idle_minutes = {name: group.minutes for name, group in idle.groups.items()}
    spawner.idle_warning_minutes = idle.warning_minutes
    # The state has the hub's mark of the sessions that nobody uses.
    scopes = ["list:users", "read:servers", "admin:server_state", "delete:servers"]
    add_service(c, CULLER, "dsportal.culler", scopes, environment)


def configure_cluster_page(c: Config, settings: Settings, environment: Mapping[str, str]) -> None:
    """Set the service that shows the cluster, and who may look: every user, and every session."""
    # What an admin does there is done by the admin's own right: a login lends this one only.
    lent = ["delete:servers"]
    # JupyterHub 6.1.1 tells it to sessions, and not to services.
    variables = {"JUPYTERHUB_COOKIE_HOST_PREFIX_ENABLED": f"{settings.hub.has_host_cookies:d}"}
    login = {"oauth_no_confirm": True, "oauth_client_allowed_scopes": lent, "display": True}
    scopes = ["list:users", "read:users:groups", "read:servers", "admin:server_state"]
    # JupyterHub ends when a service does not answer in time, and a busy machine starts it slowly.
    page = {"url": settings.hub.internal(settings.cluster.url), "timeout": 60, **login}
    add_service(c, CLUSTER, "dsportal.cluster", scopes, environment, page, variables)
    access = f"access:services!service={CLUSTER}"
    c.JupyterHub.load_roles.extend(
        [
            {"name": "user", "scopes": ["self", access]},
            # What a session's token is for: to say that it is used, and to ask for the cluster's
            # jobs. JupyterHub's own role would let whoever has it into the session, too.
            {"name": "server", "scopes": ["users:activity!user", access]},
        ]
    )


def configure_monitoring(c: Config, settings: Settings) -> None:
    """Set what Prometheus may read, and with which token."""
    monitoring = settings.monitoring
    c.GpuSlurmSpawner.idle_gpu_minutes = monitoring.idle_gpu_minutes
    if not monitoring.token_file:
        return
    token = read_token("monitoring.token_file", Path(monitoring.token_file))
    c.JupyterHub.services.append({"name": PROMETHEUS, "api_token": token})
    c.JupyterHub.load_roles.append(
        {"name": PROMETHEUS, "services": [PROMETHEUS], "scopes": ["read:metrics"]}
    )


def read_token(key: str, file: Path) -> str:
    """Return the token in a file."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{key}: {file} cannot be read: {error}") from error
    if not _TOKEN.fullmatch(token):
        raise SettingsError(
            f"{key}: {file}: a token has at least 32 letters, digits, hyphens and underscores"
        )
    return token


def add_service(
    c: Config,
    name: str,
    module: str,
    scopes: list[str],
    environment: Mapping[str, str],
    page: Mapping[str, object] = MappingProxyType({}),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Let the hub run one of our modules as a service of its own, with these rights."""
    settings = {VARIABLE: str(file_of(environment))}
    c.JupyterHub.services.append(
        {
            "name": name,
            "command": [sys.executable, "-I", "-m", module],
            "environment": {**settings, **variables, **hub_process.named()},
            **page,
        }
    )
    c.JupyterHub.load_roles.append({"name": name, "services": [name], "scopes": scopes})
