"""The last hour of a job's use, from readings that are told."""

import pytest

from dsportal.session.usage.gpus import GpuFigures, GpuReading, GpuState
from dsportal.session.usage.history import SAMPLES, History, Sample, sample, unused_seconds
from dsportal.session.usage.last_use import Process
from dsportal.session.usage.meter import Held, Reading

HELD = Held(cores=4, memory_bytes=8 << 30)


def reading(at: float, *processes: Process, gpus: tuple[int | None, ...] | None = ()) -> Reading:
    """Make one; ``gpus=None`` is a driver that does not answer."""
    known = GpuReading(
        GpuState.KNOWN, tuple(GpuFigures("V100", one, 5, 9, 40, 30) for one in gpus or ())
    )
    silent = GpuReading(GpuState.NO_ANSWER)
    by_key = {process.key: process for process in processes}
    return Reading(at, by_key, 1000, silent if gpus is None else known)


def process(pid: int, cpu: float, read: int, written: int, parent: int = 1) -> Process:
    return Process((pid, 1), parent, cpu, read_bytes=read, written_bytes=written)


BEFORE = reading(100, process(20, 5.0, 1000, 0), process(30, 1.0, 50, 700, parent=20))


@pytest.mark.parametrize(
    ("now", "rates"),
    [
        pytest.param(
            reading(110, process(20, 15.0, 3000, 0), process(30, 1.0, 50, 1700, parent=20)),
            (1.0, 200, 100),
            id="two work",
        ),
        pytest.param(
            reading(105, process(20, 7.0, 1050, 1700)), (0.2, 0, 200), id="a child has ended"
        ),
        pytest.param(reading(110), (0, 0, 0), id="all have ended"),
        pytest.param(
            reading(110, process(20, 0.0, 0, 0), process(30, 0.0, 0, 0)), (0, 0, 0), id="set back"
        ),
        pytest.param(
            reading(110, Process((20, 2), 1, 3.0, read_bytes=10)),
            (0.3, 1, 0),
            id="the number is given again",
        ),
        pytest.param(reading(100), (None, None, None), id="no time has passed"),
        pytest.param(reading(40), (None, None, None), id="the clock was set back"),
    ],
)
def test_rates_come_from_counters(now: Reading, rates: tuple[float | None, ...]) -> None:
    made = sample(now, BEFORE)
    assert (made.cores, made.read_rate, made.write_rate) == rates


def test_the_first_sample_knows_no_rates() -> None:
    made = sample(BEFORE, None)
    assert (made.cores, made.read_rate, made.memory_bytes) == (None, None, 1000)


def test_the_page_gets_what_it_lacks() -> None:
    history = History(HELD)
    assert history.tell()["samples"]["at"] == []
    for at in (10, 20, 30):
        history.add(reading(at))
    told = history.tell()
    assert (told["first"], told["samples"]["at"]) == (1, [10, 20, 30])
    told = history.tell(since=2)
    assert (told["first"], told["samples"]["at"]) == (3, [30])
    told = history.tell(since=3)
    assert (told["first"], told["samples"]["at"]) == (4, [])


def test_a_number_of_another_session_gets_all() -> None:
    history = History(HELD)
    history.add(reading(10))
    told = history.tell(since=300)
    assert (told["first"], told["samples"]["at"]) == (1, [10])


def test_an_hour_is_kept() -> None:
    history = History(HELD)
    for number in range(2 * SAMPLES):
        history.add(reading(10 * number))
    told = history.tell()
    at = told["samples"]["at"]
    assert at[-1] - at[0] == 3600
    # Whoever slept for longer than that gets all that is left.
    assert told["first"] == SAMPLES + 1
    assert history.tell(since=5)["first"] == SAMPLES + 1
    assert history.tell(since=2 * SAMPLES - 1)["samples"]["at"] == at[-1:]


def test_each_gpu_has_its_columns_also_while_the_driver_is_silent() -> None:
    history = History(HELD)
    history.add(reading(10, gpus=None))
    history.add(reading(20, gpus=(90, None)))
    history.add(reading(30, gpus=None))
    told = history.tell()
    assert told["gpus"]["state"] == "no_answer"
    assert [gpu["name"] for gpu in told["gpus"]["each"]] == ["V100", "V100"]
    first, second = told["samples"]["gpus"]
    assert (first["percent"], first["celsius"]) == ([None, 90, None], [None, 40, None])
    assert (second["percent"], second["memory_bytes"]) == ([None] * 3, [None, 5, None])


@pytest.mark.parametrize(
    ("percents", "seconds"),
    [
        ([], 0),
        ([0], 0),
        ([0, 0, 0], 20),
        ([0, 0, 50, 0, 0, 0], 20),
        ([0, 0, 50], 0),
        # What is not known may have been work.
        ([0, None, 0, 0], 10),
        ([None, None], 0),
    ],
)
def test_for_how_long_a_gpu_was_not_used(percents: list[int | None], seconds: int) -> None:
    samples = [
        Sample(10.0 * at, None, None, None, None, (GpuFigures(percent=percent),))
        for at, percent in enumerate(percents)
    ]
    assert unused_seconds(samples, 0) == seconds
