"""How long until it answers again, after a part of the portal was killed.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.recovery [--runs 10]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. One session is there.
Each part gets a SIGKILL, in turn, and what only it can answer is asked for without a pause, until
it is answered: a page of the session for the proxy, the cluster's nodes for the cluster service,
the user's own record for the hub. The front stays. Of the hub, its log tells when it had imported
its modules, when it knew its sessions, and when it listened.

The last line is one JSON object: seconds (median, minimum, maximum) of each part, and of the hub's
phases, each from the kill on.
"""

import argparse
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import httpx

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness.phases import logged
from benchmarks.portal.session_start import summary
from tests import faults, instance
from tests.instance import LOGS, USERS, Instance
from tests.visitor import Visitor, session_of
from tests.waiting import until

_GIVEN_UP_SECONDS = 60
_BETWEEN_SECONDS = 0.02
_PHASES = {
    "imported": "Running JupyterHub version",
    "knows_sessions": "spawners in",
    "listens": "Hub API listening",
}
"""What the hub's log says at the end of each."""


def _seconds(pid: int, ask: Callable[[], httpx.Response]) -> float:
    """Kill; return how long nobody answered, from then on."""
    ask().raise_for_status()
    started = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    until(
        lambda: _is_answered(ask),
        seconds=_GIVEN_UP_SECONDS,
        every=_BETWEEN_SECONDS,
        what="it answers again",
    )
    return time.perf_counter() - started


def _is_answered(ask: Callable[[], httpx.Response]) -> bool:
    try:
        return ask().status_code == 200
    except httpx.HTTPError:
        return False


def phases_of(said: str, killed: float) -> Mapping[str, float]:
    """Return when each of the hub's phases ended, in seconds after it was killed.

    >>> from datetime import datetime
    >>> line = "[I 2026-11-29 11:24:31.445 JupyterHub app:3913] Hub API listening on https://head"
    >>> phases_of(line, datetime(2026, 11, 29, 11, 24, 28).timestamp())
    {'listens': 3.445}
    """
    ended = {phase: logged(said, words) for phase, words in _PHASES.items()}
    return {
        phase: round(moment - killed, 3) for phase, moment in ended.items() if moment is not None
    }


def _killed_hub(log: Path, kill: Callable[[], float]) -> tuple[float, Mapping[str, float]]:
    """Return how long it was away, and its phases."""
    begin, killed = log.stat().st_size, time.time()
    seconds = kill()
    with log.open(encoding="utf-8", errors="replace") as file:
        file.seek(begin)
        return seconds, phases_of(file.read(), killed)


def _measured(
    portal: Instance, user: Visitor, runs: int
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    token = {"Authorization": f"token {user.token()}"}
    with httpx.Client(base_url=portal.url, headers=token, timeout=2) as client:
        parts: dict[str, tuple[Callable[[], int], str]] = {
            "proxy": (lambda: int(faults.service("pid", "proxy")), f"/user/{user.name}/api/status"),
            "cluster_service": (
                lambda: faults.service_of_hub("dsportal.cluster"),
                "/services/cluster/api/v1/cluster",
            ),
            "hub": (lambda: int(faults.service("pid", "hub")), f"/hub/api/users/{user.name}"),
        }
        found: dict[str, list[float]] = {name: [] for name in parts}
        ended: dict[str, list[float]] = {phase: [] for phase in _PHASES}
        for _ in range(runs):
            for name, (pid, path) in parts.items():
                kill = partial(_seconds, pid(), partial(client.get, path))
                if name == "hub":
                    seconds, phases = _killed_hub(LOGS / "hub.log", kill)
                    for phase, times in ended.items():
                        times.append(phases[phase])
                else:
                    seconds = kill()
                found[name].append(seconds)
                faults.wait_for_hub(portal)
    return (
        {name: summary(times) for name, times in found.items()},
        {phase: summary(times) for phase, times in ended.items()},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="of each part")
    given = parser.parse_args(arguments)
    measured = commit()
    with instance.running() as portal, session_of(portal, USERS[0]) as user:
        seconds, phases = _measured(portal, user, given.runs)
    result = {
        "benchmark": "recovery",
        "seconds": seconds,
        "hub_phases": phases,
        "runs": given.runs,
        "goal": "hub within 2 s, proxy within 1 s, cluster service within 3 s",
        "load": round(os.getloadavg()[0], 1),
        **circumstances(measured),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
