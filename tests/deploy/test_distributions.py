"""What anybody can install with pip, in an environment that has nothing else."""

import os
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PathDistribution
from pathlib import Path

import bootstrap
import httpx
import pytest
from wheels import build_wheels

from tests.network.sockets import free_ports
from tests.waiting import until

CONFIG = """
c.JupyterHub.spawner_class = "gpu-slurm"
c.JupyterHub.authenticator_class = "{authenticator}"
c.JupyterHub.bind_url = "http://127.0.0.1:{ports[0]}"
c.JupyterHub.hub_port = {ports[1]}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.JupyterHub.db_url = "sqlite://"
c.Authenticator.allow_all = True
"""


@pytest.fixture(scope="module")
def wheels() -> dict[str, Path]:
    """Our wheels, by the name of their distribution."""
    made = build_wheels()
    return {wheel.name.partition("-")[0].replace("_", "-"): wheel for wheel in made}


@pytest.mark.parametrize(
    ("name", "folder", "package", "entry_points"),
    [
        ("jupyterhub-gpu-slurm", "spawner", "jupyterhub_gpu_slurm", {"gpu-slurm"}),
        (
            "data-scientist-portal",
            "portal",
            "dsportal",
            {"portal", "directory", "portal-modules", "portal-images"},
        ),
    ],
)
def test_a_wheel_has_types_licence_readme_and_entry_points(
    wheels: dict[str, Path], name: str, folder: str, package: str, entry_points: set[str]
) -> None:
    source = bootstrap.REPOSITORY / folder
    wheel = zipfile.Path(wheels[name])
    (described,) = (part for part in wheel.iterdir() if part.name.endswith(".dist-info"))
    distribution = PathDistribution(described)
    metadata = distribution.metadata
    assert (wheel / package / "py.typed").is_file()
    assert (described / "licenses/LICENSE").read_text() == (source / "LICENSE").read_text()
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert {"Framework :: Jupyter", "Typing :: Typed"} <= set(metadata.get_all("Classifier") or ())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Description"].strip() == (source / "README.md").read_text().strip()
    assert {point.name for point in distribution.entry_points} == entry_points
    for module in (point.module.replace(".", "/") for point in distribution.entry_points):
        assert (wheel / f"{module}.py").is_file() or (wheel / module / "__init__.py").is_file()


def installed(folder: Path, *wanted: str | Path) -> Path:
    """Make an environment with these and what they ask for; return its programs."""
    uv = bootstrap.deploy_environment() / "bin/uv"
    settings = {"UV_CACHE_DIR": str(bootstrap.CACHE / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
    bootstrap.call([uv, "venv", "--quiet", "--python", bootstrap.PYTHON, folder], **settings)
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", folder / "bin/python"]
    bootstrap.call([*install, *wanted], **settings)
    return folder / "bin"


@pytest.fixture(scope="module")
def spawner_alone(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("alone") / "venv", wheels["jupyterhub-gpu-slurm"])


@pytest.fixture(scope="module")
def whole(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    both = (wheels["jupyterhub-gpu-slurm"], f"{wheels['data-scientist-portal']}[ldap]")
    return installed(tmp_path_factory.mktemp("whole") / "venv", *both)


def output(*argv: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in argv],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


OF_BATCHSPAWNER = """
import batchspawner

c.JupyterHub.spawner_class = "gpu-slurm"
c.Spawner.http_timeout = 120
c.Spawner.mem_limit = "8G"
c.BatchSpawnerBase.req_prologue = "module load python"
c.SlurmSpawner.batch_script = "#!/bin/bash\\n{cmd}\\n"
c.SlurmSpawner.req_partition = "sxm2"
c.SlurmSpawner.req_runtime = "8:00:00"
"""
OF_BATCHSPAWNER_NOW = """
c.GpuSlurmSpawner.req_partition = "sxm2"
c.GpuSlurmSpawner.req_runtime = "8:00:00"
c.Spawner.http_timeout = 120
"""


@contextmanager
def hub(programs: Path, folder: Path, authenticator: str, more: str = "") -> Iterator[str]:
    """Run a hub with a proxy of its own; give its address."""
    proxy, _ = bootstrap.environment("proxy", bootstrap.CACHE / "environments")
    program = proxy / "node_modules/configurable-http-proxy/bin/configurable-http-proxy"
    ports = free_ports(3)
    given = {"ports": ports, "authenticator": authenticator}
    config = folder / "jupyterhub_config.py"
    config.write_text(CONFIG.format(proxy=["/usr/bin/node", str(program)], **given) + more)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    argv = [str(programs / "jupyterhub"), "-f", str(config)]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(argv, env=environment, cwd=folder, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{ports[0]}"

    def answers() -> bool:
        assert running.poll() is None, (folder / "log").read_text()
        try:
            return httpx.get(f"{address}/hub/health", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(answers, seconds=60, what="the hub answers")
        yield address
    finally:
        running.terminate()
        running.wait(30)


def test_the_spawner_alone_is_found_by_its_name_and_its_traits_are_shown(
    spawner_alone: Path, tmp_path: Path
) -> None:
    shown = output(spawner_alone / "jupyterhub", "--help-all")
    assert "gpu-slurm: jupyterhub_gpu_slurm.GpuSlurmSpawner" in shown
    assert "--GpuSlurmSpawner.cores_per_gpu=" in shown
    with hub(spawner_alone, tmp_path, "dummy") as address:
        assert httpx.get(f"{address}/hub/login").status_code == 200


def test_a_configuration_for_batchspawner_is_obeyed_or_refused_by_name(
    spawner_alone: Path, tmp_path: Path
) -> None:
    config = tmp_path / "jupyterhub_config.py"
    config.write_text(OF_BATCHSPAWNER)
    done = subprocess.run(
        [str(spawner_alone / "jupyterhub"), "-f", str(config)],
        env={"PATH": f"{spawner_alone}:/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    for words in (
        "c.Spawner.mem_limit has no effect: ",
        "c.BatchSpawnerBase.req_prologue has no effect: ",
        "c.SlurmSpawner.batch_script has no effect: ",
        "c.SlurmSpawner.req_partition has no effect: write c.GpuSlurmSpawner.req_partition.",
    ):
        assert words in done.stderr
    assert "http_timeout" not in done.stderr
    assert "Traceback" not in done.stderr
    with hub(spawner_alone, tmp_path, "dummy", OF_BATCHSPAWNER_NOW) as address:
        assert httpx.get(f"{address}/hub/login").status_code == 200


def test_the_portal_brings_its_login_and_its_command(whole: Path, tmp_path: Path) -> None:
    shown = output(whole / "jupyterhub", "--help-all")
    assert "directory: dsportal.authentication.ldap.DirectoryAuthenticator" in shown
    assert "doctor" in output(whole / "portal", "--help")
