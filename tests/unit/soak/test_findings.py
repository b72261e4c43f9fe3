"""When a fault excuses what goes wrong."""

import pytest

from benchmarks.portal.soak.findings import Disturbance, Findings


def test_a_fault_excuses_until_a_while_after_the_recovery() -> None:
    over = Disturbance("hub killed", begin=100, seconds=5, which=0, repaired=101, recovered=110)
    findings = Findings(grace_seconds=20, disturbances=[over])
    assert not findings.excuses(50, 99)
    assert findings.excuses(99, 100)
    assert findings.excuses(105, 106)
    assert findings.excuses(129, 140)
    assert not findings.excuses(131, 140)


def test_a_fault_that_is_not_over_excuses_all_that_follows() -> None:
    findings = Findings(disturbances=[Disturbance("hub frozen", begin=100, seconds=5, which=0)])
    assert findings.excuses(10_000, 10_001)


def test_the_most_that_stood_side_by_side_is_kept() -> None:
    findings = Findings()
    for _ in range(3):
        findings.opened("TensorBoards")
    findings.closed("TensorBoards")
    findings.opened("TensorBoards")
    findings.opened("JupyterLabs")
    assert findings.most_at_once == {"TensorBoards": 3, "JupyterLabs": 1}


@pytest.mark.parametrize(
    ("since", "may_be"), [(89, False), (91, True), (100, True), (101.5, True), (103, False)]
)
def test_a_session_that_was_ready_just_before_slurmctld_was_killed_may_be_lost(
    since: float, may_be: bool
) -> None:
    # The fault is noted, and a moment later the process is found and killed.
    killed = Disturbance("slurmctld killed", begin=100, seconds=5, which=0, repaired=102)
    assert Findings(disturbances=[killed]).may_be_lost(since) is may_be
    frozen = Disturbance("slurmctld frozen", begin=100, seconds=5, which=0, repaired=102)
    assert not Findings(disturbances=[frozen]).may_be_lost(since)
