"""How long from "stop" until Slurm has the GPUs back, and where that time goes.

    "$(deploy/venv dev)"/bin/python -m benchmarks.portal.session_stop [--runs 10]

As root, with ``PORTAL_TEST_KEEP=1`` on the portal of the tests where it runs. In turn: a session
with one GPU and JupyterLab, stopped at the REST API (*ours*), the same with a kernel that runs
(*ours_kernel*), and a plain job with one GPU that sleeps, ended by ``scancel`` (*floor*). Slurm is
asked without a pause. Counted from the request: *ordered*, when Slurm says that the job is not
running any more; *free*, when it is not "completing" either, so that its GPUs are others' to have;
*told*, when the hub has answered. Between two questions a look at the processes tells where the
time goes: *phases* says how long each took, up to the moment that it is named for. See
`stop_phases` and ``docs/reference/benchmarks.md``.

The last line is one JSON object: seconds (medians, minima, maxima).
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.commit import circumstances, commit
from benchmarks.portal.harness import sampler
from benchmarks.portal.harness.phases import JobSample, stop_phases
from benchmarks.portal.session_start import summaries, summary
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
    phases: Mapping[str, float | None]
    """How long each took."""


@dataclass(frozen=True)
class _Job:
    """What is to end."""

    job_id: str
    user: str
    running: tuple[str, ...]
    """Its programs, in the order in which they end."""
    ordering: tuple[str, ...] = ()
    """The programs that give the order to Slurm."""


def _stopped(portal: Instance, job: _Job, order: Callable[[], object]) -> SessionStop:
    """Give the order beside, and watch the job."""
    programs = sampler.programs(portal, job.user)

    def give() -> float:
        order()
        return time.time()

    def look() -> JobSample:
        state = sampler.state_of(portal, "--states=all", f"--jobs={job.job_id}")
        return JobSample(time.time(), state, sampler.running(programs))

    before = look()
    asked = time.time()
    samples, told = sampler.while_doing(give, look, lambda sample: sample.is_over)
    phases = stop_phases([before, *samples], asked, job.ordering, job.running)
    ordered = next(sample.at for sample in samples if sample.state != "RUNNING")
    return SessionStop(ordered - asked, samples[-1].at - asked, told - asked, phases)


def _of_a_session(portal: Instance, user: Visitor, *, with_kernel: bool) -> SessionStop:
    job_id = user.start_and_wait(gpus=1)
    if with_kernel:
        user.run_in(user.open_kernel(), "kept = 42")
    running = ("kernel", "session") if with_kernel else ("session",)
    stop = _stopped(
        portal,
        _Job(job_id, user.name, running, ordering=("launcher",)),
        lambda: user.api("DELETE", f"/users/{user.name}/server").raise_for_status(),
    )
    until(lambda: user.server() is None, seconds=_MOST_SECONDS, what="the session has ended")
    return stop


def _of_a_job(portal: Instance) -> SessionStop:
    argv = ["sbatch", "--parsable", "--gres=gpu:1", "--mem=1G", "--time=10", "--output=/dev/null"]
    job_id = portal.slurm(*argv, "--wrap=exec sleep 600", user=USERS[1]).strip()
    programs = sampler.programs(portal, USERS[1])
    until(
        lambda: "sleep" in sampler.running(programs),
        seconds=_MOST_SECONDS,
        what="the job runs",
    )
    job = _Job(job_id, USERS[1], running=("sleep",))
    return _stopped(portal, job, lambda: portal.slurm("scancel", job_id, user=USERS[1]))


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
                "phases": {
                    kind: summaries(stop.phases for stop in stops) for kind, stops in series.items()
                },
                "goal": "free of ours under 0.3 s",
                "load": round(os.getloadavg()[0], 1),
                **circumstances(measured),
            }
        )
    )


if __name__ == "__main__":
    main()
