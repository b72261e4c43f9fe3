from datetime import UTC, datetime, timedelta

import pytest

from jupyterhub_gpu_slurm.session import progress, reasons
from jupyterhub_gpu_slurm.slurm.queue_positions import QueuePosition
from jupyterhub_gpu_slurm.slurm.records import Job

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
ASKED = NOW - timedelta(minutes=10)


@pytest.mark.parametrize(
    ("job", "facts", "advice"),
    [
        (None, ("Submitting",), None),
        (
            Job(7, "PENDING", "Resources"),
            ("Job 7 ", f"queue: {reasons.REASONS['Resources'].why} (PENDING, Resources)."),
            reasons.REASONS["Resources"].advice,
        ),
        (
            Job(7, "PENDING"),
            ("Job 7 ", f"queue: {reasons.REASONS['None'].why} (PENDING)."),
            reasons.REASONS["None"].advice,
        ),
        (
            Job(7, "PENDING", "JobHeldAdmin"),
            ("Job 7 ", f"queue: {reasons.REASONS['JobHeldAdmin'].why} (PENDING, JobHeldAdmin)."),
            reasons.REASONS["JobHeldAdmin"].advice,
        ),
        (
            Job(7, "PENDING", "Fnord"),
            ("Job 7 ", "queue (PENDING, Fnord)."),
            None,
        ),
        (
            Job(7, "RUNNING", node="node001"),
            ("Job 7 is running", "node001", "RUNNING"),
            None,
        ),
        (
            Job(7, ""),
            ("Job 7 was submitted",),
            None,
        ),
    ],
)
def test_what_the_page_says(job: Job | None, facts: tuple[str, ...], advice: str | None) -> None:
    event = progress.event(job, ASKED, NOW)
    assert [fact for fact in facts if fact not in event["message"]] == []
    # A sentence of its own on the page.
    assert event.get("advice") == (advice and f"{advice[0].upper()}{advice[1:]}.")
    assert event["since"] == "2026-11-21T13:50:00+00:00"


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_the_page_is_told_whether_the_job_waits_or_runs(state: str) -> None:
    assert progress.event(Job(7, state), ASKED, NOW)["state"] == state


def test_a_job_that_waits_has_its_place_and_one_that_runs_has_none() -> None:
    position = QueuePosition(3, 7, "sxm2")
    event = progress.event(Job(7, "PENDING", "Priority"), ASKED, NOW, position)
    assert (event["position"], event["waiting"], event["partition"]) == (3, 7, "sxm2")
    assert "position" not in progress.event(Job(7, "PENDING", "Priority"), ASKED, NOW, None)
    assert "position" not in progress.event(Job(7, "RUNNING"), ASKED, NOW, position)


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
