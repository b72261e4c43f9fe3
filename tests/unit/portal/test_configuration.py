"""The hub's configuration, onto a bare Config: no hub runs here."""

import os
import warnings
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.app import JupyterHub
from jupyterhub.handlers import default_handlers
from jupyterhub.proxy import ConfigurableHTTPProxy

from dsportal.hub import configuration as hub
from dsportal.hub.breaker import Breaker, DatabaseAway
from dsportal.hub.logins import configure_directory
from dsportal.hub.pages import stylesheet
from dsportal.hub.patches import database_outage
from dsportal.settings.limits import UserLimits
from dsportal.settings.whole import Settings
from dsportal.settings_file import SettingsError, load
from jupyterhub_gpu_slurm.options.allowance import KEYS, NO_LIMITS
from jupyterhub_gpu_slurm.session.script import site_options
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from tests.unit.portal.a_site import FILE, TOKEN

# ldap3 2.9.1 uses names that pyasn1 has renamed; nothing of ours can mend that.
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from dsportal.authentication.ldap import DirectoryAuthenticator

MODULES = """\
modules_init = "/usr/share/lmod/lmod/init/bash"
module_paths = ["/opt/modules"]
"""


def test_the_hub_listens_where_the_settings_say(c: Any, settings: Settings) -> None:
    hub.configure_hub(c, settings)
    assert c.JupyterHub.bind_url == "http://0.0.0.0:18000"
    assert c.JupyterHub.hub_bind_url == "http://127.0.0.1:18081"
    assert c.JupyterHub.hub_connect_url == "http://127.0.0.1:18081"


HTTPS = """\
public_url = "https://0.0.0.0:18000"
certificate_file = "/etc/portal/portal.crt"
certificate_key_file = "/etc/portal/portal.key"
"""


@pytest.mark.parametrize(
    ("hub_table", "is_said"),
    [
        ('public_url = "http://0.0.0.0:18000"\n', True),
        ('public_url = "http://0.0.0.0:18000"\ntls_elsewhere = true\n', False),
        (HTTPS, False),
    ],
)
def test_passwords_in_the_clear_are_warned_of(
    c: Any, file: Path, caplog: pytest.LogCaptureFixture, hub_table: str, is_said: bool
) -> None:
    file.write_text(FILE.replace('public_url = "http://0.0.0.0:18000"\n', hub_table))
    hub.configure_encryption(c, load(file))
    assert ("Passwords are not encrypted" in caplog.text) is is_said


def test_internal_ssl_changes_how_all_parts_are_spoken_to(c: Any, file: Path) -> None:
    file.write_text(FILE.replace("[authentication]", "internal_ssl = true\n[authentication]", 1))
    settings = load(file)
    hub.configure(c, settings, TOKEN)
    assert c.JupyterHub.internal_ssl is True
    assert c.JupyterHub.hub_connect_url == "https://127.0.0.1:18081"
    assert c.ConfigurableHTTPProxy.api_url == "https://127.0.0.1:18001"
    (page,) = (one for one in c.JupyterHub.services.get_value([]) if one["name"] == "cluster")
    assert page["url"] == "https://127.0.0.1:8002"
    assert c.GpuSlurmSpawner.session_input["cluster_url"] == "https://127.0.0.1:8002"


def test_users_can_have_host_names_of_their_own(c: Any, file: Path) -> None:
    more = 'subdomain_host = "https://portal.example.org:8000"\n[authentication]'
    file.write_text(FILE.replace("[authentication]", more, 1))
    hub.configure_encryption(c, load(file))
    assert c.JupyterHub.subdomain_host == "https://portal.example.org:8000"
    assert c.JupyterHub.cookie_host_prefix_enabled is True


def test_sessions_outlive_the_hub_and_a_logout(c: Any, settings: Settings) -> None:
    hub.configure_hub(c, settings)
    assert c.JupyterHub.cleanup_servers is False
    assert c.JupyterHub.shutdown_on_logout is False


def test_the_proxy_is_a_service_of_its_own(c: Any, settings: Settings) -> None:
    hub.configure_proxy(c, settings, TOKEN)
    assert c.ConfigurableHTTPProxy.should_start is False
    assert c.ConfigurableHTTPProxy.api_url == "http://127.0.0.1:18001"
    assert c.ConfigurableHTTPProxy.auth_token == "secret"
    assert c.JupyterHub.cleanup_proxy is False


