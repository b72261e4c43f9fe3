"""The hub's services, onto a bare Config: none runs here."""

from pathlib import Path
from typing import Any

import pytest

from dsportal.hub import services
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
