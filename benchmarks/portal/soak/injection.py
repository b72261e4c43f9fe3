"""Injects what is planned, one fault at a time, with the parts' own processes (`tests.faults`)."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial

from benchmarks.portal.soak.day import Day, Fault
from benchmarks.portal.soak.findings import Disturbance, Findings
from tests import faults
from tests.instance import Instance
from tests.waiting import until

Injection = Callable[[Instance, Fault], None]


def _killed(name: str, portal: Instance, fault: Fault) -> None:
    faults.kill(name)


def _frozen(
    name: str,
    portal: Instance,
    fault: Fault,
    *,
    freeze: Callable[[str], AbstractContextManager[None]] = faults.frozen,
) -> None:
    # A watchdog may have ended it meanwhile.
    with suppress(ProcessLookupError):
        _held(freeze(name), fault)


_frozen_service = partial(_frozen, freeze=faults.frozen_service_of_hub)


def _held(during: AbstractContextManager[None], fault: Fault) -> None:
    with during:
        time.sleep(fault.seconds)


def _killed_service(module: str, portal: Instance, fault: Fault) -> None:
    before = faults.service_of_hub(module)
    if before:
        os.kill(before, signal.SIGKILL)
    until(
        lambda: faults.service_of_hub(module) not in (0, before),
        seconds=60,
        what=f"{module} is started again",
    )


def _restarted_hub(portal: Instance, fault: Fault) -> None:
    faults.service("restart", "hub")


def _stopped_slurmctld(portal: Instance, fault: Fault) -> None:
    faults.service("stop", "slurmctld")
    try:
        time.sleep(fault.seconds)
    finally:
        faults.service("start", "slurmctld")


def _node(portal: Instance, fault: Fault) -> str:
    nodes = sorted(set(portal.slurm("sinfo", "--noheader", "--Node", "-o", "%N").split()))
    return nodes[int(fault.which * len(nodes))]


def _killed_slurmd(portal: Instance, fault: Fault) -> None:
    faults.kill(f"slurmd-{_node(portal, fault)}")


def _frozen_slurmd(portal: Instance, fault: Fault) -> None:
    _frozen(f"slurmd-{_node(portal, fault)}", portal, fault)


def _node_cut_off(portal: Instance, fault: Fault) -> None:
    _held(faults.node_cut_off(portal, _node(portal, fault)), fault)


def _during(
    begun: Callable[[Instance], AbstractContextManager[None]], portal: Instance, fault: Fault
) -> None:
    _held(begun(portal), fault)


INJECTIONS: Mapping[str, Injection] = {
    "hub killed": partial(_killed, "hub"),
    "hub frozen": partial(_frozen, "hub"),
    "hub restarted": _restarted_hub,
    "proxy killed": partial(_killed, "proxy"),
    "proxy frozen": partial(_frozen, "proxy"),
    "front killed": partial(_killed, "front"),
    "front frozen": partial(_frozen, "front", freeze=faults.frozen_with_children),
    "cluster service killed": partial(_killed_service, "dsportal.cluster"),
    "cluster service frozen": partial(_frozen_service, "dsportal.cluster"),
    "reconciler killed": partial(_killed_service, "dsportal.reconciler"),
    "reconciler frozen": partial(_frozen_service, "dsportal.reconciler"),
    "culler killed": partial(_killed_service, "dsportal.culler"),
    "culler frozen": partial(_frozen_service, "dsportal.culler"),
    "slurmctld killed": partial(_killed, "slurmctld"),
    "slurmctld frozen": partial(_frozen, "slurmctld"),
    "slurmctld stopped": _stopped_slurmctld,
    "slurmd killed": _killed_slurmd,
    "slurmd frozen": _frozen_slurmd,
    "munged killed": partial(_killed, "munged"),
    "munged frozen": partial(_frozen, "munged"),
    "directory killed": partial(_killed, "slapd"),
    "directory frozen": partial(_frozen, "slapd"),
    "database locked": partial(_during, faults.database_locked),
    "hub's disk full": partial(_during, faults.hub_disk_full),
    "hub's clock ahead": partial(_during, faults.hub_clock_ahead),
    "node cut off": _node_cut_off,
    "nodes drained": partial(_during, faults.drained),
}
"""The faults of one machine; each ends when it is repaired."""


def inject(portal: Instance, day: Day, findings: Findings, stopped: threading.Event) -> None:
    """Inject what is planned, each at its time or when the one before is over; none afterwards."""
    for fault in day.faults:
        wait = max(0.0, fault.begin - findings.now())
        if stopped.wait(wait) or findings.now() > day.scale.seconds:
            return
        with findings.disturbance(
            fault.name, seconds=fault.seconds, which=fault.which
        ) as disturbance:
            _inject(portal, fault, disturbance, findings)


def _inject(portal: Instance, fault: Fault, one: Disturbance, findings: Findings) -> None:
    try:
        INJECTIONS[fault.name](portal, fault)
        one.repaired = findings.now()
        faults.wait_for_hub(portal)
        _wait_for_slurm(portal)
    except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        one.failure = str(error)
        findings.add("not recovered", f"{fault.name}: {error}")


def _wait_for_slurm(portal: Instance) -> None:
    def answers() -> bool:
        try:
            faults.wait_for_nodes(portal)
        except (RuntimeError, OSError, subprocess.SubprocessError):
            return False
        return True

    until(answers, seconds=90, what="Slurm answers")
