from datetime import UTC, datetime, timedelta

import pytest

from jupyterhub_gpu_slurm.session import progress
from jupyterhub_gpu_slurm.slurm.records import Job

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
ASKED = NOW - timedelta(minutes=10)


@pytest.mark.parametrize(
    ("job", "message", "advice"),
    [
        (None, "Submitting the job to Slurm.", None),
        (
            Job(7, "PENDING", "Resources"),
            "Job 7 is waiting in the queue (PENDING, Resources): "
            "no node has enough free GPUs, cores and memory at the moment.",
            "It starts by itself as soon as there is room; fewer GPUs may start sooner.",
        ),
        (
            Job(7, "PENDING"),
            "Job 7 is waiting in the queue (PENDING): Slurm has not looked at it yet.",
            "This takes a few seconds.",
        ),
        (
            Job(7, "PENDING", "JobHeldAdmin"),
            "Job 7 is waiting in the queue (PENDING, JobHeldAdmin): "
            "an administrator put it on hold.",
            "Cancel it and ask the administrators.",
        ),
        (
            Job(7, "PENDING", "Fnord"),
            "Job 7 is waiting in the queue (PENDING, Fnord).",
            None,
        ),
        (
            Job(7, "RUNNING", node="node001"),
            "Job 7 is running on node001 (RUNNING); JupyterLab is starting.",
            None,
        ),
        (
            Job(7, ""),
            "Job 7 was submitted; Slurm cannot say what state it is in at the moment.",
            None,
        ),
    ],
)
def test_what_the_page_says(job: Job | None, message: str, advice: str | None) -> None:
    event = progress.event(job, ASKED, NOW)
    assert event["message"] == message
    assert event.get("advice") == advice
    assert event["since"] == "2026-11-21T13:50:00+00:00"


def test_the_expected_start_is_said_while_it_is_to_come() -> None:
    coming = Job(7, "PENDING", "Priority", start=NOW + timedelta(minutes=20))
    assert progress.event(coming, ASKED, NOW)["expected"] == "2026-11-21T14:20:00+00:00"
    past = Job(7, "PENDING", "Priority", start=NOW - timedelta(seconds=1))
    assert "expected" not in progress.event(past, ASKED, NOW)


def test_the_bar_never_goes_back_on_the_way_to_a_running_job() -> None:
    start = NOW + timedelta(minutes=20)
    seen = [
        progress.event(job, ASKED, ASKED + timedelta(minutes=minutes))["progress"]
        for minutes, job in (
            (0, None),
            (0, Job(7, "PENDING", "Priority")),
            (1, Job(7, "PENDING", "Priority", start=start)),
            (15, Job(7, "PENDING", "Priority", start=start)),
            (31, Job(7, "PENDING", "Priority", start=start)),
            (31, Job(7, "RUNNING", start=start)),
        )
    ]
    assert seen == sorted(set(seen))
    assert seen[-1] < 100
