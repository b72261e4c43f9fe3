"""One day from its plan to its result."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.portal.harness.answer_times import figures
from benchmarks.portal.soak import accounts, day, injection, invariants, light_session
from benchmarks.portal.soak.crowd import Crowd
from benchmarks.portal.soak.findings import Findings
from benchmarks.portal.soak.stays import Stays, StayState
from benchmarks.portal.soak.watcher import InvariantWatcher
from tests import faults
from tests.instance import Instance
from tests.waiting import until


@dataclass(frozen=True)
class Wanted:
    """What is chosen on the command line."""

    seed: int
    minutes: float
    users: int
    real: int
    """So many of them have JupyterLab and a kernel that counts, nearly all day."""
    form_viewers: int
    cluster_viewers: int
    jobs: int
    fault_seconds: float
    faults: Sequence[str]


@dataclass(frozen=True)
class DayOutcome:
    """What a day has shown."""

    wanted: Wanted
    findings: Findings
    watcher: InvariantWatcher
    planned: day.Day

    def as_json(self) -> dict[str, Any]:
        """Return the figures."""
        times = [milliseconds for _, milliseconds in self.watcher.page_times]
        disturbances = self.findings.disturbances
        return {
            "broken": [asdict(one) for one in self.findings.found],
            "nodes": self.planned.scale.nodes,
            "gpus_per_node": self.planned.scale.gpus_per_node,
            "counts": dict(self.findings.counts),
            "most_at_once": dict(self.findings.most_at_once),
            "planned": {"visits": len(self.planned.visits), "jobs": len(self.planned.jobs)},
            "disturbances": [asdict(one) for one in disturbances],
            "recovery_seconds": {
                name: round(median(_recoveries(self.findings, name)), 1)
                for name in sorted({one.name for one in disturbances})
                if _recoveries(self.findings, name)
            },
            "page_ms": {
                **(figures(times) if len(times) > 1 else {}),
                "p99": invariants.p99(times),
                "count": len(times),
                "excused_by_faults": self.watcher.excused_pages,
            },
            "most_messages_to_slurm_in_a_minute": round(
                invariants.most_in_a_minute(self.watcher.questions)
            ),
            "growth": self.watcher.growth.report(),
            "hub_open": self.watcher.growth.hub_open,
        }


def _recoveries(findings: Findings, name: str) -> list[float]:
    return [
        one.recovered - one.repaired
        for one in findings.disturbances
        if one.name == name and one.recovered is not None and one.repaired is not None
    ]


def soak(
    portal: Instance, wanted: Wanted, keep: Callable[[DayOutcome], object] = lambda _: None
) -> DayOutcome:
    """Let a day pass on an instance that runs; ``keep`` it before the stand-ins are removed."""
    nodes = set(portal.slurm("sinfo", "--noheader", "--Node", "-o", "%N").split())
    scale = day.Scale(
        seconds=60 * wanted.minutes,
        users=wanted.users,
        all_day=wanted.real,
        jobs=wanted.jobs,
        nodes=len(nodes),
        gpus_per_node=4,
        fault_seconds=wanted.fault_seconds,
    )
    planned = day.drawn(wanted.seed, scale, wanted.faults)
    viewers = wanted.form_viewers + wanted.cluster_viewers
    with accounts.temporary(portal, wanted.users + viewers + 2) as names:
        users, others = names[: wanted.users], names[wanted.users :]
        real = frozenset(users[: wanted.real])
        text = light_session.program(portal.settings["session"]["python"], real)
        with (
            faults.hub_on_a_small_disk(portal),
            faults.hub_with_its_own_clock(portal),
            faults.session_program(portal, text),
        ):
            outcome = _day(portal, wanted, planned, users, others)
            keep(outcome)
            return outcome


def _day(
    portal: Instance,
    wanted: Wanted,
    planned: day.Day,
    users: Sequence[str],
    others: Sequence[str],
) -> DayOutcome:
    findings, stays = Findings(), Stays()
    over, watched_until = threading.Event(), threading.Event()
    crowd = Crowd(portal, findings, stays, frozenset(users[: wanted.real]), over)
    watcher = InvariantWatcher(portal, stays, findings, watched_until)
    asker, submitter, *viewers = others
    for name in users:
        stays.change(name, StayState.ABSENT)
    people: list[Callable[[], None]] = []
    for number, name in enumerate(users):
        visits = [visit for visit in planned.visits if visit.user == number]
        people.append(lambda name=name, visits=visits: crowd.live(name, visits))  # type: ignore[misc]
    people.append(lambda: crowd.submit(submitter, planned.jobs))
    for number, name in enumerate(viewers):
        look = crowd.look_at_form if number < wanted.form_viewers else crowd.look_at_cluster
        people.append(lambda name=name, look=look: look(name))  # type: ignore[misc]
    watching = [watcher.watch_slurm, watcher.watch_hub, lambda: watcher.watch_pages(asker)]
    with _running(watching, watched_until):
        with _running(people, over):
            injection.inject(portal, planned, findings, over)
            over.wait(max(0.0, planned.scale.seconds - findings.now()))
        _end_plain_jobs(portal, submitter)
        for job in _left_behind(portal):
            findings.add("orphan job", f"at the end: {job}")
    watcher.judge()
    return DayOutcome(wanted, findings, watcher, planned)


@contextmanager
def _running(actions: Sequence[Callable[[], None]], over: threading.Event) -> Iterator[None]:
    """Run all, each in a thread, until the end of the block and until each has come to its end."""
    failures: list[BaseException] = []

    def run(action: Callable[[], None]) -> None:
        try:
            action()
        # Another thread raises it.
        except BaseException as error:  # noqa: BLE001
            failures.append(error)
            over.set()

    threads = [threading.Thread(target=run, args=(action,), daemon=True) for action in actions]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(300)
    if failures:
        raise failures[0]


def _left_behind(portal: Instance) -> list[str]:
    """Return the jobs of sessions that are there when all have left; end them."""

    def sessions() -> list[str]:
        shown = portal.slurm("squeue", "--noheader", "-o", "%i %j").splitlines()
        return [line for line in shown if line.split()[1].startswith(f"{portal.mark}-bench")]

    with suppress(AssertionError):
        until(lambda: not sessions(), seconds=60, every=2, what="all sessions have ended")
    left = sessions()
    if left:
        portal.slurm("scancel", *(line.split()[0] for line in left))
    return left


def _end_plain_jobs(portal: Instance, user: str) -> None:
    portal.slurm("scancel", f"--user={user}")
    until(lambda: not portal.jobs(user=user), seconds=60, what="the plain jobs have ended")


def told(outcome: DayOutcome, **more: Any) -> str:
    """Return the last line of the benchmark."""
    load = round(os.getloadavg()[0], 1)
    wanted = asdict(outcome.wanted)
    return json.dumps(
        {"benchmark": "soak", **wanted, "load": load, **outcome.as_json(), **more}, default=list
    )
