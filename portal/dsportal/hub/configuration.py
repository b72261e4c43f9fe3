"""The hub's configuration: settings in, traits out.

One function per concern, each of them onto a traitlets Config and nothing else, so that every one
can be tried without a hub. ``jupyterhub_config.py`` calls ``configure_from_file``.
"""

import logging
import os
import runpy
import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from traitlets.config import Config

from dsportal.containers.server import holds_server
from dsportal.hub import database, internal_tls
from dsportal.hub.access import configure_access
from dsportal.hub.breaker import Breaker, room_check
from dsportal.hub.leader import Leadership
from dsportal.hub.logins import configure_directory
from dsportal.hub.pages import (
    documentation,
    home,
    live_use,
    logout,
    session_status,
    ssh_page,
    start_again,
    stylesheet,
)
from dsportal.hub.patches import (
    client_secrets,
    connection_limits,
    database_outage,
    garbage,
    host_names,
    managed_services,
    request_log,
    second_start,
    session_tokens,
    shared_tls,
    user_lookups,
)
from dsportal.hub.patches.gate import Gate
from dsportal.hub.proxy import FollowedProxy
from dsportal.hub.services import (
    configure_cluster_page,
    configure_culler,
    configure_monitoring,
    configure_reconciler,
)
from dsportal.hub.session_config import session_images, session_input
from dsportal.look import WEB, appearance
from dsportal.settings.limits import UserLimits
from dsportal.settings.whole import Settings
from dsportal.settings_file import SettingsError, file_of, load
from dsportal.timers import use_monotonic_clock
from dsportal.usage.record import UsageRecord
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.launcher_files import launcher_cmd
from jupyterhub_gpu_slurm.registration import join_hub_once_chosen

log = logging.getLogger("JupyterHub")

TOKEN_VARIABLE = "CONFIGPROXY_AUTH_TOKEN"  # noqa: S105  # the variable's name
LEADER_FILE_VARIABLE = "PORTAL_LEADER_FILE"
"""Names a file that is touched whenever this machine was seen to be the one that runs the hub."""


def configure_from_file(c: Config, environment: Mapping[str, str] = os.environ) -> None:
    """Configure the hub from the settings file; end with one line for each thing wrong with it.

    On a standby machine, return when it is to take over.
    """
    file = file_of(environment)
    try:
        settings = load(file)
        leadership = configure(c, settings, environment)
    except SettingsError as error:
        sys.exit(str(error))
    run_site_files(c, settings, file.parent / "conf.d")
    if leadership:
        leadership.wait()
        leadership.keep()


def run_site_files(c: Config, settings: Settings, folder: Path) -> None:
    """Run a site's own ``*.py`` in the order of their names; they see ``c`` and ``settings``."""
    for file in sorted(folder.glob("*.py")):
        runpy.run_path(str(file), init_globals={"c": c, "settings": settings})


def configure(
    c: Config, settings: Settings, environment: Mapping[str, str] = os.environ
) -> Leadership | None:
    """Set every trait that the settings decide; see `configure_database` for what it returns."""
    use_monotonic_clock()
    configure_hub(c, settings)
    configure_encryption(c, settings)
    configure_proxy(c, settings, environment)
    leadership = configure_database(c, settings, environment)
    configure_authentication(c, settings)
    configure_access(c, settings)
    configure_starts(c)
    configure_spawner(c, settings)
    configure_resources(c, settings)
    configure_limits(c, settings)
    configure_session(c, settings)
    configure_extensions(c, settings)
    configure_usage(c, settings)
    configure_monitoring(c, settings)
    configure_pages(c, settings)
    managed_services.look_after_services()
    configure_reconciler(c, environment)
    configure_culler(c, settings, environment)
    configure_cluster_page(c, settings, environment)
    return leadership


def configure_hub(c: Config, settings: Settings) -> None:
    """Set where the hub listens, and that it outlives nothing but its own process."""
    c.JupyterHub.bind_url = settings.hub.public_url
    api_url = settings.hub.internal(settings.hub.api_url)
    c.JupyterHub.hub_bind_url = api_url
    c.JupyterHub.hub_connect_url = api_url
    # Sessions are Slurm's: they go on while the hub is away, or its user logs out.
    c.JupyterHub.cleanup_servers = False
    c.JupyterHub.shutdown_on_logout = False
    c.JupyterHub.authenticate_prometheus = True
    c.JupyterHub.tornado_settings.update({"log_function": request_log.log_known})
    request_log.install()
    connection_limits.install()
    client_secrets.install()
    user_lookups.install()
    garbage.install()
    c.JupyterHub.allow_named_servers = settings.hub.max_named_servers > 0
    c.JupyterHub.named_server_limit_per_user = settings.hub.max_named_servers


