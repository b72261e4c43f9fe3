"""How long from "start" to a ready server: this spawner, upstream's, and a bare JupyterLab.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.session_start [--runs 10]

All three run on the test instance's cluster, to and fro: a noisy machine is noisy for all.
*ours* and *upstream* are measured at the REST API: from the POST that starts a server to the event
that says it is ready, each with one GPU, 8 cores and 48 GB. It is ``batchspawner.SlurmSpawner``
on a second hub with its own proxy and its own wrapper; the one thing changed for it is the address
of the node, since the virtual nodes' names do not resolve. *floor* is ``jupyter lab`` from the
session's own environment, without Slurm and without a hub, until it answers HTTP.

The last line is one JSON object: seconds (medians, minima, maxima) and ratios.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.commit import circumstances, commit
from tests import instance
from tests.instance import USERS, Instance
from tests.network.sockets import free_port, free_ports
from tests.visitor import Visitor
from tests.waiting import until

USER = USERS[0]
UPSTREAM_USER = USERS[1]
TOKEN = "0" * 32

UPSTREAM_CONFIG = """
import batchspawner

class SlurmSpawner(batchspawner.SlurmSpawner):
    def state_gethost(self):
        return "127.0.0.1"

c = get_config()
c.JupyterHub.spawner_class = SlurmSpawner
c.JupyterHub.authenticator_class = "null"
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.JupyterHub.services = [{{"name": "bench", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "bench", "scopes": ["admin:users", "admin:servers"],
                            "services": ["bench"]}}]
c.Authenticator.allow_all = True
c.SlurmSpawner.req_nprocs = "8"
c.SlurmSpawner.req_memory = "48G"
c.SlurmSpawner.req_gres = "gpu:1"
c.SlurmSpawner.req_runtime = "8:00:00"
c.SlurmSpawner.batch_submit_cmd = "/usr/bin/sbatch --parsable"
c.SlurmSpawner.batch_query_cmd = '/usr/bin/squeue -h -j {{job_id}} -o "%T %B"'
c.SlurmSpawner.batch_cancel_cmd = "/usr/bin/scancel {{job_id}}"
c.SlurmSpawner.exec_prefix = "/usr/bin/sudo -E -u {{username}}"
c.SlurmSpawner.batchspawner_singleuser_cmd = "{bin}/batchspawner-singleuser"
c.SlurmSpawner.cmd = ["{bin}/jupyterhub-singleuser"]
c.SlurmSpawner.environment = {{"SLURM_CONF": "{slurm_conf}", "PATH": "{bin}:/usr/bin:/bin"}}
"""


@dataclass(frozen=True)
class HubApi:
    """A hub's REST API, and the headers that let us in."""

    url: str
    headers: dict[str, str]

    def client(self) -> httpx.Client:
        """Return a client that is let in."""
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=120)

    def time_a_start(self, user: str, options: dict[str, object]) -> float:
        """Start a server, wait for the event that it is ready, stop it; return the seconds."""
        with self.client() as http:
            started = time.perf_counter()
            http.post(f"/users/{user}/server", json=options).raise_for_status()
            with http.stream("GET", f"/users/{user}/server/progress") as events:
                for line in events.iter_lines():
                    if line.startswith("data:"):
                        event = json.loads(line.removeprefix("data:"))
                        if event.get("failed"):
                            raise RuntimeError(f"the start failed: {event['message']}")
                        if event.get("ready"):
                            break
            seconds = time.perf_counter() - started
        self.stop(user)
        return seconds

    def stop(self, user: str) -> None:
        """Stop a server, and wait until it has ended."""
        with self.client() as http:
            http.delete(f"/users/{user}/server").raise_for_status()
            until(
                lambda: not http.get(f"/users/{user}").json()["servers"],
                seconds=60,
                what=f"the server of {user} has stopped",
            )


