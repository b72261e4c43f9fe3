"""Checks the invariants all day, by Slurm's, the kernel's and the pages' own word."""

import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpx

from benchmarks.portal.soak import invariants, slurm
from benchmarks.portal.soak.findings import Findings
from benchmarks.portal.soak.growth import Growth
from benchmarks.portal.soak.stays import Stays
from tests.instance import ADMIN, Instance
from tests.visitor import Visitor

LOOK_SECONDS = 5.0
ORPHAN_SECONDS = 330.0
"""A job that nobody wants may live so long: until the reconciler, which looks every five minutes,
has ended it."""
PAGES = ("/hub/home", "/hub/spawn", "/services/cluster/")
SLOWEST_SECONDS = 2.0
MOST_QUESTIONS_A_MINUTE = 300.0
"""Messages of the hub's account to slurmctld, however many users there are."""
_PAGE_SECONDS = 0.5
_FAILURES = (httpx.HTTPError, OSError, RuntimeError, AssertionError, subprocess.SubprocessError)


@dataclass
class _TwiceInARow:
    """Tells what two looks in a row have shown, once."""

    findings: Findings
    last: dict[str, set[object]] = field(default_factory=dict)
    told: set[tuple[str, object]] = field(default_factory=set)

    def look(self, kind: str, broken: Iterable[object], more: str = "") -> None:
        now = set(broken)
        for one in now & self.last.get(kind, set()):
            if (kind, one) not in self.told:
                self.told.add((kind, one))
                self.findings.add(kind, f"{one} {more}".strip())
        self.last[kind] = now

    def forget(self, kind: str) -> None:
        """Begin anew: something may have been under way."""
        self.last.pop(kind, None)


@dataclass
class InvariantWatcher:
    """Three loops, each in a thread of its own."""

    portal: Instance
    stays: Stays
    findings: Findings
    over: threading.Event
    growth: Growth = field(init=False)
    questions: list[tuple[float, int]] = field(default_factory=list)
    page_times: list[tuple[float, float]] = field(default_factory=list)
    """When an answer came that no fault excuses, and after how many milliseconds."""
    excused_pages: int = 0
    _orphans_since: dict[str, float] = field(default_factory=dict)
    _rows: _TwiceInARow = field(init=False)

    def __post_init__(self) -> None:
        self.growth = Growth(self.portal)
        self._rows = _TwiceInARow(self.findings)

    def watch_slurm(self) -> None:
        """Ask Slurm again and again; when it does not answer, nothing is known."""
        hub_user = f"jupyterhub-{self.portal.mark.removeprefix('portal-')}"
        while not self.over.wait(LOOK_SECONDS):
            try:
                self._look_at_jobs()
                self._rows.look(
                    "GPU given twice", invariants.given_twice(slurm.allocations(self.portal))
                )
                count = slurm.questions_of(self.portal, hub_user)
                self.questions.append((self.findings.now(), count))
            except _FAILURES:
                self.findings.count("Slurm did not answer the watcher")

    def _look_at_jobs(self) -> None:
        before = self.stays.now()
        jobs = slurm.queue(self.portal)
        stays = self.stays.unchanged(before)
        sessions = [job for job in jobs if job.name.startswith(f"{self.portal.mark}-")]
        offset = self.findings.now() - time.monotonic()
        self._rows.look(
            "session lost",
            (
                f"{user} job {stays[user].job_id}"
                for user in invariants.lost(stays, jobs)
                if not self.findings.may_be_lost(stays[user].since + offset)
            ),
        )
        self._rows.look("session doubled", invariants.doubled(sessions))
        now = time.monotonic()
        orphans = set(invariants.orphans(stays, sessions))
        self._orphans_since = {one: self._orphans_since.get(one, now) for one in orphans}
        old = {
            one
            for one, since in self._orphans_since.items()
            if now - since > ORPHAN_SECONDS and not self.findings.excuses(self.findings.now())
        }
        self._rows.look("orphan job", old)

    def watch_hub(self) -> None:
        """Ask the hub which sessions it knows, and the kernel what its processes take."""
        admin = Visitor(self.portal, ADMIN)
        token = ""
        while not self.over.wait(LOOK_SECONDS):
            began = self.findings.now()
            self.growth.sample(began)
            try:
                if not token:
                    admin.log_in().raise_for_status()
                    token = admin.token()
                before = self.stays.now()
                ready = _ready(self.portal, token)
            except _FAILURES as error:
                self._rows.forget("session forgotten")
                if not self.findings.excuses(began):
                    self.findings.add("no answer", f"the hub's users: {error!r}")
                continue
            if self.findings.excuses(began):
                self._rows.forget("session forgotten")
                continue
            stays = self.stays.unchanged(before)
            self._rows.look("session forgotten", invariants.forgotten(stays, ready))
        admin.close()

    def watch_pages(self, name: str) -> None:
        """Ask for pages as a user who has logged in."""
        user = Visitor(self.portal, name)
        is_in, number = False, 0
        while not self.over.wait(_PAGE_SECONDS):
            began, clock = self.findings.now(), time.perf_counter()
            try:
                if not is_in:
                    is_in = user.log_in().url.path == "/hub/home"
                    continue
                path = PAGES[number % len(PAGES)]
                number += 1
                clock = time.perf_counter()
                user.http.get(path).raise_for_status()
            except _FAILURES as error:
                if not self.findings.excuses(began):
                    self.findings.add("no answer", f"a page: {error!r}")
                continue
            milliseconds = 1000 * (time.perf_counter() - clock)
            if self.findings.excuses(began):
                self.excused_pages += 1
            else:
                self.page_times.append((round(began, 1), milliseconds))
        user.close()

    def judge(self) -> None:
        """At the end: what only all of the day can show."""
        slowest = invariants.p99([milliseconds for _, milliseconds in self.page_times])
        if slowest is not None and slowest > 1000 * SLOWEST_SECONDS:
            self.findings.add("slow pages", f"the 99th percentile is {slowest:.0f} ms")
        most = invariants.most_in_a_minute(self.questions)
        if most > MOST_QUESTIONS_A_MINUTE:
            self.findings.add("Slurm asked too often", f"{most:.0f} messages in a minute")
        for words in self.growth.broken():
            self.findings.add("growth", words)


def _ready(portal: Instance, token: str) -> set[str]:
    """Return the users whose default server is ready, as the hub says."""
    found: set[str] = set()
    while True:
        answer = portal.hub(
            "GET",
            "/api/users",
            params={"state": "ready", "offset": len(found), "limit": 200},
            headers={"Authorization": f"token {token}"},
            timeout=20,
        )
        answer.raise_for_status()
        names = {user["name"] for user in answer.json()}
        if not names:
            return found
        found |= names