def configure_encryption(c: Config, settings: Settings) -> None:
    """Set what is encrypted, and the hosts that a browser keeps apart."""
    hub = settings.hub
    if not hub.is_encrypted:
        log.warning(
            "Passwords are not encrypted on their way to %s: give the portal a certificate "
            "(hub.certificate_file)",
            hub.public_url,
        )
    else:
        # Of the cookie against forged requests JupyterHub does not see to it itself.
        same = {"secure": True, "samesite": "Lax"}
        c.JupyterHub.tornado_settings.update({"xsrf_cookie_kwargs": same})
    c.JupyterHub.internal_ssl = hub.internal_ssl
    if hub.internal_ssl:
        managed_services.use_internal_tls()
        shared_tls.install()
    c.JupyterHub.internal_certs_location = hub.certificates_dir
    c.JupyterHub.trusted_alt_names = internal_tls.names(hub)
    if hub.subdomain_host:
        c.JupyterHub.subdomain_host = hub.subdomain_host
        c.JupyterHub.subdomain_hook = host_names.host_of
        # Else a user's page could set cookies that the hub takes for its own.
        c.JupyterHub.cookie_host_prefix_enabled = hub.has_host_cookies
    host_names.install(hub.subdomain_host)


def configure_proxy(c: Config, settings: Settings, environment: Mapping[str, str]) -> None:
    """Set how the hub speaks to a proxy that is a service of its own."""
    token = environment.get(TOKEN_VARIABLE, "")
    if not token:
        raise SettingsError(
            f"environment: {TOKEN_VARIABLE}: must be set to the token that the proxy has"
        )
    if not settings.hub.subdomain_host:
        encrypted = settings.hub.is_encrypted
        Gate(token, is_encrypted=encrypted, days=settings.access.login_days).install()
    c.JupyterHub.proxy_class = FollowedProxy
    c.ConfigurableHTTPProxy.should_start = False
    c.ConfigurableHTTPProxy.api_url = settings.hub.internal(settings.hub.proxy_api_url)
    c.ConfigurableHTTPProxy.auth_token = token
    c.JupyterHub.cleanup_proxy = False


def configure_database(
    c: Config, settings: Settings, environment: Mapping[str, str] = os.environ
) -> Leadership | None:
    """Set where the hub keeps what it must know after a restart.

    Return what says whether this machine is to run it, where several may.
    """
    state = settings.hub.state_dir
    leadership = None
    c.JupyterHub.cookie_secret_file = f"{state}/jupyterhub_cookie_secret"
    if settings.hub.database_url:
        given = settings.hub.database_url, settings.hub.database_password_file
        from dsportal.hub import postgresql

        c.JupyterHub.db_url = database.postgresql_url(*given)
        url = database.libpq_url(*given)
        breaker = Breaker(postgresql.Probe(url), is_asked_first=True)
        if settings.hub.standby:
            leadership = Leadership(postgresql.HubLock(url), seen=_noting(environment))
            breaker.check_writer = leadership.check
        c.JupyterHub.db_kwargs = postgresql.options(url, breaker.check, breaker.check_writer)
    else:
        file = f"{state}/jupyterhub.sqlite"
        c.JupyterHub.db_url = f"sqlite:///{file}"
        breaker = Breaker(database.sqlite_probe(file), is_asked_first=False)
        breaker.check_writer = room_check(state)
        c.JupyterHub.db_kwargs = database.sqlite_options()
    database_outage.install(breaker)
    # A newer release brings its schema; of an SQLite file the hub keeps a copy.
    c.JupyterHub.upgrade_db = True
    return leadership


def _noting(environment: Mapping[str, str]) -> Callable[[], object]:
    """Return what notes that this machine runs the hub, for what moves the address to it."""
    file = environment.get(LEADER_FILE_VARIABLE)
    return Path(file).touch if file else lambda: None


def configure_authentication(c: Config, settings: Settings) -> None:
    """Set who is asked at login, and which groups let in or make an admin."""
    authentication = settings.authentication
    if authentication.method == "ldap":
        c.JupyterHub.authenticator_class = "dsportal.authentication.ldap.DirectoryAuthenticator"
        configure_directory(c, settings)
        chosen = c.DirectoryAuthenticator
    else:
        c.JupyterHub.authenticator_class = "dsportal.authentication.pam.PamAuthenticator"
        chosen = c.PamAuthenticator
    chosen.allowed_groups = set(authentication.allowed_groups)
    chosen.admin_groups = set(authentication.admin_groups)
    chosen.contact = authentication.contact
    chosen.minimum_uid = authentication.minimum_uid
    # Groups decide at each login, whoever the hub has met before.
    c.Authenticator.allow_all = False
    c.Authenticator.allow_existing_users = False
    c.Authenticator.manage_groups = True


def configure_starts(c: Config) -> None:
    """Leave the queue to Slurm, and keep the user's browser informed."""
    # A session that waits in Slurm's queue counts as starting: a limit here would refuse others.
    c.JupyterHub.concurrent_spawn_limit = 0
    # Polls read what one squeue said for all sessions, so they may come often.
    c.Spawner.poll_interval = 10
    second_start.install()
    # A crowd of failed starts is a matter of the cluster, not a reason to end the hub.
    c.Spawner.consecutive_failure_limit = 0
    # Seconds that the form's answer may take; then the page with the session's state comes.
    c.JupyterHub.tornado_settings.update({"slow_spawn_timeout": 3})