def test_a_missing_token_of_the_proxy_is_one_line(c: Any, settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"^environment: CONFIGPROXY_AUTH_TOKEN: must be set"):
        hub.configure_proxy(c, settings, {})


def test_state_is_in_the_state_folder(c: Any, settings: Settings) -> None:
    hub.configure_database(c, settings)
    assert c.JupyterHub.db_url == "sqlite:////var/lib/portal-test/hub/jupyterhub.sqlite"
    assert c.JupyterHub.cookie_secret_file == "/var/lib/portal-test/hub/jupyterhub_cookie_secret"


def test_nothing_is_sent_to_a_file_whose_disk_is_full(
    c: Any, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = settings.hub.model_copy(update={"state_dir": str(tmp_path)})
    made: list[Breaker] = []
    monkeypatch.setattr(database_outage, "install", made.append)
    hub.configure_database(c, settings.model_copy(update={"hub": ours}))
    made[0].check_writer()
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=100, f_frsize=4096))
    with pytest.raises(DatabaseAway, match="is full"):
        made[0].check_writer()


def test_a_database_may_be_elsewhere(c: Any, settings: Settings) -> None:
    elsewhere = settings.hub.model_copy(update={"database_url": "postgresql://db/hub"})
    hub.configure_database(c, settings.model_copy(update={"hub": elsewhere}))
    assert c.JupyterHub.db_url == "postgresql+psycopg://db/hub"
    assert "connect_args" not in c.JupyterHub.db_kwargs


def test_a_standby_asks_no_database_before_it_takes_over(c: Any, settings: Settings) -> None:
    changes = {"database_url": "postgresql://db/hub", "standby": True}
    standby = settings.model_copy(update={"hub": settings.hub.model_copy(update=changes)})
    leadership = hub.configure_database(c, standby)
    assert leadership
    with pytest.raises(DatabaseAway):
        c.JupyterHub.db_kwargs["creator"]()
    assert hub.configure_database(c, settings) is None


def test_groups_of_the_directory_decide(c: Any, settings: Settings) -> None:
    hub.configure_authentication(c, settings)
    assert c.JupyterHub.authenticator_class == "dsportal.authentication.ldap.DirectoryAuthenticator"
    assert c.DirectoryAuthenticator.allowed_groups == {"data-scientists"}
    assert c.DirectoryAuthenticator.admin_groups == {"portal-admins"}
    assert c.DirectoryAuthenticator.contact == "Ada"
    assert c.Authenticator.allow_all is False
    assert c.Authenticator.allow_existing_users is False
    assert c.Authenticator.manage_groups is True


def test_groups_of_the_machine_decide(c: Any, settings: Settings) -> None:
    pam = settings.authentication.model_copy(update={"method": "pam"})
    hub.configure_authentication(c, settings.model_copy(update={"authentication": pam}))
    assert c.JupyterHub.authenticator_class == "dsportal.authentication.pam.PamAuthenticator"
    assert c.PamAuthenticator.allowed_groups == {"data-scientists"}
    assert "DirectoryAuthenticator" not in c


@pytest.mark.parametrize(("start_tls", "strategy"), [(True, "before_bind"), (False, "insecure")])
def test_starttls_is_as_set(c: Any, settings: Settings, start_tls: bool, strategy: str) -> None:
    ldap = settings.authentication.ldap.model_copy(update={"start_tls": start_tls})
    authentication = settings.authentication.model_copy(update={"ldap": ldap})
    configure_directory(c, settings.model_copy(update={"authentication": authentication}))
    assert c.DirectoryAuthenticator.tls_strategy == strategy


def test_names_of_the_directory_that_are_not_set_follow_from_its_kind(
    c: Any, settings: Settings
) -> None:
    configure_directory(c, settings)
    directory = c.DirectoryAuthenticator
    assert directory.kind == "posix"
    assert "user_attribute" not in directory
    assert "bind_as" not in directory
    ldap = settings.authentication.ldap.model_copy(update={"user_attribute": "cn", "realm": "X"})
    authentication = settings.authentication.model_copy(update={"ldap": ldap})
    configure_directory(c, settings.model_copy(update={"authentication": authentication}))
    assert (directory.user_attribute, directory.realm) == ("cn", "X")


