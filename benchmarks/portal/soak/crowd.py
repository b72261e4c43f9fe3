"""What the people do: each a thread that logs in, starts, works, stops, and does not give up."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from random import random, randrange
from typing import TypeVar

import httpx
from websockets.exceptions import WebSocketException

from benchmarks.portal.soak import jupyterlab
from benchmarks.portal.soak.day import PlainJob, PlannedVisit
from benchmarks.portal.soak.findings import Findings
from benchmarks.portal.soak.jupyterlab import OpenJupyterLab
from benchmarks.portal.soak.stays import Stays, StayState
from tests.instance import Instance
from tests.visitor import Visitor

T = TypeVar("T")
PATIENCE_SECONDS = 90.0
"""For so long after the last fault, what one wants may need to be tried again."""
LOOK_SECONDS = 10.0
STALE_SECONDS = 45.0
"""The page of the cluster brings a new picture every ten seconds."""
_POLL_SECONDS = 1.0
_FAILURES = (
    httpx.HTTPError,
    OSError,
    AssertionError,
    RuntimeError,
    ValueError,
    KeyError,
    TimeoutError,
    WebSocketException,
    subprocess.SubprocessError,
)
"""What a fault looks like from outside: no answer, half of one, or one that says "not now"."""
JOB_NAME = "soak-multi-node"
SESSION_HOURS = 12
"""The most that the test instance's partitions allow: no session's time is up within a run."""
LOOKS_PER_OPENING = 7
"""A form is opened, looked at some times, and opened again."""


@dataclass(frozen=True)
class Crowd:
    """What all of them share."""

    portal: Instance
    findings: Findings
    stays: Stays
    real: frozenset[str]
    """Whose sessions are JupyterLab, with a kernel that counts and TensorBoards."""
    over: threading.Event

    def live(self, name: str, visits: Sequence[PlannedVisit]) -> None:
        """Be one user for the day."""
        visitor = Visitor(self.portal, name)
        try:
            for visit in visits:
                if self._sleeps_until(visit.begin):
                    return
                self._visit(visitor, visit)
        finally:
            visitor.close()

    def _visit(self, user: Visitor, visit: PlannedVisit) -> None:
        self.stays.change(user.name, StayState.STARTING)
        try:
            if self._log_in(user) and (job_id := self._start(user, visit)):
                self.stays.change(user.name, StayState.HERE, job_id)
                self.findings.count("sessions")
                self._work(user, visit)
        finally:
            self.stays.change(user.name, StayState.LEAVING)
            if self._insists(lambda: self._has_left(user), f"{user.name} stops", "not stopped"):
                self.stays.change(user.name, StayState.ABSENT)

    def _log_in(self, user: Visitor) -> bool:
        def is_in() -> bool:
            return user.log_in().url.path == "/hub/home"

        return bool(self._insists(is_in, f"{user.name} logs in", "no login"))

    def _start(self, user: Visitor, visit: PlannedVisit) -> str:
        """Return the job's number; empty when the user has gone home before."""
        asked = False
        while not self.over.is_set() and self.findings.now() < visit.end:
            try:
                server = user.server()
                if server is None and asked and not self.findings.excuses(self.findings.now() - 40):
                    self.findings.add("start failed", f"{user.name}: {_reason(user)}")
                    return ""
                if server is None:
                    answer = user.start(gpus=visit.gpus, hours=SESSION_HOURS)
                    asked = answer.status_code in (201, 202)
                elif server["ready"]:
                    (job_id,) = self.portal.jobs(user=user.name)
                    return job_id
            except _FAILURES:
                self.findings.count("starts tried again")
            self.over.wait(_POLL_SECONDS)
        self.findings.count("starts given up in the queue")
        return ""

    def _work(self, user: Visitor, visit: PlannedVisit) -> None:
        is_real = user.name in self.real
        with jupyterlab.opened(user, self.findings) if is_real else nullcontext() as lab:
            self._look_at_session(user, visit, lab)

    def _look_at_session(
        self, user: Visitor, visit: PlannedVisit, lab: OpenJupyterLab | None
    ) -> None:
        since = self.findings.now()
        while not self._sleeps_until(min(visit.end, self.findings.now() + LOOK_SECONDS)):
            begun = self.findings.now()
            if begun >= visit.end:
                return
            try:
                if lab is None:
                    user.session("GET", "/api/status").raise_for_status()
                else:
                    lab.look()
                self.findings.count("looks at sessions")
            except _FAILURES as error:
                if self.findings.excuses(begun):
                    continue
                if self.findings.may_be_lost(since):
                    self.findings.count("sessions lost with slurmctld")
                    return
                self.findings.add("no answer", f"the session of {user.name}: {error!r}")

    def _has_left(self, user: Visitor) -> bool:
        """Stop what is there; say whether neither the hub nor Slurm has anything any more.

        A hub that has just been started shows no session whose start it interrupted until its
        reconciler goes on with it: who looks only at the hub then believes that nothing is there.
        """
        server = user.server()
        if server is not None and server["pending"] != "stop":
            user.api("DELETE", f"/users/{user.name}/server")
        return user.server() is None and not self.portal.jobs(user=user.name)

    def look_at_form(self, name: str) -> None:
        """Have the form open all day, as a browser does: it asks at its own times.

        Each seventh look opens the page anew, which asks for a forecast at once; the others ask
        what is free. A form's script asks for another forecast after a minute at the earliest while
        the choice stays, and by then this one is opened again.

        Who asked again some time after each answer would be gathered by those that are slow, until
        all ask at once.
        """
        user = Visitor(self.portal, name)
        self._insists(lambda: user.log_in().url.path == "/hub/home", f"{name} logs in", "no login")
        number = randrange(LOOKS_PER_OPENING)  # noqa: S311
        due = time.monotonic() + LOOK_SECONDS * random()  # noqa: S311
        while not self.over.wait(max(0.0, due - time.monotonic())):
            for path, what in form_questions(name, number):
                self._look(user, path, what)
            number += 1
            late = max(0.0, time.monotonic() - due)
            due += LOOK_SECONDS * (1 + late // LOOK_SECONDS)
        user.close()

    def look_at_cluster(self, name: str) -> None:
        """Follow the page of the cluster all day, as a browser does."""
        user = Visitor(self.portal, name)
        self._insists(lambda: user.log_in().url.path == "/hub/home", f"{name} logs in", "no login")
        token = self._insists(user.token, f"{name} has a token", "no token") or ""
        while not self.over.wait(_POLL_SECONDS):
            begun = self.findings.now()
            try:
                self._follow(user, token)
            except _FAILURES as error:
                if not self.findings.excuses(begun):
                    self.findings.add("no answer", f"the stream of the cluster page: {error!r}")
        user.close()

    def _follow(self, user: Visitor, token: str) -> None:
        headers = {"Authorization": f"token {token}"}
        path = "/services/cluster/events"
        with user.http.stream("GET", path, headers=headers, timeout=STALE_SECONDS) as stream:
            stream.raise_for_status()
            for line in stream.iter_lines():
                if line.startswith("data: {"):
                    self.findings.count("pictures of the cluster")
                if self.over.is_set():
                    return

    def _look(self, user: Visitor, path: str, what: str) -> None:
        begun = self.findings.now()
        try:
            user.http.get(path).raise_for_status()
            self.findings.count(what)
        except _FAILURES as error:
            if not self.findings.excuses(begun):
                self.findings.add("no answer", f"{path}: {error!r}")

    def submit(self, name: str, jobs: Sequence[PlainJob]) -> None:
        """Submit plain jobs on several nodes, each at its time."""
        for job in jobs:
            if self._sleeps_until(job.begin):
                return
            argv = ["sbatch", "--parsable", f"--job-name={JOB_NAME}", f"--nodes={job.nodes}"]
            argv += [f"--gres=gpu:{job.gpus}", "--mem=1G", "--time=720", "--output=/dev/null"]
            argv += [f"--wrap=exec srun sleep {job.seconds:.0f}"]
            self._insists(
                lambda argv=argv: self.portal.slurm(*argv, user=name),  # type: ignore[misc]
                "a plain job is submitted",
                "no submission",
            )
            self.findings.count("plain jobs")

    def _sleeps_until(self, at: float) -> bool:
        """Say whether the day ended meanwhile."""
        return self.over.wait(max(0.0, at - self.findings.now()))

    def _insists(self, action: Callable[[], T], what: str, kind: str) -> T | None:
        """Try until it is done; what cannot be done in a time without faults is a finding."""
        last = ""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                if done := action():
                    return done
                last = "not done"
            except _FAILURES as error:
                last = repr(error)
            if self.findings.excuses(self.findings.now()):
                deadline = time.monotonic() + PATIENCE_SECONDS
            time.sleep(_POLL_SECONDS)
        self.findings.add(kind, f"{what}: not in {PATIENCE_SECONDS:.0f} s: {last}")
        return None


def form_questions(name: str, number: int) -> Iterator[tuple[str, str]]:
    """Give what a browser asks at one look at the form: paths, and what each is counted as."""
    api = "/hub/api/gpu-session"
    if number % LOOKS_PER_OPENING == 0:
        yield f"/hub/spawn/{name}", "looks at the form"
        yield f"{api}/forecast/{name}?gpus=1&hours=8&partition=sxm2", "forecasts"
    else:
        yield f"{api}/availability/{name}", "looks at the form"


def _reason(user: Visitor) -> str:
    """Return what the portal says of a start that failed."""
    try:
        answer = user.api("GET", f"/users/{user.name}/server/progress")
        return json.dumps(answer.text[-300:])
    except _FAILURES as error:
        return repr(error)
