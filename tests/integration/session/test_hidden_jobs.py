"""Where Slurm shows nobody another user's job (PrivateData=jobs), sessions live and end as ever."""

from collections.abc import Callable, Iterator

import pytest

from tests.faults import jobs_hidden, restart_hub
from tests.instance import FILLER, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]


@pytest.fixture
def private(portal: Instance) -> Iterator[Instance]:
    with jobs_hidden(portal):
        yield portal


def test_a_session_starts_lives_is_extended_and_stops_where_its_job_is_hidden(
    private: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=1, hours=0.5)
    # The hub's account is such a stranger.
    assert private.slurm("squeue", "--noheader", "--all", user=FILLER) == ""
    # A hub that starts asks how each session is.
    restart_hub(private)
    assert user.server() is not None
    answer = user.session("POST", "/portal/clock/extend", json={"minutes": 60})
    assert answer.status_code == 200, answer.text
    assert private.job(job_id)["TimeLimit"] == "01:30:00"
    user.stop()
    until(lambda: job_id not in private.jobs(), seconds=40, what="the job has ended")


def test_a_session_whose_hidden_job_ends_is_over(private: Instance, visit: Visit) -> None:
    user = visit(USERS[1])
    job_id = user.start_and_wait(gpus=0, hours=0.5)
    private.slurm("scancel", job_id)
    until(lambda: user.server() is None, seconds=60, what="the hub has seen the end")


def test_a_session_outlives_that_its_job_becomes_hidden(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[2])
    job_id = user.start_and_wait(gpus=0, hours=0.5)
    with jobs_hidden(portal):
        restart_hub(portal)
        assert user.server() is not None
        assert portal.job(job_id)["JobState"] == "RUNNING"
