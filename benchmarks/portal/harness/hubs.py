"""Two hubs on one virtual cluster: ours, as it is deployed, and one with upstream's spawner.

Both run as the same ordinary user, in the same environment, each with a proxy of its own, and both
submit jobs of the same size as real users through sudo. What differs is what is compared.

*ours* is configured by ``dsportal.hub`` from a portal.toml, its launcher installed as the
deployment does it. *upstream* is ``batchspawner.MultiSlurmSpawner``: SlurmSpawner for clusters of
several slurmds on one machine. Its commands, its script and its intervals are its defaults, its
sudo rule is its documentation's. Besides the size of a job, set are: absolute paths of Slurm's
programs (to count them), and the stub in place of the single-user server.

There are two upstreams. In *upstream_wrapped* the job is upstream's whole own: ``srun``, and the
wrapper ``batchspawner-singleuser``, which imports JupyterHub for 0.7 s. On a real cluster that
time is spent on the nodes, here on the cores of the hub, so the fair rival is *upstream*: its job
runs the stub without srun and wrapper, as ours does.
"""

import compileall
import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.portal.harness import stub_session
from benchmarks.portal.harness.people import GROUP, HUB_USER
from benchmarks.portal.harness.virtual_cluster import VirtualCluster
from tests.instance import ROOT
from tests.network.sockets import free_ports
from tests.waiting import until

TOKEN = "0" * 32
PASSWORD = "benchmark"  # noqa: S105  # for two hubs that live for minutes, on 127.0.0.1
KINDS = ("ours", "upstream", "upstream_wrapped")
_PROGRAMS = ("sbatch", "squeue", "scancel", "sinfo", "scontrol")

_COMMON = """
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "{password}"
c.Authenticator.allow_all = True
c.Authenticator.manage_groups = False
# Else each request with our own token hashes it 16,384 times; a browser has a cookie.
c.JupyterHub.trust_user_provided_tokens = True
c.JupyterHub.services.append({{"name": "bench", "api_token": "{token}"}})
c.JupyterHub.load_roles.append({{"name": "bench", "services": ["bench"], "scopes": [
    "admin:users", "admin:servers", "read:hub", "tokens"]}})
"""

_OURS = """
[hub]
name = "{name}"
public_url = "http://127.0.0.1:{port}"
api_url = "http://127.0.0.1:{hub_port}"
proxy_api_url = "http://127.0.0.1:{api_port}"
state_dir = "{state}"
[authentication]
method = "pam"
allowed_groups = ["{group}"]
[slurm]
config_file = "{slurm_conf}"
bin_dir = "{programs}"
launcher = "{launcher}"
[session]
python = "{stub}"
[cluster]
url = "http://127.0.0.1:{cluster_port}"
"""

_UPSTREAM = """
import batchspawner
c = get_config()
c.JupyterHub.services = []
c.JupyterHub.load_roles = []
c.JupyterHub.spawner_class = batchspawner.MultiSlurmSpawner
c.MultiSlurmSpawner.daemon_resolver = dict.fromkeys({nodes!r}, "127.0.0.1")
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.JupyterHub.db_url = "sqlite:///{state}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "{state}/jupyterhub_cookie_secret"
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.auth_token = "{token}"
c.JupyterHub.cleanup_servers = False
c.SlurmSpawner.req_nprocs = "8"
c.SlurmSpawner.req_memory = "48G"
c.SlurmSpawner.req_gres = "gpu:{gpus}"
c.SlurmSpawner.req_runtime = "8:00:00"
c.SlurmSpawner.batch_submit_cmd = "{programs}/sbatch --parsable"
c.SlurmSpawner.batch_query_cmd = "{programs}/squeue -h -j {{job_id}} -o '%T %B'"
c.SlurmSpawner.batch_cancel_cmd = "{programs}/scancel {{job_id}}"
c.SlurmSpawner.environment = {{"SLURM_CONF": "{slurm_conf}"}}
"""

_UPSTREAM_LIGHT = """
c.SlurmSpawner.req_srun = ""
c.SlurmSpawner.batchspawner_singleuser_cmd = "{stub} wrapper"
c.SlurmSpawner.cmd = ["stub"]
c.SlurmSpawner.batch_script = batchspawner.SlurmSpawner.batch_script.default_value.replace(
    "#SBATCH --get-user-env=L\\n", "")
"""

