"""The test instance of the portal: brought up by the deployment, asked as an administrator would.

It is made by ``deploy/up test`` from the same roles as the real one, with ports, folders, nodes and
users of its own. Missing parts are errors, never skips.
"""

import fcntl
import os
import ssl
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    # Each process of pytest-xdist (gw0, gw1, ...) has its own; what it starts is told so, too.
    os.environ["PORTAL_TEST_NUMBER"] = str(int(worker.removeprefix("gw")) + 1)
NUMBER = os.environ.get("PORTAL_TEST_NUMBER", "1")
"""Of the test instances that may run side by side, which one this is."""
PREFIX = "test" if NUMBER == "1" else f"test{NUMBER}"
FOLDER_NAME = f"data-scientist-portal-{PREFIX}"
SETTINGS = Path("/etc", FOLDER_NAME, "portal.toml")
LOGS = Path("/var/log", FOLDER_NAME)
_LOCKS = Path("/run/lock")
SYSTEM_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
USERS = tuple(f"{PREFIX}user{number}" for number in range(1, 6))
NODES = tuple(f"{PREFIX}node00{number}" for number in range(1, 4))
ADMIN = f"{PREFIX}admin"
LIMITED = f"{PREFIX}limited"
"""In a group with limits: ``limits.groups`` of the test instance's settings."""
ENTERER = LIMITED
"""May open the sessions of others: ``access.server_access_groups``."""
IDLER = f"{PREFIX}idle"
"""In a group whose sessions end when they are unused for seconds: ``idle.groups``."""
FILLER = USERS[4]
"""Whose plain jobs take GPUs away where a test needs a full cluster."""
PASSWORD = "portal"


def hub_log(since: int = 0) -> str:
    """Return what the hub has logged after so many bytes."""
    return (LOGS / "hub.log").read_bytes()[since:].decode(errors="replace")


def await_hub_log(text: str, *, since: int = 0, seconds: float = 20) -> None:
    """Wait until the hub has logged a text: the supervisor writes it a moment later."""
    until(lambda: text in hub_log(since), seconds=seconds, what=f"the hub has logged: {text}")


