"""What the crowd's browsers ask."""

from itertools import pairwise

from benchmarks.portal.soak.crowd import LOOKS_PER_OPENING, form_questions


def test_a_form_that_is_opened_asks_for_a_forecast() -> None:
    asked = [
        path.split("/anna")[0] for number in range(14) for path, _ in form_questions("anna", number)
    ]
    opened, forecast = "/hub/spawn", "/hub/api/gpu-session/forecast"
    assert asked.count(opened) == asked.count(forecast) == 14 / LOOKS_PER_OPENING
    assert all((one == opened) == (after == forecast) for one, after in pairwise(asked))


def test_forecasts_and_looks_are_counted_apart() -> None:
    assert [what for _, what in form_questions("anna", 0)] == ["looks at the form", "forecasts"]
    assert [what for _, what in form_questions("anna", 1)] == ["looks at the form"]
