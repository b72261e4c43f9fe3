"""Two checkouts' results side by side."""

from benchmarks.portal.side_by_side import compared, figures


def test_figures_are_named_by_their_keys_and_lists_count_as_their_median() -> None:
    result = {"a": {"p50": 3, "name": "x", "is_well": True}, "rounds": [1, 9, 2], "mixed": [1, "x"]}
    assert dict(figures(result)) == {"a.p50": 3, "rounds": 2}


def test_the_ratio_is_the_median_of_the_rounds_own() -> None:
    before = [{"ms": 10, "old": 1}, {"ms": 20}, {"ms": 40}]
    after = [{"ms": 11}, {"ms": 10, "new": 1}, {"ms": 44}]
    assert compared(before, after) == {"ms": {"before": 20, "after": 11, "ratio": 1.1}}


def test_a_figure_that_was_nothing_has_no_ratio() -> None:
    assert compared([{"lost": 0}], [{"lost": 0}]) == {"lost": {"before": 0, "after": 0}}