def configure_pages(c: Config, settings: Settings) -> None:
    """Set where our own pages are, and their look; JupyterHub's stand in for those not there."""
    look = appearance(settings.look)
    c.JupyterHub.template_paths = [str(WEB)]
    c.JupyterHub.template_vars = {
        "look": look,
        "is_encrypted": settings.hub.is_encrypted,
        "session_tokens": session_tokens.session_tokens,
        "session_clients": session_tokens.session_clients,
        "has_ssh": settings.session.ssh,
        "has_user_hosts": bool(settings.hub.subdomain_host),
    }
    c.JupyterHub.logo_file = str(look.logo_file)
    logout.install()
    stylesheet.install(look.stylesheet, look.version)
    documentation.install(look.documentation_dir)
    ssh_page.install(is_offered=settings.session.ssh)


def configure_spawner(c: Config, settings: Settings) -> None:
    """Set how sessions reach Slurm."""
    slurm = settings.slurm
    c.JupyterHub.spawner_class = "dsportal.hub.patches.database_outage.PatientSpawner"
    join_hub_once_chosen()
    spawner = c.GpuSlurmSpawner
    spawner.slurm_conf = slurm.config_file
    spawner.slurm_bin_dir = slurm.bin_dir
    spawner.launcher_cmd = list(launcher_cmd(slurm.launcher, slurm.sudo))
    spawner.hub_mark = settings.hub.name
    spawner.query_interval = slurm.query_interval_seconds
    spawner.cluster_interval = slurm.cluster_interval_seconds
    spawner.quiet_interval = slurm.quiet_interval_seconds
    spawner.launches_at_once = slurm.launches_at_once
    spawner.command_timeout = slurm.command_timeout_seconds
    spawner.offer_accounts = slurm.offer_accounts
    spawner.req_options = shlex.join(slurm.sbatch_options)


def configure_resources(c: Config, settings: Settings) -> None:
    """Set what comes with a GPU, and what the form proposes."""
    session = settings.session
    spawner = c.GpuSlurmSpawner
    spawner.cores_per_gpu = session.cores_per_gpu
    spawner.memory_mb_per_gpu = session.memory_mb_per_gpu
    spawner.cores_without_gpu = session.cores_without_gpu
    spawner.memory_mb_without_gpu = session.memory_mb_without_gpu
    spawner.default_gpus = session.default_gpus
    spawner.default_hours = session.default_hours
    spawner.default_partition = session.default_partition
    spawner.profiles = {
        name: profile.model_dump(exclude_none=True) for name, profile in settings.profiles.items()
    }


def configure_limits(c: Config, settings: Settings) -> None:
    """Set what users may have, by group."""
    spawner = c.GpuSlurmSpawner
    spawner.default_limits = limits_table(settings.limits.default)
    spawner.group_limits = {
        name: limits_table(limits) for name, limits in settings.limits.groups.items()
    }


def limits_table(limits: UserLimits) -> dict[str, object]:
    """Give the keys that are set, as the spawner takes them."""
    return limits.model_dump(exclude_none=True)


def configure_session(c: Config, settings: Settings) -> None:
    """Set what runs in the job, where the user lands, and how long a start may take."""
    session = settings.session
    spawner = c.GpuSlurmSpawner
    spawner.session_python = session.python
    spawner.session_input = session_input(settings)
    spawner.session_images = session_images(settings.containers)
    spawner.image_check = holds_server
    spawner.default_url = "/lab"
    # Nothing of the hub's own environment reaches a session.
    spawner.env_keep = []
    waiting = round(session.queue_timeout_hours * 3600)
    spawner.launch_timeout = float(session.start_timeout_seconds)
    spawner.queue_timeout = float(waiting)
    # The spawner's own limits come first, and say which of them it was.
    spawner.start_timeout = waiting + session.start_timeout_seconds + 300
    spawner.http_timeout = 60


def configure_extensions(c: Config, settings: Settings) -> None:
    """Set by how much a session that runs can be made longer."""
    spawner = c.GpuSlurmSpawner
    spawner.slurm_operator = settings.slurm.operator
    spawner.extension_hours = settings.session.extension_hours
    spawner.max_extensions = settings.session.max_extensions


def configure_usage(c: Config, settings: Settings) -> None:
    """Set where the hub writes down who held GPUs when, and let users see how theirs ended."""
    record = UsageRecord.of_hub(settings.hub.state_dir, is_shared=settings.hub.standby)
    recorder = Recorder(record, timedelta(days=31 * settings.usage.keep_months))
    session_status.install(recorder)
    start_again.install(recorder)
    home.install(recorder)
    live_use.install()
    c.GpuSlurmSpawner.session_observer = recorder.observer()
