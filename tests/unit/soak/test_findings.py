"""When a fault excuses what goes wrong."""

from benchmarks.portal.soak.findings import Disturbance, Findings


def test_a_fault_excuses_until_a_while_after_the_recovery() -> None:
    over = Disturbance("hub killed", begin=100, repaired=101, recovered=110)
    findings = Findings(grace_seconds=20, disturbances=[over])
    assert not findings.excuses(50, 99)
    assert findings.excuses(99, 100)
    assert findings.excuses(105, 106)
    assert findings.excuses(129, 140)
    assert not findings.excuses(131, 140)


def test_a_fault_that_is_not_over_excuses_all_that_follows() -> None:
    findings = Findings(disturbances=[Disturbance("hub frozen", begin=100)])
    assert findings.excuses(10_000, 10_001)
