"""How long from "stop" until Slurm has the GPUs back, and where that time goes.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.session_stop [--runs 10]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. In turn: a session
with one GPU and JupyterLab, stopped at the REST API (*ours*), the same with a kernel that runs
(*ours_kernel*), and a plain job with one GPU that sleeps, ended by ``scancel`` (*floor*). Slurm is
asked without a pause. Counted from the request: *ordered*, when Slurm says that the job is not
running any more; *free*, when it is not "completing" either, so that its GPUs are others' to have;
*told*, when the hub has answered.

The last line is one JSON object: seconds (medians, minima, maxima).
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.commit import circumstances, commit
from benchmarks.portal.session_start import summary
from tests import instance
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

_MOST_SECONDS = 60
_KINDS = ("ours", "ours_kernel", "floor")


@dataclass(frozen=True)
class SessionStop:
    """Seconds after the order."""

    ordered: float
    free: float
    told: float


def _stopped(portal: Instance, job_id: str, order: Callable[[], object]) -> SessionStop:
    """Give the order beside, and watch the job at Slurm."""
    told: list[float] = []
    begun = time.perf_counter()

    def give() -> None:
        order()
        told.append(time.perf_counter() - begun)

    giving = threading.Thread(target=give)
    giving.start()
    ordered = _when(portal, job_id, lambda state: state != "RUNNING") - begun
    free = _when(portal, job_id, lambda state: state not in {"RUNNING", "COMPLETING"}) - begun
    giving.join(_MOST_SECONDS)
    return SessionStop(ordered, free, told[0])


def _when(portal: Instance, job_id: str, holds: Callable[[str], bool]) -> float:
    def is_so() -> bool:
        argv = ["squeue", "--noheader", "--states=all", f"--jobs={job_id}", "-o", "%T"]
        return holds(portal.slurm(*argv).strip())

    until(is_so, seconds=_MOST_SECONDS, every=0.005, what="the job has ended")
    return time.perf_counter()


def _of_a_session(portal: Instance, user: Visitor, *, with_kernel: bool) -> SessionStop:
    job_id = user.start_and_wait(gpus=1)
    if with_kernel:
        user.run_in(user.open_kernel(), "kept = 42")
    stop = _stopped(
        portal, job_id, lambda: user.api("DELETE", f"/users/{user.name}/server").raise_for_status()
    )
    until(lambda: user.server() is None, seconds=_MOST_SECONDS, what="the session has ended")
    return stop


def _of_a_job(portal: Instance) -> SessionStop:
    argv = ["sbatch", "--parsable", "--gres=gpu:1", "--mem=1G", "--time=10", "--output=/dev/null"]
    job_id = portal.slurm(*argv, "--wrap=exec sleep 600", user=USERS[1]).strip()
    until(
        lambda: portal.job(job_id)["JobState"] == "RUNNING",
        seconds=_MOST_SECONDS,
        what="the job runs",
    )
    return _stopped(portal, job_id, lambda: portal.slurm("scancel", job_id, user=USERS[1]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="of each kind")
    given = parser.parse_args(arguments)
    measured = commit()
    series: dict[str, list[SessionStop]] = {kind: [] for kind in _KINDS}
    with instance.running() as portal:
        user = Visitor(portal, USERS[0])
        user.log_in().raise_for_status()
        user.leave()
        for number in range(given.runs):
            series["ours"].append(_of_a_session(portal, user, with_kernel=False))
            series["ours_kernel"].append(_of_a_session(portal, user, with_kernel=True))
            series["floor"].append(_of_a_job(portal))
            words = "  ".join(f"{kind} {stops[-1].free:.2f} s" for kind, stops in series.items())
            print(f"run {number + 1:2}  {words}", flush=True)
        user.close()
    print(
        json.dumps(
            {
                "benchmark": "session_stop",
                "runs": given.runs,
                "seconds": {
                    kind: {
                        what: summary([getattr(stop, what) for stop in stops])
                        for what in ("ordered", "free", "told")
                    }
                    for kind, stops in series.items()
                },
                "goal": "free of ours under 0.3 s",
                "load": round(os.getloadavg()[0], 1),
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
