"""From samples and log lines to the phases of a session's start and end."""

from datetime import datetime

import pytest

from benchmarks.portal.harness.phases import (
    JobSample,
    StartSeen,
    began,
    by_phase,
    durations,
    ended,
    logged,
    start_phases,
    stop_phases,
)

BEGIN = datetime.fromisoformat("2026-11-30 16:06:55").timestamp()
HUB_LOG = """\
[I 2026-11-30 16:06:55.128 JupyterHub provider:744] Creating oauth client jupyterhub-user-a
[I 2026-11-30 16:06:55.250 JupyterHub spawner:265] Job 1401 is the session of a
[I 2026-11-30 16:06:56.375 JupyterHub log:192] 204 POST /hub/api/gpu-session/port (a@127.0.0.1) 4ms
[I 2026-11-30 16:06:56.500 JupyterHub base:1192] User a took 1.305 seconds to start
"""
SESSION_LOG = """\
a word of bash's
[I 2026-11-30 16:06:56.250 HubLogin] Starting jupyterhub single-user server extension version 6.1.1
[I 2026-11-30 16:06:56.312 SessionServer] Jupyter Server 2.21.1 is running at:
[I 2026-11-30 16:06:56,385] The hub knows this session: port 43901
"""
START = (
    JobSample(BEGIN + 0.0, ""),
    JobSample(BEGIN + 0.0625, "", frozenset({"launcher"})),
    JobSample(BEGIN + 0.125, "", frozenset({"launcher", "sbatch"})),
    JobSample(BEGIN + 0.375, "PENDING"),
    JobSample(BEGIN + 0.5, "RUNNING"),
    JobSample(BEGIN + 0.625, "RUNNING", frozenset({"session"})),
)
STOP = (
    JobSample(0.0, "RUNNING", frozenset({"kernel", "session"})),
    JobSample(0.125, "RUNNING", frozenset({"launcher", "kernel", "session"})),
    JobSample(0.25, "COMPLETING", frozenset({"kernel", "session"})),
    JobSample(0.5, "COMPLETING", frozenset({"session"})),
    JobSample(0.625, "COMPLETING"),
    JobSample(0.875, "COMPLETING", frozenset({"epilog"})),
    JobSample(1.0, "COMPLETING"),
    JobSample(1.0625, "CANCELLED"),
)


def start_seen(**other: object) -> StartSeen:
    files = {"tls.crt": BEGIN + 0.75, "kernel_configuration.py": BEGIN + 1.125}
    seen = {"samples": START, "hub_log": HUB_LOG, "session_log": SESSION_LOG, "files": files}
    times = {"asked": BEGIN, "told": BEGIN + 1.625, "answered": BEGIN + 1.75}
    return StartSeen(**{**times, **seen, **other})  # type: ignore[arg-type]


def rounded(phases: dict[str, float | None]) -> dict[str, float | None]:
    return {name: None if one is None else round(one, 4) for name, one in phases.items()}


def test_a_start_is_told_in_phases_that_follow_each_other() -> None:
    assert rounded(start_phases(start_seen())) == {
        "launcher_began": 0.0625,
        "sbatch_began": 0.0625,
        "submitted": 0.125,
        "running": 0.25,
        "session_began": 0.125,
        "settled": 0.125,
        "imported": 0.375,
        "first_line": 0.125,
        "listens": 0.062,
        "reported": 0.063,
        "ready": 0.125,
        "told": 0.125,
        "answers": 0.125,
    }


def test_the_phases_of_a_start_make_up_its_whole() -> None:
    phases = start_phases(start_seen())
    assert sum(each or 0 for each in phases.values()) == pytest.approx(1.75)


def test_a_short_program_that_no_look_has_met_makes_its_two_phases_unknown() -> None:
    samples = [sample for sample in START if "sbatch" not in sample.running]
    phases = start_phases(start_seen(samples=samples))
    assert [name for name, seconds in phases.items() if seconds is None] == [
        "sbatch_began",
        "submitted",
    ]


def test_a_stop_is_told_in_phases_that_follow_each_other() -> None:
    phases = stop_phases(STOP, 0.0, ["launcher"], ["kernel", "session"])
    assert list(phases.items()) == [
        ("launcher_began", 0.125),
        ("ordered", 0.125),
        ("kernel_ended", 0.25),
        ("session_ended", 0.125),
        ("epilog_began", 0.25),
        ("epilog_ended", 0.125),
        ("free", 0.0625),
    ]


def test_a_plain_job_has_no_launcher_and_one_program() -> None:
    samples = [
        JobSample(1.0, "RUNNING", frozenset({"sleep"})),
        JobSample(1.25, "COMPLETING"),
        JobSample(1.5, "COMPLETING", frozenset({"epilog"})),
        JobSample(1.75, "CANCELLED"),
    ]
    phases = stop_phases(samples, 1.125, [], ["sleep"])
    assert phases == {
        "ordered": 0.125,
        "sleep_ended": 0.0,
        "epilog_began": 0.25,
        "epilog_ended": 0.25,
        "free": 0.0,
    }


@pytest.mark.parametrize(
    ("state", "is_over"),
    [("RUNNING", False), ("COMPLETING", False), ("CANCELLED", True), ("COMPLETED", True)],
)
def test_gpus_are_free_once_the_job_does_not_complete_any_more(state: str, is_over: bool) -> None:
    assert JobSample(0.0, state).is_over is is_over


def test_a_program_has_ended_only_after_it_was_seen_last() -> None:
    is_there = [True, False, True, False, False]
    samples = [
        JobSample(float(at), "RUNNING", frozenset({"kernel"}) if there else frozenset())
        for at, there in enumerate(is_there)
    ]
    assert began(samples, "kernel") == 0.0
    assert ended(samples, "kernel") == 3.0
    assert ended(samples[:3], "kernel") is None
    assert ended(samples, "session") is None


def test_moments_that_are_seen_in_the_other_order_were_at_once() -> None:
    assert durations({"asked": 1.0, "submitted": 2.0, "running": 1.5, "listens": 2.5}) == {
        "submitted": 1.0,
        "running": 0.0,
        "listens": 0.5,
    }


def test_what_is_unknown_is_no_figure_and_keeps_its_place() -> None:
    runs: list[dict[str, float | None]]
    runs = [{"submitted": None, "running": 0.5, "lost": None}, {"submitted": 0.25, "running": 1.0}]
    assert list(by_phase(runs).items()) == [("submitted", [0.25]), ("running", [0.5, 1.0])]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("", 1.25), ("is running at", 1.312), ("The hub knows", 1.385), ("a word", None)],
)
def test_a_log_says_when(words: str, seconds: float | None) -> None:
    moment = logged(SESSION_LOG, words)
    assert (None if moment is None else round(moment - BEGIN, 3)) == seconds
