"""The hub's services end with the hub, whenever it was killed."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsportal.hub import process as hub_process
from tests.checkout import PYTHONPATH
from tests.network.sockets import free_port
from tests.unit.portal.a_site import FILE


def test_who_started_a_service_is_there_until_another_has_adopted_it() -> None:
    assert hub_process.is_there({hub_process.VARIABLE: str(os.getppid())})
    assert not hub_process.is_there(hub_process.named())


@pytest.fixture
def silent_hub() -> Iterator[int]:
    """The port of a hub that takes connections and says nothing: that is no error, for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def environment(tmp_path: Path, silent_hub: int) -> dict[str, str]:
    """What a hub gives to its services; neither it nor Slurm answers."""
    # Without this file Slurm's programs would wait a minute for it; as it is, they give up at once.
    slurm = tmp_path / "slurm.conf"
    slurm.touch()
    file = tmp_path / "portal.toml"
    text = FILE.replace("/etc/slurm-portal-test/slurm.conf", str(slurm))
    file.write_text(f'{text}[cluster]\nurl = "http://127.0.0.1:{free_port()}"\n')
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": PYTHONPATH,
        "PORTAL_SETTINGS": str(file),
        "JUPYTERHUB_API_TOKEN": "secret",
        "JUPYTERHUB_API_URL": f"http://127.0.0.1:{silent_hub}/hub/api",
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_CLIENT_ID": "service-cluster",
        "JUPYTERHUB_SERVICE_PREFIX": "/services/cluster/",
    }


@pytest.mark.parametrize("service", ["cluster", "culler", "reconciler"])
def test_a_service_whose_hub_was_killed_before_it_looked_ends(
    service: str, environment: dict[str, str], tmp_path: Path
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    argv = [sys.executable, "-m", f"dsportal.{service}"]
    done = subprocess.run(
        argv,
        env=environment | {hub_process.VARIABLE: str(dead.pid)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("service", ["culler", "reconciler"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_service_that_is_told_to_end_says_nothing_of_it(
    service: str, number: signal.Signals, environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", f"dsportal.{service}"],
        env=environment | hub_process.named(),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        process.stderr.readline()
        process.send_signal(number)
        words = process.stderr.read()
    assert process.returncode == 0
    assert "Traceback" not in words
