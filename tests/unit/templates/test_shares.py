"""Where a training's time goes: cases that one can work out on paper."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import TimeShares, advice, covered, gpu_seconds


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0),
        ([(1, 3)], 2),
        ([(1, 3), (5, 6)], 3),
        ([(2, 6), (1, 3)], 5),
        ([(1, 10), (2, 3), (4, 5)], 9),
        ([(1, 2), (2, 3)], 2),
    ],
)
def test_what_overlaps_is_counted_once(spans: list[tuple[float, float]], seconds: float) -> None:
    assert covered(spans) == seconds


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted)))
def test_it_is_the_number_of_seconds_in_which_something_goes_on(spans: list[list[int]]) -> None:
    seconds = {second for begin, end in spans for second in range(begin, end)}
    assert covered([(begin, end) for begin, end in spans]) == len(seconds)


def test_only_what_the_gpu_does_is_its_time() -> None:
    def event(kind: str, begin: float, microseconds: float) -> dict[str, Any]:
        return {"ph": "X", "cat": kind, "ts": begin, "dur": microseconds}

    events = [
        event("cpu_op", 0, 900_000),
        event("cuda_runtime", 0, 100),
        event("kernel", 100, 200_000),
        # Beside the kernel, for the half of its time.
        event("gpu_memcpy", 150_100, 100_000),
        event("gpu_memset", 500_000, 1_000),
        {"ph": "M", "name": "process_name"},
    ]
    assert gpu_seconds({"traceEvents": events}) == pytest.approx(0.251)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        (TimeShares(0.65, None), "No GPU. 65% of the time the training waits for data"),
        (TimeShares(0.02, None), "A session with a GPU"),
        (
            TimeShares(0.02, 0.0),
            'Move both to the GPU with .to("cuda"). 2% of the time the training',
        ),
        (TimeShares(0.5, 0.95), "nothing holds it up"),
        (
            TimeShares(0.4, 0.5),
            "idle 50% of the time, and 40% of the time the training waits for data",
        ),
        (TimeShares(0.02, 0.5), "the steps are too short"),
    ],
)
def test_what_holds_it_up_is_named(shares: TimeShares, words: str) -> None:
    assert words in advice(shares)