@dataclass(frozen=True)
class Instance:
    """A running portal with its cluster."""

    settings: dict[str, Any]

    @property
    def url(self) -> str:
        """The address a browser on this machine uses, without a slash at its end."""
        if named := self.settings["hub"].get("subdomain_host"):
            return str(named)
        parts = urlsplit(self.settings["hub"]["public_url"])
        return f"{parts.scheme}://127.0.0.1:{parts.port}"

    def host_of(self, name: str) -> str:
        """Return the address where somebody's sessions are, without a path."""
        if not self.settings["hub"].get("subdomain_host"):
            return self.url
        return self.url.replace("://", f"://{name}.", 1)

    def hub(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Ask the hub past the proxy, as one of its own parts does."""
        folder = Path(self.settings["hub"]["state_dir"]) / "internal-tls"
        tls = ssl.create_default_context(cafile=str(folder / "hub-ca_trust.crt"))
        name = folder / "hub-internal/hub-internal"
        tls.load_cert_chain(name.with_suffix(".crt"), name.with_suffix(".key"))
        address = self.settings["hub"]["api_url"].replace("http:", "https:").rstrip("/")
        return httpx.request(method, f"{address}/hub{path}", verify=tls, **request)

    @property
    def mark(self) -> str:
        """What the jobs' names of this hub begin with."""
        return str(self.settings["hub"]["name"])

    @property
    def slurm_environment(self) -> dict[str, str]:
        """What Slurm's programs need to find this cluster."""
        conf = self.settings["slurm"]["config_file"]
        return {"SLURM_CONF": conf, "LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}

    def slurm(self, *argv: str, user: str | None = None, stdin: str = "", home: str = "/") -> str:
        """Run one of Slurm's programs, as root or as a user; return what it printed."""
        prefix = [] if user is None else ["/usr/sbin/runuser", "-u", user, "--"]
        done = subprocess.run(
            [*prefix, *argv],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.slurm_environment,
            cwd=home,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def jobs(self, *, user: str | None = None) -> list[str]:
        """Return the numbers of all jobs that are not over."""
        of = [] if user is None else [f"--user={user}"]
        return self.slurm("squeue", "--noheader", "-o", "%i", *of).split()

    def cluster(self) -> str:
        """Return what Slurm says of its nodes and jobs, for a test that has waited in vain."""
        nodes = self.slurm("sinfo", "--Node", "--noheader", "--partition=sxm2", "-o", "%N: %T, %E")
        jobs = self.slurm("squeue", "--noheader", "-o", "%i of %u: %T, %r %N")
        return f"{nodes}{jobs}"

    def cancel(self, *job_ids: str, seconds: float = 30) -> None:
        """Cancel jobs, and wait until they are over: the next test counts those that there are."""
        if not job_ids:
            return
        self.slurm("scancel", *job_ids)
        until(
            lambda: not set(job_ids) & set(self.jobs()), seconds=seconds, what="the jobs are over"
        )

    @contextmanager
    def gpus_taken(self, nodes: int = 3, *, gpus: int = 4) -> Iterator[list[str]]:
        """Hold the GPUs of some nodes with plain jobs of another user; give their numbers."""
        argv = ["sbatch", "--parsable", "--nodes=1", f"--gres=gpu:{gpus}", "--time=30", "--mem=1G"]
        argv += ["--output=/dev/null", "--wrap=exec sleep 1800"]
        job_ids = [self.slurm(*argv, user=FILLER).strip() for _ in range(nodes)]
        try:
            until(
                lambda: all(self.job(job_id)["JobState"] == "RUNNING" for job_id in job_ids),
                seconds=20,
                what="the jobs that take the GPUs run",
            )
            yield job_ids
        finally:
            self.cancel(*job_ids)

    def job(self, job_id: str) -> dict[str, str]:
        """Return what ``scontrol show job -d`` tells."""
        text = self.slurm("scontrol", "show", "job", "-d", "--oneliner", job_id)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)


def deploy(verb: str, *arguments: str) -> None:
    """Run ``deploy/up`` or ``deploy/down``; its words go to the terminal."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(
        [str(ROOT / "deploy" / verb), *arguments], check=True, env=environment, timeout=1500
    )


@contextmanager
def running() -> Iterator[Instance]:
    """Bring the test instance up, and take it down at the end.

    With ``PORTAL_TEST_KEEP=1`` an instance that runs is used as it is and left running.
    """
    keep = os.environ.get("PORTAL_TEST_KEEP") == "1"
    with nullcontext() if keep else _no_others():
        if not (keep and SETTINGS.exists()):
            deploy("up", "test")
        _trust_its_authority()
        try:
            yield Instance(tomllib.loads(SETTINGS.read_text(encoding="utf-8")))
        finally:
            if not keep:
                deploy("down", "test")


@contextmanager
def _no_others() -> Iterator[None]:
    """Hold the instance; raises `RuntimeError` where other tests or a benchmark do."""
    with (_LOCKS / FOLDER_NAME).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RuntimeError(
                f"test instance {NUMBER} is in use by other tests or a benchmark, which would lose "
                "it: set PORTAL_TEST_NUMBER to another number"
            ) from error
        yield


def _trust_its_authority() -> None:
    """Let all clients of this process, and its children's, take the test's certificate."""
    folder = SETTINGS.parent / "test-tls"
    known = [SYSTEM_AUTHORITIES, folder / "authority.crt"]
    bundle = folder / "trusted.crt"
    bundle.write_bytes(b"".join(file.read_bytes() for file in known if file.exists()))
    os.environ["SSL_CERT_FILE"] = str(bundle)


def trust() -> ssl.SSLContext:
    """Return what takes the test's certificate; to read all authorities costs tens of ms.

    Each thread has its own: httpcore changes it at each connection, and another that begins one at
    that moment sends half of it (seen twice among thousands of the soak's).
    """
    return _trust(os.environ.get("SSL_CERT_FILE"), threading.get_ident())


@cache
def _trust(bundle: str | None, _thread: int) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=bundle)