def test_accounts_are_looked_at_again_as_often_as_set(c: Any, settings: Settings) -> None:
    configure_directory(c, settings)
    assert c.DirectoryAuthenticator.auth_refresh_age == 300


def test_a_queue_in_slurm_keeps_nobody_from_starting(c: Any) -> None:
    hub.configure_starts(c)
    assert c.JupyterHub.concurrent_spawn_limit == 0
    assert c.Spawner.consecutive_failure_limit == 0


def test_a_session_that_ended_shows_within_half_a_minute(c: Any) -> None:
    hub.configure_starts(c)
    assert c.Spawner.poll_interval <= 15


def test_the_spawner_reaches_slurm_through_the_launcher(c: Any, settings: Settings) -> None:
    hub.configure_spawner(c, settings)
    spawner = c.GpuSlurmSpawner
    assert spawner.launcher_cmd == [
        *("/usr/bin/sudo", "-n", "-u", "{username}", "--"),
        "/opt/portal/slurm-launcher",
    ]
    assert spawner.slurm_conf == "/etc/slurm-portal-test/slurm.conf"
    assert spawner.hub_mark == "portal-test"


def test_resources_are_the_settings(c: Any, settings: Settings) -> None:
    hub.configure_resources(c, settings)
    assert c.GpuSlurmSpawner.cores_per_gpu == 8
    assert c.GpuSlurmSpawner.memory_mb_without_gpu == 1536
    assert c.GpuSlurmSpawner.default_hours == 8.0


def test_the_pages_get_the_look(c: Any, settings: Settings) -> None:
    hub.configure_pages(c, settings)
    hub.configure_pages(c, settings)
    look = c.JupyterHub.template_vars["look"]
    assert look.title == "Data Scientist Portal"
    assert Path(c.JupyterHub.logo_file).name == "logo.svg"
    (served,) = (given for path, *_, given in default_handlers if path == stylesheet.PATH)
    assert served == {"stylesheet": look.stylesheet, "version": look.version}


def test_the_session_is_told_its_folders_and_tools(c: Any, settings: Settings) -> None:
    hub.configure_session(c, settings)
    told = c.GpuSlurmSpawner.session_input
    look = told.pop("look")
    assert told == {
        "folders": {"templates": "/opt/templates"},
        "folder_notes": {},
        "mounts": [],
        "templates": "templates",
        "extensions": [
            *("git", "lsp", "execute_time", "code_formatter", "debugger", "search"),
            *("csv", "toc", "parquet", "download", "notify"),
        ],
        "umask": "",
        "environments_folders": {"home": "~/environments"},
        "environments_conda": "",
        "mlflow_folder": "",
        "ssh": True,
        "shares_folder": "",
        "jupyter_path": ["/opt/share/jupyter"],
        "tensorboard_python": "/opt/tensorboard/bin/python",
        "tensorboards": 4,
        "tensorboard_idle_minutes": 60,
        "warning_minutes": [30, 10, 2],
        "modules_init": "",
        "module_paths": [],
        "kernels": {},
        "tools": {},
        "containers": {"apptainer": "", "images": {}, "own_images": "images", "binds": []},
        "follows_system_theme": True,
        "cluster_url": "http://127.0.0.1:8002",
        "is_encrypted": False,
        "slurm_bin_dir": "/usr/bin",
    }
    assert look["title"] == "Data Scientist Portal"
    assert (look["accent"], look["accent_dark"]) == ("#3556c4", "#9db4ff")
    assert c.GpuSlurmSpawner.session_python == "/opt/session/bin/python"
    assert c.GpuSlurmSpawner.env_keep == []


