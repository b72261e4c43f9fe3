"""Two checkouts' results side by side."""

import signal
import sys
from pathlib import Path

import pytest

from benchmarks.portal.side_by_side import compared, figures, result


def test_figures_are_named_by_their_keys_and_lists_count_as_their_median() -> None:
    result = {"a": {"p50": 3, "name": "x", "is_well": True}, "rounds": [1, 9, 2], "mixed": [1, "x"]}
    assert dict(figures(result)) == {"a.p50": 3, "rounds": 2}


def test_the_ratio_is_the_median_of_the_rounds_own() -> None:
    before = [{"ms": 10, "old": 1}, {"ms": 20}, {"ms": 40}]
    after = [{"ms": 11}, {"ms": 10, "new": 1}, {"ms": 44}]
    row = {"before": 20, "after": 11, "ratio": 1.1, "ratios": [1.1, 0.5, 1.1]}
    assert compared(before, after) == {"ms": row}


def test_a_figure_that_was_nothing_has_no_ratio() -> None:
    assert compared([{"lost": 0}], [{"lost": 0}]) == {"lost": {"before": 0, "after": 0}}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return the checkout of another repository, whose benchmarks a test writes."""
    (tmp_path / "benchmarks/portal").mkdir(parents=True)
    venv = tmp_path / "deploy/venv"
    venv.parent.mkdir()
    venv.write_text(f"#!/bin/sh\necho {Path(sys.executable).parents[1]}\n")
    venv.chmod(0o755)
    return tmp_path


def test_a_benchmark_finds_the_modules_of_its_own_deployment(checkout: Path) -> None:
    (checkout / "deploy/only_there.py").write_text("FIGURES = '{\"ms\": 3}'\n")
    (checkout / "benchmarks/portal/one.py").write_text(
        "import only_there\nprint('words')\nprint(only_there.FIGURES)\n"
    )
    assert result(checkout, "one", ()) == {"ms": 3}


INTERRUPTED = """
import os, pathlib, signal, time
try:
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(60)
finally:
    time.sleep(1)
    pathlib.Path("cleaned_up").touch()
"""


def test_an_interrupted_benchmark_takes_down_what_it_has_made(checkout: Path) -> None:
    (checkout / "benchmarks/portal/long.py").write_text(INTERRUPTED)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            result(checkout, "long", ())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (checkout / "cleaned_up").exists()
