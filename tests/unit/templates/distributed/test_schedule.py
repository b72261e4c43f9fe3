"""How many steps a training has, and how fast it learns at which."""

import pytest
from schedule import Schedule, ScheduleError, rate_at

TEN_EPOCHS = Schedule(images=640, batch=32, ranks=2, epochs=10, most_steps=0, rate=4.0, warmup=0.1)


def test_steps_are_epochs_times_images_over_batch_and_processes() -> None:
    assert (TEN_EPOCHS.steps_an_epoch, TEN_EPOCHS.steps, TEN_EPOCHS.last_step) == (10, 100, 100)


def test_the_rate_rises_to_its_peak_and_falls_to_nothing() -> None:
    assert TEN_EPOCHS.peak == pytest.approx(1.0)
    rates = [TEN_EPOCHS.rate_at(step) for step in (0, 4, 9, 10, 55, 99)]
    assert rates[:5] == pytest.approx((0.1, 0.5, 1.0, 1.0, 0.5))
    assert 0 < rates[5] < 0.001


def test_a_training_that_is_cut_short_has_the_rates_of_the_whole_one() -> None:
    short = Schedule(640, 32, 2, 10, most_steps=25, rate=4.0, warmup=0.1)
    assert short.last_step == 25
    assert [short.rate_at(step) for step in range(25)] == [
        TEN_EPOCHS.rate_at(step) for step in range(25)
    ]
    assert [step for step in range(1, 26) if short.ends_at(step)] == [10, 20, 25]


def test_the_figures_are_derived_in_words() -> None:
    assert TEN_EPOCHS.words()[:3] == [
        "64 images a step = 32 a process x 2 processes",
        "10 steps an epoch = 640 images / 64 a step",
        "100 steps = 10 epochs x 640 images / 64 a step",
    ]


def test_one_of_a_thing_is_no_plural() -> None:
    alone = Schedule(32, 32, ranks=1, epochs=1, most_steps=0, rate=4.0, warmup=0.1)
    assert alone.words()[:3] == [
        "32 images a step = 32 a process x 1 process",
        "1 step an epoch = 32 images / 32 a step",
        "1 step = 1 epoch x 32 images / 32 a step",
    ]
    with pytest.raises(ScheduleError, match=r"images on 1 process\."):
        Schedule(31, 32, ranks=1, epochs=1, most_steps=0, rate=4.0, warmup=0.1).checked()


def test_a_rate_stays_at_its_peak_where_nothing_says_when_it_falls() -> None:
    assert [rate_at(step, 0.5, rising=2) for step in (0, 1, 2, 900)] == [0.25, 0.5, 0.5, 0.5]
    assert [rate_at(step, 0.5, rising=0) for step in (0, 1)] == [0.5, 0.5]


def test_a_rate_falls_along_half_a_cosine_after_it_rose() -> None:
    rates = [rate_at(step, 1.0, rising=2, steps=10) for step in (0, 1, 2, 6, 9)]
    assert rates[:4] == pytest.approx([0.5, 1.0, 1.0, 0.5])
    assert 0 < rates[4] < 0.05
