"""The hub's services end with the hub, whenever it was killed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from portal import hub_process
from tests.instance import ROOT
from tests.unit.portal.a_site import FILE


def test_who_started_a_service_is_there_until_another_has_adopted_it() -> None:
    assert hub_process.is_there({hub_process.VARIABLE: str(os.getppid())})
    assert not hub_process.is_there(hub_process.named())


@pytest.mark.parametrize("service", ["cluster", "culler", "keeper"])
def test_a_service_whose_hub_was_killed_before_it_looked_ends(service: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = tmp_path / "portal.toml"
    file.write_text(f'{FILE}[cluster]\nurl = "http://127.0.0.1:{port}"\n')
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "PORTAL_SETTINGS": str(file),
        hub_process.VARIABLE: str(dead.pid),
        "JUPYTERHUB_API_TOKEN": "secret",
        "JUPYTERHUB_API_URL": "http://127.0.0.1:1/hub/api",
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_CLIENT_ID": "service-cluster",
        "JUPYTERHUB_SERVICE_PREFIX": "/services/cluster/",
    }
    argv = [sys.executable, "-m", f"portal.{service}"]
    done = subprocess.run(
        argv, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