_UPSTREAM_WRAPPED = """
c.SlurmSpawner.batchspawner_singleuser_cmd = "{python} -m batchspawner.singleuser"
c.SlurmSpawner.cmd = ["{stub}"]
"""


@dataclass(frozen=True)
class Hub:
    """A running hub."""

    kind: str
    """One of `KINDS`."""
    port: int
    """Where its proxy listens, on 127.0.0.1."""
    pid: int
    log: Path
    executions: Path
    """A line for each program of Slurm that was run, by whomever: its name."""

    @property
    def url(self) -> str:
        """The address of its proxy."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> httpx.Client:
        """Return a client of its REST API with an administrator's rights."""
        return httpx.Client(
            base_url=f"{self.url}/hub/api",
            headers={"Authorization": f"token {TOKEN}"},
            timeout=120,
        )

    def counts(self) -> dict[str, int]:
        """Return how often each program of Slurm has been run for this hub."""
        lines = self.executions.read_text().split()
        return {name: lines.count(name) for name in sorted(set(lines))}

    def add_users(self, names: list[str]) -> None:
        """Make the users known to the hub."""
        with self.api as api:
            api.post("/users", json={"usernames": names}).raise_for_status()


def cpu_seconds(pid: int) -> float:
    """Return the time that a process itself has used; not the programs it ran."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Workshop:
    """What the hubs share: a copy of the code, an interpreter that finds it, the stub."""

    folder: Path
    cluster: VirtualCluster
    name: str
    """Of our hub: what it marks its jobs with."""

    @property
    def python(self) -> Path:
        """The hubs' interpreter."""
        return self.folder / "environment" / "bin" / "python"

    @property
    def stub(self) -> Path:
        """What a job runs."""
        return self.folder / "stub-session"

    @property
    def launcher(self) -> Path:
        """The launcher as it is deployed."""
        return self.folder / "libexec" / "slurm-launcher"

    def programs(self, kind: str) -> Path:
        """Return the folder of the counting programs of one hub."""
        return self.folder / kind / "bin"

    def sudo_rules(self) -> list[str]:
        """Return what sudo must allow: our deployment's rule, and upstream's documented one."""
        upstream = [
            str(self.programs(kind) / name)
            for kind in KINDS[1:]
            for name in ("sbatch", "squeue", "scancel")
        ]
        return [f'NOPASSWD: {self.launcher} ""', f"NOPASSWD:SETENV: {', '.join(upstream)}"]


