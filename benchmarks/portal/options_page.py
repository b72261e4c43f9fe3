"""How long the options form takes, on a cluster of 1,000 nodes with 500 jobs.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.options_page [--nodes 1000] [--jobs 500]

As root. On a private cluster of real slurmds (see `harness.virtual_cluster`) with 4 GPUs
each, in two partitions that hold all nodes; nine tenths of the jobs run, on 1, 2 or 4 GPUs, and one
tenth waits for more than there is. The hub is ours as it is deployed, with its launcher behind
sudo. Nothing is a stand-in but the nodes' hardware and what the jobs do (sleep).

Asked, through the proxy, by 20 people who have logged in:

- *form*: ``/hub/spawn``, one after another for a while, so that some of the answers wait for the
  look at the nodes, which is made every ten seconds;
- *forms_at_once*: the same, all 20 people at once, again and again;
- *availability* and *forecast*: what the form's script asks while it is open. A forecast is
  ``sbatch --test-only`` as the user, for a choice that nobody asked for before.

The last line is one JSON object; times are milliseconds.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import http, hubs, people, virtual_cluster
from benchmarks.portal.harness.answer_times import figures, log_in
from benchmarks.portal.harness.hubs import Hub
from benchmarks.portal.harness.virtual_cluster import VirtualCluster
from tests.waiting import until

KINDS = ("form", "forms_at_once", "availability", "forecast")
_PEOPLE = 20
_PAUSE_SECONDS = 0.1
_GPUS = (1, 2, 4)
_IN_THE_FORM = "What is free now"


def _submit(cluster: VirtualCluster, user: str, jobs: int) -> dict[str, int]:
    """Fill the cluster as a user; return how many jobs are in which state."""
    argv = ["sbatch", "--output=/dev/null", "--chdir=/", "--wrap=exec sleep 7200"]
    waiting = jobs // 10
    running = jobs - waiting
    for number in range(running):
        gpus = _GPUS[number % len(_GPUS)]
        size = [f"--gres=gpu:{gpus}", f"--cpus-per-task={8 * gpus}", f"--mem={48 * gpus}G"]
        cluster.slurm(*argv, *size, "--time=120", user=user)
    until(
        lambda: Counter(cluster.states().values())["RUNNING"] == running,
        seconds=300,
        every=2,
        what="the jobs run",
    )
    # All nodes whole: they wait as long as one job runs.
    whole = [f"--nodes={cluster.size.nodes}", "--exclusive", "--time=60"]
    for _ in range(waiting):
        cluster.slurm(*argv, *whole, user=user)
    return dict(Counter(cluster.states().values()))


async def _ask(hub: Hub, path: str, cookies: str, expected: str) -> float:
    """Ask once; return the milliseconds."""
    headers = {"Cookie": cookies, "X-XSRFToken": _xsrf(cookies)}
    started = time.perf_counter()
    status, body = await http.request(hub.port, "GET", path, headers)
    milliseconds = 1000 * (time.perf_counter() - started)
    if status != 200 or expected not in body:
        raise RuntimeError(f"{path} answered {status}: {body[-500:]}")
    return milliseconds


def _xsrf(cookies: str) -> str:
    return dict(one.split("=", 1) for one in cookies.split("; ")).get("_xsrf", "")


async def measure(
    hub: Hub,
    cookies: dict[str, str],
    asks: int,
    partition: str,
    kinds: Sequence[str] = KINDS,
) -> dict[str, list[float]]:
    """Ask so often, as people who have logged in; return the milliseconds by kind."""
    names = list(cookies)
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    await _ask(hub, "/hub/spawn", cookies[names[0]], _IN_THE_FORM)
    for number in range(asks):
        name = names[number % len(names)]
        times["form"].append(await _ask(hub, "/hub/spawn", cookies[name], _IN_THE_FORM))
        await asyncio.sleep(_PAUSE_SECONDS)
    for _ in range(asks // len(names)):
        times["forms_at_once"] += await asyncio.gather(
            *(_ask(hub, "/hub/spawn", cookies[name], _IN_THE_FORM) for name in names)
        )
        await asyncio.sleep(10 * _PAUSE_SECONDS)
    for number in range(asks):
        name = names[number % len(names)]
        path = f"/hub/api/gpu-session/availability/{name}"
        times["availability"].append(await _ask(hub, path, cookies[name], partition))
        await asyncio.sleep(_PAUSE_SECONDS)
    for number in range(asks // 4 if "forecast" in kinds else 0):
        name = names[number % len(names)]
        # Another number of minutes each time: no answer of a moment ago will do.
        query = f"gpus={number % 5}&hours={1 + number / 60:.3f}&partition={partition}"
        path = f"/hub/api/gpu-session/forecast/{name}?{query}"
        times["forecast"].append(await _ask(hub, path, cookies[name], '"state"'))
        await asyncio.sleep(_PAUSE_SECONDS)
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--asks", type=int, default=400, help="of each kind")
    given = parser.parse_args(arguments)
    measured = commit()
    with ExitStack() as stack:
        size = virtual_cluster.Size(nodes=given.nodes)
        cluster = stack.enter_context(virtual_cluster.running(size))
        users = stack.enter_context(people.temporary(_PEOPLE + 1, cluster.folder)).names
        states = _submit(cluster, users[-1], given.jobs)
        print(f"{cluster.version}: {given.nodes} nodes, jobs: {states}", flush=True)
        shop = hubs.workshop(cluster, cluster.folder / "workshop")
        stack.enter_context(people.sudo_allows(shop.sudo_rules()))
        hub = stack.enter_context(hubs.running("ours", shop))
        hub.add_users(users)
        cookies = {name: log_in(hub, name) for name in users[:_PEOPLE]}
        before = hub.counts()
        times = asyncio.run(measure(hub, cookies, given.asks, size.partitions[0]))
        asked = {name: count - before.get(name, 0) for name, count in hub.counts().items()}
    print(
        json.dumps(
            {
                "benchmark": "options_page",
                "milliseconds": {
                    what: {**figures(values), "count": len(values)}
                    for what, values in times.items()
                },
                "goal": "p95 of form under 150 ms",
                "commands_run": asked,
                "jobs": states,
                "cluster": f"{given.nodes} real slurmds, 4 GPUs each, 2 partitions",
                "slurm": cluster.version,
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
