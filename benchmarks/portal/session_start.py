"""How long from "start" to a ready server: this spawner, upstream's, and a bare JupyterLab.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.session_start [--runs 10]

All three run on the test instance's cluster, to and fro: a noisy machine is noisy for all.
*ours* and *upstream* are measured at the REST API: from the POST that starts a server to the event
that says it is ready, each with one GPU, 8 cores and 48 GB. It is ``batchspawner.SlurmSpawner``
on a second hub with its own proxy and its own wrapper; the one thing changed for it is the address
of the node, since the virtual nodes' names do not resolve. *floor* is ``jupyter lab`` from the
session's own environment, without Slurm and without a hub, until it answers HTTP.

After these, as many starts of ours and of the floor's are watched, which are not counted in the
above: *phases* says how long each took, up to the moment that it is named for, by the hub's log,
the session's log, and a look at processes and ``squeue`` every few milliseconds. See `start_phases`
and ``docs/reference/benchmarks.md``.

The last line is one JSON object: seconds (medians, minima, maxima) and ratios.
"""

import argparse
import json
import os
import pwd
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import sampler
from benchmarks.portal.harness.phases import (
    IMPORTED,
    SETTLED,
    JobSample,
    StartSeen,
    by_phase,
    durations,
    logged,
    start_phases,
)
from tests import instance
from tests.instance import LOGS, USERS, Instance
from tests.network.sockets import free_port, free_ports
from tests.visitor import Visitor
from tests.waiting import until

USER = USERS[0]
UPSTREAM_USER = USERS[1]
TOKEN = "0" * 32
LAB_LOG = "lab.log"
RUNTIME_FOLDERS = Path("/tmp")  # noqa: S108  read only, where the jobs of the test instance are

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
            self.start(http, user, options)
            seconds = time.perf_counter() - started
        self.stop(user)
        return seconds

    def start(self, http: httpx.Client, user: str, options: dict[str, object]) -> None:
        """Start a server, and wait for the event that it is ready."""
        http.post(f"/users/{user}/server", json=options).raise_for_status()
        with http.stream("GET", f"/users/{user}/server/progress") as events:
            for line in events.iter_lines():
                if line.startswith("data:"):
                    event = json.loads(line.removeprefix("data:"))
                    if event.get("failed"):
                        raise RuntimeError(f"the start failed: {event['message']}")
                    if event.get("ready"):
                        break

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
    with (home / LAB_LOG).open("wb") as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            argv,
            cwd=home,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            stdout=subprocess.DEVNULL,
            stderr=log,
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


@dataclass
class StartEye:
    """Looks at a session that starts, as little as it can: it starts on the same processors."""

    portal: Instance
    programs: Mapping[str, sampler.Program]
    state: str = ""
    seen: frozenset[str] = frozenset()

    def look(self) -> JobSample:
        """Ask Slurm only between `sbatch` and the job; look no more once the session's code runs.

        Asked while the launcher is awaited, it would take so long that `sbatch` is not seen.
        """
        if "session" in self.seen:
            return JobSample(time.time(), self.state, frozenset({"session"}))
        running = sampler.running(self.programs)
        at = time.time()
        self.seen |= running
        if "launcher" in self.seen and not running and self.state != "RUNNING":
            self.state = sampler.state_of(self.portal, f"--user={USER}")
            at = time.time()
        return JobSample(at, self.state, running)


def watch_a_start(portal: Instance, hub: HubApi) -> dict[str, float | None]:
    """Start a session as it is timed, and ask it something; return the seconds of each phase."""
    eye = StartEye(portal, sampler.programs(portal, USER))
    log_begin = (LOGS / "hub.log").stat().st_size
    with hub.client() as http:

        def start() -> tuple[float, float, float]:
            asked = time.time()
            hub.start(http, USER, {"gpus": 1})
            told = time.time()
            http.get(f"{portal.url}/user/{USER}/api/status").raise_for_status()
            return asked, told, time.time()

        samples, (asked, told, answered) = sampler.while_doing(start, eye.look)
    (job_id,) = portal.jobs(user=USER)
    instance.await_hub_log("seconds to start", since=log_begin)
    logs = Path(pwd.getpwnam(USER).pw_dir, ".local/state/data-scientist-portal")
    seen = StartSeen(
        asked,
        told,
        answered,
        samples,
        instance.hub_log(log_begin),
        (logs / f"session-{job_id}.log").read_text(errors="replace"),
        written(job_id),
    )
    hub.stop(USER)
    return start_phases(seen)


def written(job_id: str) -> dict[str, float]:
    """Return when the files that mark a phase were written in the session's own folder."""
    # Another test instance may have a job of the same number.
    found = RUNTIME_FOLDERS.glob(f"session-{job_id}-*")
    (folder,) = (one for one in found if one.owner() == USER)
    return {name: (folder / name).stat().st_mtime for name in (SETTLED, IMPORTED)}


def watch_a_bare_lab(portal: Instance, home: Path) -> dict[str, float | None]:
    """Start ``jupyter lab`` as it is timed; return the seconds of the phases that it has, too."""
    asked = time.time()
    answered = asked + time_a_bare_lab(portal, home)
    said = (home / LAB_LOG).read_text(errors="replace")
    listens = logged(said, " is running at")
    return durations(
        {"asked": asked, "first_line": logged(said), "listens": listens, "answers": answered}
    )


def summary(seconds: list[float]) -> dict[str, float]:
    """Return the figures of one series, in seconds."""
    return {
        "median": round(statistics.median(seconds), 3),
        "min": round(min(seconds), 3),
        "max": round(max(seconds), 3),
    }


def summaries(runs: Iterable[Mapping[str, float | None]]) -> dict[str, dict[str, float]]:
    """Return the figures of each phase of some runs."""
    return {phase: summary(seconds) for phase, seconds in by_phase(runs).items()}


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
        watched: dict[str, list[dict[str, float | None]]] = {"ours": [], "floor": []}
        for _ in range(runs):
            watched["ours"].append(watch_a_start(portal, ours))
            watched["floor"].append(watch_a_bare_lab(portal, folder))
        visitor.close()
    result = {
        "benchmark": "session_start",
        "runs": runs,
        "seconds": {what: summary(values) for what, values in series.items()},
        "phases": {what: summaries(found) for what, found in watched.items()},
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
