"""Ten minutes of the day that `benchmarks.portal.soak` can make last as long as one likes."""

import pytest

from benchmarks.portal.soak.injection import INJECTIONS
from benchmarks.portal.soak.jupyterlab import BOARDS, LABS, TENSORBOARDS
from benchmarks.portal.soak.run import Wanted, soak, told
from tests.instance import Instance

pytestmark = pytest.mark.long


# The day itself, and what precedes and follows it.
@pytest.mark.timeout(1200)
def test_a_short_day_with_faults_at_random_breaks_nothing(portal: Instance) -> None:
    wanted = Wanted(
        seed=1,
        minutes=10,
        users=16,
        real=2,
        form_viewers=4,
        cluster_viewers=4,
        jobs=4,
        fault_seconds=60,
        faults=list(INJECTIONS),
    )
    outcome = soak(portal, wanted)
    assert outcome.findings.counts["sessions"] >= 5
    assert len(outcome.findings.disturbances) > 5
    assert outcome.findings.found == [], told(outcome)
    most = {LABS: wanted.real, TENSORBOARDS: BOARDS * wanted.real}
    assert outcome.findings.most_at_once == most