@contextmanager
def upstream_hub(portal: Instance, folder: Path, more: str = "") -> Iterator[HubApi]:
    """Run a second hub, with upstream's spawner and ``more`` settings, on the same cluster."""
    port, hub_port, api_port = free_ports(3)
    (proxy,) = sorted(
        Path(portal.settings["session"]["python"]).parents[2].glob("proxy-*"),
        key=lambda path: path.stat().st_mtime,
    )[-1:]
    config = folder / "upstream_config.py"
    config.write_text(
        UPSTREAM_CONFIG.format(
            port=port,
            hub_port=hub_port,
            api_port=api_port,
            proxy=proxy / "node_modules" / ".bin" / "configurable-http-proxy",
            token=TOKEN,
            bin=Path(sys.executable).parent,
            slurm_conf=portal.settings["slurm"]["config_file"],
        )
        + more
    )
    with (folder / "upstream.log").open("wb") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "jupyterhub"), "-f", str(config)],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "SLURM_CONF": portal.settings["slurm"]["config_file"]},
            start_new_session=True,
        )
    hub = HubApi(f"http://127.0.0.1:{port}/hub/api", {"Authorization": f"token {TOKEN}"})
    try:
        until(lambda: answers(f"{hub.url}/"), seconds=60, what="upstream's hub answers")
        httpx.post(f"{hub.url}/users/{UPSTREAM_USER}", headers=hub.headers).raise_for_status()
        yield hub
    except httpx.HTTPError:
        print((folder / "upstream.log").read_text(errors="replace")[-4000:], file=sys.stderr)
        raise
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def answers(url: str) -> bool:
    """Say whether there is an answer, and not an excuse.

    It is asked without a pause, beside what starts: a context of its own would take it 25 ms.
    """
    try:
        return httpx.get(url, timeout=1, verify=instance.trust()).status_code == 200
    except httpx.TransportError:
        return False


def time_a_bare_lab(portal: Instance, home: Path) -> float:
    """Start ``jupyter lab`` by itself; return the seconds until it answers."""
    port = free_port()
    jupyter = Path(portal.settings["session"]["python"]).parent / "jupyter"
    argv = [str(jupyter), "lab", "--no-browser", "--allow-root", f"--port={port}"]
    started = time.perf_counter()
    process = subprocess.Popen(
        argv,
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(
            lambda: answers(f"http://127.0.0.1:{port}/api"),
            seconds=60,
            every=0.01,
            what="the bare JupyterLab answers",
        )
        return time.perf_counter() - started
    finally:
        process.terminate()
        process.wait(30)


def summary(seconds: list[float]) -> dict[str, float]:
    """Return the figures of one series, in seconds."""
    return {
        "median": round(statistics.median(seconds), 3),
        "min": round(min(seconds), 3),
        "max": round(max(seconds), 3),
    }


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="starts of each kind")
    runs = parser.parse_args().runs
    series: dict[str, list[float]] = {"ours": [], "upstream": [], "floor": []}
    with instance.running() as portal, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        visitor = Visitor(portal, USER)
        visitor.log_in().raise_for_status()
        ours = HubApi(f"{portal.url}/hub/api", {"Authorization": f"token {visitor.token()}"})
        with upstream_hub(portal, folder) as upstream:
            kinds: dict[str, Callable[[], float]] = {
                "ours": lambda: ours.time_a_start(USER, {"gpus": 1}),
                "upstream": lambda: upstream.time_a_start(UPSTREAM_USER, {}),
                "floor": lambda: time_a_bare_lab(portal, folder),
            }
            for run in range(runs + 1):
                # The end of one may slow down the next: none always follows the same one.
                order = list(kinds) if run % 2 else list(reversed(kinds))
                once = {what: kinds[what]() for what in order}
                words = "  ".join(f"{what} {seconds:.2f} s" for what, seconds in once.items())
                print(f"{'warm-up' if run == 0 else f'run {run:2}'}  {words}", flush=True)
                if run > 0:
                    for what, seconds in once.items():
                        series[what].append(seconds)
        visitor.close()
    result = {
        "benchmark": "session_start",
        "runs": runs,
        "seconds": {what: summary(values) for what, values in series.items()},
        "ours_over_floor": ratio(series["ours"], series["floor"]),
        "ours_over_upstream": ratio(series["ours"], series["upstream"]),
        **circumstances(commit()),
    }
    for what in ("ours", "upstream", "floor"):
        print(f"{what:9} median {statistics.median(series[what]):.2f} s")
    print(f"ours / floor {result['ours_over_floor']}, to reach 0.35")
    print(f"ours / upstream {result['ours_over_upstream']}, to reach below 1")
    print(json.dumps(result))


def ratio(first: list[float], second: list[float]) -> float:
    """Return the median of the ratios of the pairs that were measured one after the other."""
    return round(statistics.median(a / b for a, b in zip(first, second, strict=True)), 3)


if __name__ == "__main__":
    main()