def test_the_session_is_told_its_web_tools(c: Any, file: Path) -> None:
    file.write_text(
        FILE.replace("[session.folders]", f"{MODULES}[session.folders]")
        + """
[tools.digits]
title = "DIGITS"
command = ["digits-devserver"]
modules = ["shared/digits/6.1.1"]
listens = "port"
port = 5000
[tools.digits.environment]
DIGITS_JOBS_DIR = "~/digits-logs"
[tools.editor]
title = "Editor"
icon = "/opt/editor.svg"
command = ["/opt/editor", "--socket={unix_socket}"]
"""
    )
    hub.configure_session(c, load(file))
    told = c.GpuSlurmSpawner.session_input
    assert told["tools"]["digits"] == {
        "title": "DIGITS",
        "icon": "",
        "command": ["digits-devserver"],
        "modules": ["shared/digits/6.1.1"],
        "environment": {"DIGITS_JOBS_DIR": "~/digits-logs"},
        "listens": "port",
        "port": 5000,
        "has_own_network": True,
        "absolute_url": False,
        "start_timeout_seconds": 60,
    }
    assert told["tools"]["editor"]["has_own_network"] is False
    assert told["tools"]["editor"]["port"] is None


def test_the_session_is_told_its_kernels_and_modules(c: Any, file: Path) -> None:
    file.write_text(
        FILE.replace("[session.folders]", f"{MODULES}[session.folders]")
        + """
[kernels.pytorch]
display_name = "PyTorch 2.13"
modules = ["shared", "pytorch/2.13"]
[kernels.pytorch.environment]
OMP_NUM_THREADS = "8"
"""
    )
    hub.configure_session(c, load(file))
    told = c.GpuSlurmSpawner.session_input
    assert told["modules_init"] == "/usr/share/lmod/lmod/init/bash"
    assert told["module_paths"] == ["/opt/modules"]
    assert told["kernels"] == {
        "pytorch": {
            "display_name": "PyTorch 2.13",
            "modules": ["shared", "pytorch/2.13"],
            "interpreter": "python",
            "language": "python",
            "environment": {"OMP_NUM_THREADS": "8"},
        }
    }


def test_waiting_in_the_queue_is_not_starting(c: Any, settings: Settings) -> None:
    hub.configure_session(c, settings)
    assert c.GpuSlurmSpawner.launch_timeout == 300
    assert c.GpuSlurmSpawner.queue_timeout == 12 * 3600
    assert c.GpuSlurmSpawner.start_timeout > 12 * 3600 + 300


def test_limits_reach_the_spawner_as_they_are_written(c: Any, file: Path) -> None:
    file.write_text(
        FILE + "[limits.default]\nmax_gpus = 2\n"
        '[limits.groups.students]\nmax_hours = 4\npartitions = ["short"]\naccount = "a"\n'
    )
    hub.configure_limits(c, load(file))
    assert c.GpuSlurmSpawner.default_limits == {"max_gpus": 2}
    students = {"max_hours": 4.0, "partitions": ("short",), "account": "a"}
    assert c.GpuSlurmSpawner.group_limits == {"students": students}
    assert GpuSlurmSpawner(config=c)._allowance({"students"}).max_time == timedelta(hours=4)


def test_without_limits_nothing_is_limited(c: Any, settings: Settings) -> None:
    hub.configure_limits(c, settings)
    assert GpuSlurmSpawner(config=c)._allowance({"students"}) == NO_LIMITS


def test_what_the_form_offers_reaches_the_spawner(c: Any, file: Path) -> None:
    file.write_text(
        FILE.replace("[slurm]", "[slurm]\nsbatch_options = ['--nice=10', '--exclude=n[1-2]']")
        + '[profiles.small]\ntitle = "Small"\ngpus = 1\nhours = 2\n'
    )
    settings = load(file)
    hub.configure_spawner(c, settings)
    hub.configure_resources(c, settings)
    spawner = GpuSlurmSpawner(config=c)
    assert site_options(spawner.req_options) == ("--nice=10", "--exclude=n[1-2]")
    assert spawner.offer_accounts
    (small,) = spawner._site_policy.profiles
    assert small.asked == {"gpus": "1", "hours": "2"}


def test_every_key_of_the_limits_is_one_of_the_spawners() -> None:
    assert set(UserLimits.model_fields) == set(KEYS)


def test_several_sessions_at_once_are_a_setting(c: Any, file: Path, settings: Settings) -> None:
    hub.configure_hub(c, settings)
    assert c.JupyterHub.allow_named_servers is False
    file.write_text(FILE.replace("[hub]", "[hub]\nmax_named_servers = 3"))
    hub.configure_hub(c, load(file))
    assert c.JupyterHub.allow_named_servers is True
    assert c.JupyterHub.named_server_limit_per_user == 3


