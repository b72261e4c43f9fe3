"""How often the form's forecast of a start is right, on a cluster that is busy all the time.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.forecasts [--starts 100] [--nodes 8]

As root. A private Slurm with real daemons (`harness.virtual_cluster`); jobs of 1 to 4
GPUs keep a queue before it. Their arrivals are a Poisson process; a half of them runs until its
time is up, the others for an evenly drawn part of it, as people ask for more time than they need.
Every few seconds a session is asked for: first Slurm's forecast, in the way in which the launcher
asks and the hub reads it, then the session itself with the same script; when it starts, Slurm says.

Times are shorter than real ones: a job's limit is 1 to 4 minutes, the least that Slurm knows. So
seconds of error are to be seen beside seconds of waiting, which the result has, too.

The last line is one JSON object. Errors are seconds from the forecast to the start: negative where
the session started earlier.
"""

import argparse
import json
import os
import pwd
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import virtual_cluster
from benchmarks.portal.harness.virtual_cluster import VirtualCluster
from jupyterhub_gpu_slurm.outlook import forecast
from jupyterhub_gpu_slurm.slurm import launcher

RIGHT_SECONDS = 60
_LIMIT_MINUTES = (1, 2, 3, 4)
_LOAD = 1.15
"""GPU time that is asked for, of what there is: the queue grows slowly."""
_SESSION_SECONDS = 20
_PAUSE_SECONDS = 8
_SCRIPT = """\
#!/bin/sh
#SBATCH --partition=sxm2
#SBATCH --nodes=1
#SBATCH --gres=gpu:{gpus}
#SBATCH --cpus-per-task={cores}
#SBATCH --mem={memory}G
#SBATCH --time={minutes}
#SBATCH --output=/dev/null
exec sleep {seconds}
"""


@dataclass(frozen=True)
class Asked:
    """A session that was asked for, and what was foretold of it."""

    job_id: str
    at: float
    """Seconds since the epoch."""
    state: str
    start: float
    """What was foretold; for ``now`` the moment of the question."""


def script(gpus: int, minutes: int, seconds: int) -> str:
    """Return a job's script, with a session's share of a node for each GPU."""
    return _SCRIPT.format(
        gpus=gpus, cores=8 * gpus, memory=48 * gpus, minutes=minutes, seconds=seconds
    )


def submit(cluster: VirtualCluster, text: str) -> str:
    """Submit a script; return the job's number."""
    return cluster.slurm("sbatch", "--parsable", stdin=text).strip()


def background(chance: random.Random) -> tuple[str, float]:
    """Draw a job; return its script, and the GPU seconds for which it is there."""
    gpus, minutes = chance.choice((1, 1, 2, 4)), chance.choice(_LIMIT_MINUTES)
    limit = 60 * minutes
    # A job whose time is up is looked for once a minute at most; it is to end by itself.
    seconds = limit if chance.random() < 0.5 else round(chance.uniform(0.1, 1) * limit)
    return script(gpus, minutes, seconds), gpus * seconds


def submit_another(cluster: VirtualCluster, chance: random.Random) -> float:
    """Submit a job of others; return its GPU seconds."""
    text, gpu_seconds = background(chance)
    submit(cluster, text)
    return gpu_seconds


def foretold(cluster: VirtualCluster, text: str) -> forecast.Forecast:
    """Ask by the launcher, and read as the hub does."""
    account = pwd.getpwuid(os.getuid())
    settings = {"mark": "", "bin_dir": "/usr/bin", "slurm_conf": str(cluster.conf)}
    commands = launcher.SlurmCommands(settings, account)
    answer = launcher.forecast(commands, account, {"script": text})
    return forecast.read(answer, datetime.now(UTC))


def ask(cluster: VirtualCluster, chance: random.Random) -> Asked:
    """Ask when a session would start, and for the session."""
    text = script(chance.choice((1, 2, 4)), 1, _SESSION_SECONDS)
    found = foretold(cluster, text)
    now = time.time()
    job_id = submit(cluster, text)
    start = now if found.start is None else found.start.timestamp()
    return Asked(job_id, now, found.state, start)


def started(cluster: VirtualCluster, job_id: str) -> float | None:
    """Return when a job began, once it has: Slurm tells a guess before."""
    said = cluster.slurm("scontrol", "show", "job", "--oneliner", job_id)
    fields = dict(word.split("=", 1) for word in said.split() if "=" in word)
    if fields["JobState"] == "PENDING":
        return None
    return datetime.fromisoformat(fields["StartTime"]).timestamp()


def watch(cluster: VirtualCluster, starts: int, chance: random.Random) -> list[tuple[Asked, float]]:
    """Keep the cluster busy and ask; return each session with its real start."""
    gpus = cluster.size.nodes * cluster.size.gpus
    waiting: list[Asked] = []
    found: list[tuple[Asked, float]] = []
    # Full from the first question on.
    taken = 0.0
    while taken < gpus * 120:
        taken += submit_another(cluster, chance)
    next_job = time.monotonic()
    next_question = next_job + _PAUSE_SECONDS
    while len(found) < starts:
        now = time.monotonic()
        if now >= next_job:
            gpu_seconds = submit_another(cluster, chance)
            next_job += chance.expovariate(_LOAD * gpus / gpu_seconds)
        if now >= next_question and len(found) + len(waiting) < starts:
            waiting.append(ask(cluster, chance))
            next_question = now + _PAUSE_SECONDS
        for each in list(waiting):
            with suppress(RuntimeError):
                if (start := started(cluster, each.job_id)) is not None:
                    waiting.remove(each)
                    found.append((each, start))
        time.sleep(0.5)
    return found


def figures(found: Sequence[tuple[Asked, float]]) -> dict[str, object]:
    """Say how often it was right, and how wrong it was."""
    errors = sorted(start - each.start for each, start in found)
    right = sum(abs(error) <= RIGHT_SECONDS for error in errors)
    late = sum(error > RIGHT_SECONDS for error in errors)
    return {
        "count": len(errors),
        f"share_within_{RIGHT_SECONDS}_s": round(right / len(errors), 3),
        "share_later": round(late / len(errors), 3),
        "error_seconds": {
            "median": round(statistics.median(errors), 1),
            "least": round(errors[0], 1),
            "most": round(errors[-1], 1),
        },
        "waited_seconds_median": round(
            statistics.median(start - each.at for each, start in found), 1
        ),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args(arguments)
    measured = commit()
    with virtual_cluster.running(virtual_cluster.Size(nodes=given.nodes)) as cluster:
        found = watch(cluster, given.starts, random.Random(given.seed))  # noqa: S311
        version = cluster.version
    result: dict[str, object] = {"all": figures(found)}
    for state in ("now", "later"):
        if those := [(each, start) for each, start in found if each.state == state]:
            result[state] = figures(those)
    words = {"benchmark": "forecasts", "slurm": version, "seed": given.seed}
    size = {"nodes": given.nodes, "gpus_per_node": 4, "limits_minutes": _LIMIT_MINUTES}
    print(json.dumps({**words, **size, "forecasts": result, **circumstances(measured)}))


if __name__ == "__main__":
    main()
