"""``docs/how-to/use-the-spawner-alone.md``, followed to the letter beside a Slurm that is not ours.

Its commands and files are those of the page, from our wheels. Other than the page says are: folders
and names that must not meet those of the machine, and uv in the place of pip, for its cache.
"""

import grp
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import cast

import bootstrap
import httpx
import pytest
from wheels import build_wheels

from tests import faults
from tests.instance import PASSWORD, PREFIX, ROOT, USERS, Instance
from tests.network.sockets import free_ports
from tests.pages import blocks
from tests.servers import accounting
from tests.servers.accounting import AccountedCluster
from tests.visitor import Visitor
from tests.waiting import until

PAGE = ROOT / "docs/how-to/use-the-spawner-alone.md"
LAUNCHER = Path(f"/usr/local/libexec/{PREFIX}alone-launcher")
USER = USERS[0]
IDLE_SECONDS = 12
# What a site has before it reads the page: a hub, a way to log in, and a Slurm.
HAD_BEFORE = """
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "{password}"
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = "http://127.0.0.1:{ports[0]}"
c.JupyterHub.hub_port = {ports[1]}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
c.ConfigurableHTTPProxy.command = {proxy!r}
"""
# The page has its launcher at the usual place.
OTHER_LAUNCHER = f"reconciler += ['--path={LAUNCHER}', '--interval=2']\n"
# In place of two hours, so that the test sees the end.
SHORTER = f"\nc.GpuSlurmSpawner.idle_minutes = {IDLE_SECONDS / 60}\n"


@dataclass(frozen=True)
class Alone:
    """A hub that was set up by the page; a visitor takes it for an instance."""

    url: str
    slurm: AccountedCluster
    log: Path

    def host_of(self, name: str) -> str:
        return self.url

    def jobs(self, *, user: str) -> list[str]:
        return self.slurm.slurm("squeue", "--noheader", "-o", "%i", f"--user={user}").split()

    def cluster(self) -> str:
        """Return what helps to understand a failure."""
        return self.slurm.slurm("squeue") + self.log.read_text("utf-8")[-4000:]


class Reader:
    """Does what the page says, with other folders and names."""

    def __init__(self, folder: Path, slurm: AccountedCluster, hub_user: str) -> None:
        wheels = {wheel.parent for wheel in build_wheels()}
        self._uv = bootstrap.deploy_environment() / "bin/uv"
        self._other = {
            "/opt/": f"{folder}/opt/",
            "/srv/wheels": str(wheels.pop()),
            "/etc/jupyterhub/": f"{folder}/etc/",
            "/etc/slurm/slurm.conf": str(slurm.conf),
            "/usr/local/libexec/slurm-launcher": str(LAUNCHER),
            "/srv/data": f"{folder}/data",
            "--hub-user=jupyterhub": f"--hub-user={hub_user} --path={LAUNCHER}",
            "%data-scientists": USER,
        }

    def read(self, text: str) -> str:
        """Return what the page says, for here."""
        for said, here in self._other.items():
            text = text.replace(said, here)
        return text

    def run(self, block: str) -> None:
        """Run the commands of a block."""
        uv_settings = {"UV_CACHE_DIR": str(bootstrap.CACHE / "uv")}
        for line in self.read(block).splitlines():
            argv = shlex.split(line)
            if Path(argv[0]).name == "pip":
                python = Path(argv[0]).with_name("python")
                uv = [self._uv, "pip", "install", "--quiet", "--python", python]
                argv = [*map(str, uv), *argv[2:]]
            done = subprocess.run(
                argv,
                env=bootstrap.child_environment(PATH="/usr/bin:/bin", **uv_settings),
                cwd="/",
                umask=0o022,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


@contextmanager
def hub(folder: Path, account: pwd.struct_passwd, ports: list[int]) -> Iterator[Path]:
    """Run the hub as its account; give its log."""
    programs, log = folder / "opt/jupyterhub/bin", folder / "hub.log"
    state = folder / "state"
    state.mkdir()
    os.chown(state, account.pw_uid, account.pw_gid)
    with log.open("wb") as out:
        running = subprocess.Popen(
            [str(programs / "jupyterhub"), "-f", str(folder / "etc/jupyterhub_config.py")],
            env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(state), "PYTHONUNBUFFERED": "1"},
            cwd=state,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            stdout=out,
            stderr=out,
        )
    try:
        yield log
    finally:
        running.terminate()
        running.wait(60)


