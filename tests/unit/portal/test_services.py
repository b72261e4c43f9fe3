"""The hub's services, onto a bare Config: none runs here."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jupyterhub.app import JupyterHub

from dsportal.hub import internal_tls, services, tls
from dsportal.settings.hub import HubSettings
from dsportal.settings.whole import Settings
from dsportal.settings_file import SettingsError, load
from tests.unit.portal.a_site import FILE, TOKEN


def test_the_culler_may_see_and_stop_servers_and_nothing_else(c: Any, settings: Settings) -> None:
    c.JupyterHub.update({"services": [], "load_roles": []})
    services.configure_culler(c, settings, {})
    (role,) = c.JupyterHub.load_roles
    assert role["services"] == ["idle-culler"]
    assert set(role["scopes"]) == {
        "list:users",
        "read:servers",
        "admin:server_state",
        "delete:servers",
    }
    (service,) = c.JupyterHub.services
    assert service["command"][1:] == ["-I", "-m", "dsportal.culler"]
    assert "admin" not in service


READ = (
    "import sys; from jupyterhub_idle_culler import make_ssl_context as make; "
    "print(*(one.hex() for one in make(*sys.argv[1:]).get_ca_certs(binary_form=True)))"
)


def test_the_culler_reads_the_hubs_own_authorities_and_no_others(
    c: Any, settings: Settings, tmp_path: Path
) -> None:
    hub = HubSettings(state_dir=str(tmp_path), internal_ssl=True, api_url="http://10.0.0.1:8081")
    internal_tls.prepare(hub, datetime.now(UTC))
    JupyterHub.clear_instance()
    c.JupyterHub.update({"services": [], "load_roles": []})
    services.configure_culler(c, settings.model_copy(update={"hub": hub}), {})
    (service,) = c.JupyterHub.services
    folder = Path(hub.certificates_dir)
    certificate, key = tls.pair(folder)
    authority = folder / "hub-ca/hub-ca.crt"
    argv = [sys.executable, "-c", READ, *map(str, (key, certificate, authority))]
    done = subprocess.run(argv, env=service["environment"], check=True, stdout=subprocess.PIPE)
    trusted = tls.client_context(hub)
    assert trusted is not None
    expected = {one.hex() for one in trusted.get_ca_certs(binary_form=True)}
    assert set(done.stdout.decode().split()) == expected


def test_the_time_without_use_is_set_for_all_and_by_group(c: Any, file: Path) -> None:
    file.write_text(FILE + "[idle]\nminutes = 90.0\n[idle.groups.students]\nminutes = 0.0\n")
    services.configure_culler(c, load(file), {})
    assert c.GpuSlurmSpawner.idle_minutes == 90
    assert c.GpuSlurmSpawner.group_idle_minutes == {"students": 0}
    assert c.GpuSlurmSpawner.idle_warning_minutes == 10


def with_token(file: Path, token: str) -> Settings:
    path = file.parent / "prometheus.token"
    path.write_text(token)
    file.write_text(f'{FILE}[monitoring]\ntoken_file = "{path}"\nidle_gpu_minutes = 5\n')
    return load(file)


def test_prometheus_may_read_the_metrics_and_nothing_else(c: Any, file: Path) -> None:
    c.JupyterHub.services, c.JupyterHub.load_roles = [], []
    services.configure_monitoring(c, with_token(file, f"{'t' * 40}\n"))
    assert c.JupyterHub.services == [{"name": "prometheus", "api_token": "t" * 40}]
    assert c.JupyterHub.load_roles == [
        {"name": "prometheus", "services": ["prometheus"], "scopes": ["read:metrics"]}
    ]
    assert c.GpuSlurmSpawner.idle_gpu_minutes == 5


def test_without_a_token_nobody_is_let_in_for_the_metrics(c: Any, settings: Settings) -> None:
    services.configure_monitoring(c, settings)
    assert "services" not in c.JupyterHub


@pytest.mark.parametrize("token", ["", "short", f"{'t' * 40} and more", "pässwort" * 9])
def test_a_token_that_is_none_is_refused(c: Any, file: Path, token: str) -> None:
    settings = with_token(file, token)
    with pytest.raises(SettingsError, match=r"monitoring\.token_file"):
        services.configure_monitoring(c, settings)


def test_a_token_that_is_not_there_is_named(c: Any, file: Path) -> None:
    settings = with_token(file, "t" * 40)
    Path(settings.monitoring.token_file).unlink()
    with pytest.raises(SettingsError, match=r"prometheus\.token cannot be read"):
        services.configure_monitoring(c, settings)


def test_every_user_and_every_session_may_look_at_the_cluster(c: Any, settings: Settings) -> None:
    c.JupyterHub.update({"services": [], "load_roles": []})
    services.configure_cluster_page(c, settings, TOKEN)
    scopes = {role["name"]: role["scopes"] for role in c.JupyterHub.load_roles}
    access = "access:services!service=cluster"
    assert scopes["user"] == ["self", access]
    assert scopes["server"] == ["users:activity!user", access]


def test_the_cluster_page_itself_can_only_read(c: Any, settings: Settings) -> None:
    c.JupyterHub.update({"services": [], "load_roles": []})
    services.configure_cluster_page(c, settings, TOKEN)
    (own,) = (role for role in c.JupyterHub.load_roles if role["name"] == "cluster")
    assert own["scopes"] == [
        "list:users",
        "read:users:groups",
        "read:servers",
        "admin:server_state",
    ]
    (service,) = c.JupyterHub.services
    assert service["url"] == "http://127.0.0.1:8002"
    assert service["oauth_client_allowed_scopes"] == ["delete:servers"]
