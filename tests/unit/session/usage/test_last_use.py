"""The decision when a session was last used."""

from dataclasses import replace

import pytest

from dsportal.session.usage.last_use import (
    Process,
    Terminal,
    UseSample,
    are_working,
    computing_cores,
    last_use,
)

SERVER = 10
LAST = 500.0


def process(
    pid: int, cpu_seconds: float, *, parent: int = SERVER, terminal: Terminal | None = None
) -> Process:
    return Process((pid, 1), parent, cpu_seconds, terminal)


def look(at: float, *processes: Process, gpu: int | None = None, **more: float | bool) -> UseSample:
    by_key = {one.key: one for one in processes}
    return UseSample(
        at=at,
        processes=by_key,
        processes_at=at,
        has_busy_kernel=bool(more.get("busy")),
        kernel_used_at=more.get("kernel", 0.0),
        page_used_at=more.get("page", 0.0),
        gpu_percents=[0, gpu],
    )


AT_PROMPT = Terminal(typed_at=700.0, written_at=950.0, is_at_prompt=True)
WITH_PROGRAM = Terminal(typed_at=700.0, written_at=950.0, is_at_prompt=False)
BEFORE = look(990, process(20, 5.0), process(30, 1.0, parent=20))


@pytest.mark.parametrize(
    ("now", "used_at"),
    [
        pytest.param(look(1000), LAST, id="nothing"),
        pytest.param(look(1000, busy=True), 1000, id="a cell runs"),
        pytest.param(look(1000, gpu=5), 1000, id="a GPU works"),
        pytest.param(look(1000, gpu=0), LAST, id="no GPU works"),
        pytest.param(look(1000, kernel=800.0), 800, id="a cell ran between two looks"),
        pytest.param(look(1000, kernel=400.0), LAST, id="a cell ran long ago"),
        pytest.param(look(1000, page=900.0), 900, id="a page saved"),
        pytest.param(look(1000, process(20, 5.1)), LAST, id="a kernel that waits"),
        pytest.param(look(1000, process(20, 7.0)), 1000, id="a process computes"),
        pytest.param(look(1000, process(40, 0.6)), 1000, id="a new process computes"),
        pytest.param(look(1000, process(40, 0.1)), LAST, id="a new process starts"),
        pytest.param(look(1000, process(20, 5, terminal=AT_PROMPT)), 700, id="a prompt"),
        pytest.param(look(1000, process(20, 5, terminal=WITH_PROGRAM)), 950, id="a program writes"),
        pytest.param(look(1000, kernel=5000.0), 1000, id="the clock was set back"),
        pytest.param(look(8190), 8190, id="the job was suspended"),
    ],
)
def test_what_is_use(now: UseSample, used_at: float) -> None:
    assert last_use(now, BEFORE, LAST) == used_at


def test_the_first_look_knows_no_rates() -> None:
    assert last_use(look(1000, process(20, 900.0)), None, LAST) == LAST


@pytest.mark.parametrize(
    ("now", "cores"),
    [
        pytest.param(look(1000, process(20, 5.0), process(30, 11.0, parent=20)), 1.0, id="child"),
        # The parent's figure holds what its child had used before.
        pytest.param(look(1000, process(20, 6.0)), 0.0, id="a child that idled has ended"),
        pytest.param(look(1000, process(20, 16.0)), 1.0, id="a child that computed has ended"),
        # The server reaps it, which does not count: nothing may be taken off for it.
        pytest.param(look(1000, process(30, 6.0, parent=1)), 0.5, id="the parent has ended"),
        pytest.param(look(990, process(20, 500.0)), 0.0, id="no time has passed"),
    ],
)
def test_how_many_cores_compute(now: UseSample, cores: float) -> None:
    assert computing_cores(now, BEFORE) == pytest.approx(cores)


def test_what_was_read_before_counts_for_the_time_between_the_readings() -> None:
    now = replace(look(1000, process(20, 6.0), process(30, 1.0, parent=20)), processes_at=992)
    assert computing_cores(now, BEFORE) == pytest.approx(0.5)
    # The same reading twice tells nothing new.
    assert computing_cores(replace(BEFORE, at=1000), BEFORE) == 0


def test_a_number_that_was_given_again_is_another_process() -> None:
    again = Process((20, 2), SERVER, 0.1)
    before = look(990, process(20, 5.0))
    assert computing_cores(look(1000, again), before) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("percents", "work"),
    [([], False), ([0], False), ([0, 1], True), ([None], False), ([None, 90], True)],
)
def test_a_gpu_that_works_is_use(percents: list[int | None], work: bool) -> None:
    assert are_working(percents) is work