@pytest.fixture(scope="module")
def alone(portal: Instance) -> Iterator[Alone]:
    """What the page makes."""
    account = pwd.getpwuid(Path(f"/proc/{faults.pid_of('hub')}").stat().st_uid)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="alone-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        for name in ("etc", "data"):
            (folder / name).mkdir()
        stack.callback(Path("/etc/sudoers.d", LAUNCHER.name).unlink, missing_ok=True)
        for file in (LAUNCHER, LAUNCHER.with_name(f"{LAUNCHER.name}.json")):
            stack.callback(file.unlink, missing_ok=True)
        slurm = stack.enter_context(accounting.running(portal))
        slurm.register(accounts=[{"name": grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name}], qos=[])
        reader = Reader(folder, slurm, account.pw_name)
        for block in blocks(PAGE, "console"):
            reader.run(block)
        proxy, _ = bootstrap.environment("proxy", bootstrap.CACHE / "environments")
        program = proxy / "node_modules/configurable-http-proxy/bin/configurable-http-proxy"
        ports = free_ports(3)
        before = HAD_BEFORE.format(
            password=PASSWORD, ports=ports, proxy=["/usr/bin/node", str(program)]
        )
        of_hub, of_hub_for_lost, of_hub_for_idle, of_culler, of_hub_for_news = map(
            reader.read, blocks(PAGE, "python")
        )
        settings = [before, of_hub, of_hub_for_lost, OTHER_LAUNCHER, of_hub_for_idle]
        settings += [of_hub_for_news, SHORTER]
        (folder / "etc/jupyterhub_config.py").write_text("\n".join(settings))
        (folder / "etc/idle_culler.py").write_text(of_culler + "c.IdleCuller.cull_every = 2\n")
        log = stack.enter_context(hub(folder, account, ports))
        yield Alone(f"http://127.0.0.1:{ports[0]}", slurm, log)


def is_logged_in(visitor: Visitor) -> bool:
    try:
        return visitor.log_in().url.path == "/hub/home"
    except httpx.TransportError:
        return False


@pytest.fixture
def user(alone: Alone) -> Iterator[Visitor]:
    visitor = Visitor(cast("Instance", alone), USER)
    until(lambda: is_logged_in(visitor), seconds=60, every=1, what="one can log in")
    yield visitor
    visitor.leave()
    visitor.close()


@pytest.mark.timeout(600)
def test_one_starts_uses_extends_and_stops_a_session(alone: Alone, user: Visitor) -> None:
    job_id = user.start_and_wait(gpus=2, hours=1)
    assert alone.jobs(user=USER) == [job_id]

    def job() -> str:
        return alone.slurm.slurm("scontrol", "show", "job", "--oneliner", job_id)

    assert "JobName=hub1-" in job()
    assert "TimeLimit=01:00:00" in job()
    assert user.run("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])").strip() == "0,1"
    extension = "/lab/extensions/data-scientist-portal/package.json"
    described = user.session("GET", extension).json()
    entry = described["jupyterlab"]["_build"]["load"]
    assert user.session("GET", f"{PurePath(extension).parent}/{entry}").status_code == 200
    extended = user.session("POST", "/portal/clock/extend", json={"minutes": 30})
    assert extended.status_code == 200, extended.text
    assert "TimeLimit=01:30:00" in job()
    user.stop()
    assert alone.jobs(user=USER) == []


@pytest.mark.timeout(600)
def test_a_session_that_nobody_uses_ends(alone: Alone, user: Visitor) -> None:
    user.start_and_wait(gpus=0)
    try:
        until(lambda: user.server() is None, seconds=120, what="the culler has ended it")
    except AssertionError as error:
        error.add_note(alone.cluster())
        raise
    assert "not been used for" in user.note()
    # What the page's observer prints.
    assert f"{USER} 0 " in alone.log.read_text("utf-8")


@pytest.mark.timeout(300)
def test_a_session_that_the_hub_does_not_know_is_ended(alone: Alone, user: Visitor) -> None:
    """What a hub leaves that was killed after a submission and has lost its database since."""
    assert user.server() is None
    comment = f"hub1:{'0' * 32}"
    job_id = alone.slurm.slurm(
        *("sbatch", "--parsable", "--job-name=hub1-lost", f"--comment={comment}"),
        *("--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 600"),
        user=USER,
    ).strip()
    try:
        until(lambda: job_id not in alone.jobs(user=USER), seconds=60, what="it is ended")
    except AssertionError as error:
        error.add_note(alone.cluster())
        raise
    assert f"Jobs {job_id} of {USER} are a session that belongs to no server" in (
        alone.log.read_text("utf-8")
    )
