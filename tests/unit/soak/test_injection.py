"""What fails, and how it is written down."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks.portal.soak import injection
from benchmarks.portal.soak.day import Day, Fault, Scale
from benchmarks.portal.soak.findings import Findings
from benchmarks.portal.soak.injection import INJECTIONS
from tests import faults
from tests.instance import Instance
from tests.waiting import until

PORTAL = cast("Instance", None)
SCALE = Scale(seconds=60, users=0, all_day=0, jobs=0, nodes=3, gpus_per_node=4, fault_seconds=60)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def shell(words: str) -> Iterator[int]:
    with subprocess.Popen(["/bin/sh", "-c", words], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "part", ["hub", "proxy", "front", "cluster service", "reconciler", "culler", "slurmctld"]
)
def test_each_part_of_the_portal_is_killed_and_frozen(part: str) -> None:
    assert {f"{part} killed", f"{part} frozen"} <= set(INJECTIONS)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("cluster service", "dsportal.cluster"),
        ("reconciler", "dsportal.reconciler"),
        ("culler", "dsportal.culler"),
    ],
)
def test_a_frozen_service_stands_still_as_long_as_planned_and_goes_on(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[tuple[float, str]] = []
    with shell("sleep 60 & wait") as pid:
        monkeypatch.setattr(faults, "service_of_hub", {module: pid}.get)
        clock = SimpleNamespace(sleep=lambda seconds: slept.append((seconds, state_of(pid))))
        monkeypatch.setattr(injection, "time", clock)
        INJECTIONS[f"{name} frozen"](PORTAL, Fault(0, f"{name} frozen", 7.5, 0))
        assert slept == [(7.5, "T")]
        assert state_of(pid) != "T"


def test_the_front_is_frozen_with_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[str] = []
    with shell("sleep 60 & wait") as pid:
        (worker,) = until(lambda: faults.children_of(pid), seconds=10, what="it has a child")
        monkeypatch.setattr(faults, "pid_of", {"front": pid}.get)
        clock = SimpleNamespace(sleep=lambda _: states.extend(map(state_of, (pid, worker))))
        monkeypatch.setattr(injection, "time", clock)
        INJECTIONS["front frozen"](PORTAL, Fault(0, "front frozen", 5, 0))
        assert states == ["T", "T"]
        assert "T" not in {state_of(pid), state_of(worker)}


def test_what_was_planned_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "INJECTIONS", {"slurmd frozen": lambda *_: None})
    monkeypatch.setattr(faults, "wait_for_hub", lambda _: None)
    monkeypatch.setattr(faults, "wait_for_nodes", lambda _: None)
    findings = Findings()
    day = Day(SCALE, visits=[], jobs=[], faults=[Fault(0, "slurmd frozen", 7.5, 0.4)])
    injection.inject(PORTAL, day, findings, threading.Event())
    (one,) = findings.disturbances
    assert (one.name, one.seconds, one.which, one.failure) == ("slurmd frozen", 7.5, 0.4, "")
    assert one.repaired is not None