def test_every_trait_set_for_the_spawner_is_one_of_its_traits(c: Any, settings: Settings) -> None:
    hub.configure(c, settings, TOKEN)
    assert set(c.GpuSlurmSpawner) <= set(GpuSlurmSpawner.class_trait_names(config=True))
    spawner = GpuSlurmSpawner(config=c)
    for name, value in c.GpuSlurmSpawner.items():
        assert getattr(spawner, name) == value


def test_every_trait_set_for_the_directory_is_one_of_its_traits(c: Any, settings: Settings) -> None:
    hub.configure(c, settings, TOKEN)
    authenticator = DirectoryAuthenticator(config=c)
    assert set(c.DirectoryAuthenticator) <= set(authenticator.trait_names(config=True))
    assert authenticator.login_timeout == 20


def test_every_trait_set_for_the_hub_is_one_of_its_traits(c: Any, settings: Settings) -> None:
    hub.configure(c, settings, TOKEN)
    assert set(c.JupyterHub) <= set(JupyterHub.class_trait_names(config=True))
    assert set(c.ConfigurableHTTPProxy) <= set(ConfigurableHTTPProxy.class_trait_names(config=True))


def test_a_bad_file_ends_the_start_with_its_lines(tmp_path: Path, c: Any) -> None:
    file = tmp_path / "portal.toml"
    file.write_text("colour = 1\n")
    with pytest.raises(SystemExit) as caught:
        hub.configure_from_file(c, {"PORTAL_SETTINGS": str(file), **TOKEN})
    assert str(caught.value.code).splitlines()[0].endswith(": authentication: must be set")
    assert f"{file}:1: colour: is not a known key" in str(caught.value.code)


def test_a_missing_token_ends_the_start_with_its_line(file: Path, c: Any) -> None:
    with pytest.raises(SystemExit, match="CONFIGPROXY_AUTH_TOKEN"):
        hub.configure_from_file(c, {"PORTAL_SETTINGS": str(file)})


def test_the_sites_own_files_come_last_in_order(file: Path, c: Any) -> None:
    folder = file.parent / "conf.d"
    folder.mkdir()
    (folder / "20-last.py").write_text("c.JupyterHub.log_level += 1\n")
    (folder / "10-first.py").write_text(
        "c.JupyterHub.log_level = 10\nc.Spawner.args = [settings.hub.name]\n"
        "c.JupyterHub.shutdown_on_logout = True\n"
    )
    (folder / "notes.txt").write_text("not run")
    hub.configure_from_file(c, {"PORTAL_SETTINGS": str(file), **TOKEN})
    assert c.JupyterHub.log_level == 11
    assert c.Spawner.args == ["portal-test"]
    assert c.JupyterHub.shutdown_on_logout is True


def test_the_record_of_sessions_is_kept_for_as_long_as_the_settings_say(
    c: Any, settings: Settings, tmp_path: Path
) -> None:
    hub.configure_usage(c, settings)
    assert callable(GpuSlurmSpawner(config=c).session_observer)


MINIMAL = """\
[authentication]
allowed_groups = ["data-scientists"]
[authentication.ldap]
servers = ["ldap://127.0.0.1:13890"]
user_base = "ou=people,dc=portal,dc=example"
group_base = "ou=groups,dc=portal,dc=example"
[session]
python = "/opt/session/bin/python"
"""


@pytest.mark.parametrize(
    ("traits", "others"),
    [
        (
            GpuSlurmSpawner,
            # What a site must say, what only the portal has, and limits around the spawner's own.
            {"session_python", "session_input", "image_check", "session_observer", "launcher_cmd"}
            | {"default_url", "env_keep", "idle_minutes"}
            | {"start_timeout", "http_timeout"},
        ),
        (
            DirectoryAuthenticator,
            {"servers", "user_search_base", "group_search_base", "allowed_groups"}
            | {"lookup_dn_search_user", "tls_strategy"},
        ),
    ],
)
def test_a_default_of_the_settings_is_the_traits_own(
    c: Any, file: Path, traits: Any, others: set[str]
) -> None:
    """Two surfaces, one default: a site that leaves ``portal.toml`` gets the same."""
    file.write_text(MINIMAL)
    hub.configure(c, load(file), TOKEN)
    known = traits.class_traits()
    given = c[traits.__name__].items()
    assert {name for name, value in given if known[name].default() != value} == others
