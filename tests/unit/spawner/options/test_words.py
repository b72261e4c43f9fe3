from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.request import parse

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        (words.held(3, 2, 4), ("3 GPUs in 2 sessions", "hold 4 at once.")),
        (words.too_much_held(3, 2, 4), ("3 GPUs in 2 sessions", "at most 1.")),
        (words.too_much_held(1, 1, 1), ("1 GPU in 1 session and", "no GPU.")),
        # More is held than may be: the limit came later.
        (words.too_much_held(4, 1, 2), ("4 GPUs in 1 session and", "no GPU.")),
        (words.too_many_at_once(4, 3), ("4 GPUs;", "hold 3 at once", "at most 3.")),
        (words.too_many_at_once(1, 0), ("1 GPU;", "no GPU.")),
        (words.too_many_for_one_session(3, 2), ("3 GPUs;", "one session", "at most 2.")),
        (words.too_many_for_partition(5, "sxm2", 4), ("5 GPUs;", "sxm2", "at most 4.")),
        (
            words.too_many_for_partition(3, "sxm2", 2, "a100"),
            ("3 GPUs;", "sxm2", "at most 2 of type a100."),
        ),
        (words.too_many_sessions(2, 2), ("2 sessions", "2 at once", "stop one")),
        (words.too_long(5 * HOUR, 4 * HOUR), ("5 hours;", "at most 4.")),
        (words.too_long(HOUR, HOUR / 2), ("1 hour;", "at most 0.5.")),
        (
            words.too_long_for_partition(5 * HOUR, "short", HOUR),
            ("5 hours;", "short", "at most 1."),
        ),
        (words.closed_partition("a", "b", "c"), ("Partition a is not open", "b, c.")),
        (words.no_such_type("t4", "a", "v100", "l4"), ("partition a ", "type t4", "v100, l4.")),
        (words.no_such_type("t4", "a"), ("Choose “Any”.",)),
        (words.no_such_image("a", "b", "c"), ("Image a is not offered", "Available: b, c.")),
        (words.gpus_not_taken(5, "sxm2", 4, 1), ("5 GPUs are not available", "at most 4", "sxm2")),
        (words.gpus_not_taken(1, "cpu", 0, 0), ("1 GPU is not available", "set to no GPU instead")),
        (words.time_not_taken(48 * HOUR, "sxm2", HOUR), ("48 hours is too long", "last 1 hour")),
        (words.unfit_image("The bare one"), ("The bare one", "jupyterhub-singleuser")),
        (words.NO_PARTITION, ("No partition", "administrators")),
        (words.NO_SESSIONS, ("not start sessions", "administrators")),
    ],
)
def test_a_refusal_names_what_was_asked_for_and_what_may_be_had(
    told: str, facts: tuple[str, ...]
) -> None:
    assert [fact for fact in facts if fact.lower() not in told.lower()] == []


@given(minutes=st.integers(1, 8760 * 60))
def test_the_hours_of_any_limit_can_be_asked_for(minutes: int) -> None:
    time = timedelta(minutes=minutes)
    assert parse({"hours": words.hours(time)}).time == time