def workshop(cluster: VirtualCluster, folder: Path, name: str = "bench") -> Workshop:
    """Lay out what the hubs need, readable by every user, in ``folder``."""
    folder.mkdir(mode=0o755)
    made = Workshop(folder, cluster, name)
    code = folder / "code"
    for package in (ROOT / "portal/dsportal", ROOT / "spawner/jupyterhub_gpu_slurm"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(package, code / package.name, ignore=ignored)
    compileall.compile_dir(code, quiet=1)
    _make_environment(made.python.parents[1], code)
    _install(made.stub, Path(stub_session.__file__).read_text(), 0o755)
    made.launcher.parent.mkdir()
    source = (ROOT / "spawner/jupyterhub_gpu_slurm/slurm/launcher.py").read_text()
    _install(made.launcher, f"{_launcher_interpreter()}\n{source}", 0o755)
    for kind in KINDS:
        place = folder / kind
        (place / "bin").mkdir(parents=True)
        (place / "state").mkdir()
        shutil.chown(place / "state", HUB_USER)
        _install(place / "executions", "", 0o666)
        for name in _PROGRAMS:
            words = f'#!/bin/dash\necho {name} >> {place}/executions\nexec /usr/bin/{name} "$@"\n'
            _install(place / "bin" / name, words, 0o755)
    settings = {
        "slurm_conf": str(cluster.conf),
        "bin_dir": str(made.programs("ours")),
        "mark": name,
    }
    _install(made.launcher.with_suffix(".json"), json.dumps(settings), 0o644)
    return made


@contextmanager
def running(kind: str, shop: Workshop, gpus: int = 1) -> Iterator[Hub]:
    """Run a hub of this kind with its proxy; its upstream jobs get ``gpus`` GPUs."""
    place = shop.folder / kind
    port, hub_port, api_port, cluster_port = free_ports(4)
    values = {
        "name": shop.name,
        "port": port,
        "hub_port": hub_port,
        "api_port": api_port,
        "cluster_port": cluster_port,
        "state": place / "state",
        "group": GROUP,
        "slurm_conf": shop.cluster.conf,
        "programs": shop.programs(kind),
        "launcher": shop.launcher,
        "stub": shop.stub,
        "python": shop.python,
        "nodes": shop.cluster.node_names,
        "gpus": gpus,
        "token": TOKEN,
        "password": PASSWORD,
    }
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(place / "state"),
        "CONFIGPROXY_AUTH_TOKEN": TOKEN,
    }
    if kind == "ours":
        config = ROOT / "jupyterhub_config.py"
        _install(place / "portal.toml", _OURS.format(**values), 0o644)
        (place / "conf.d").mkdir(exist_ok=True)
        _install(place / "conf.d" / "bench.py", _COMMON.format(**values), 0o644)
        environment["PORTAL_SETTINGS"] = str(place / "portal.toml")
    else:
        environment["SLURM_CONF"] = str(shop.cluster.conf)
        config = place / "config.py"
        variant = _UPSTREAM_WRAPPED if kind == "upstream_wrapped" else _UPSTREAM_LIGHT
        _install(config, (_UPSTREAM + variant + _COMMON).format(**values), 0o644)
    copy = place / "jupyterhub_config.py"
    if config != copy:
        _install(copy, config.read_text(), 0o644)
    proxy = [
        "/usr/bin/node",
        str(_proxy() / "node_modules/configurable-http-proxy/bin/configurable-http-proxy"),
        "--ip=127.0.0.1",
        f"--port={port}",
        "--api-ip=127.0.0.1",
        f"--api-port={api_port}",
        f"--error-target=http://127.0.0.1:{hub_port}/hub/error",
        "--log-level=warn",
    ]
    hub = [str(shop.python), "-Im", "jupyterhub", "-f", str(copy)]
    log = place / "hub.log"
    account = pwd.getpwnam(HUB_USER)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("ab") as output:
            for argv in (proxy, hub):
                processes.append(
                    subprocess.Popen(
                        argv,
                        cwd=place / "state",
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        user=account.pw_uid,
                        group=account.pw_gid,
                        extra_groups=[],
                        start_new_session=True,
                    )
                )
        running_hub = Hub(kind, port, processes[1].pid, log, place / "executions")
        until(lambda: _answers(running_hub), seconds=60, what=f"the hub answers, see {log}")
        yield running_hub
    except BaseException:
        lines = log.read_text(errors="replace").splitlines()
        worth_reading = [line for line in lines if "200 GET" not in line]
        print(*worth_reading[-100:], sep="\n", file=sys.stderr)
        raise
    finally:
        for process in reversed(processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _answers(hub: Hub) -> bool:
    try:
        return httpx.get(f"{hub.url}/hub/api/", timeout=1).status_code == 200
    except httpx.TransportError:
        return False


def _make_environment(place: Path, code: Path) -> None:
    """Make an environment that finds our copy, and the packages of the one that runs this."""
    subprocess.run(
        ["/usr/bin/python3", "-m", "venv", "--without-pip", str(place)], check=True, cwd="/"
    )
    (packages,) = place.glob("lib/python3*/site-packages")
    (packages / "benchmark.pth").write_text(f"{code}\n{sysconfig.get_path('purelib')}\n")


def _launcher_interpreter() -> str:
    """Return the first line that the deployment gives to the launcher."""
    tasks = ROOT / "deploy/ansible/roles/portal/tasks/launcher.yml"
    (line,) = (line.strip() for line in tasks.read_text().splitlines() if "#!/" in line)
    return line


def _proxy() -> Path:
    shown = subprocess.run(
        [str(ROOT / "deploy" / "venv"), "proxy"], check=True, capture_output=True, text=True
    )
    return Path(shown.stdout.strip())


def _install(path: Path, text: str, mode: int) -> None:
    path.write_text(text)
    path.chmod(mode)
