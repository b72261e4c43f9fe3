"""The papers' figures: held against numbers that were typed in apart from them."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import papers_and_ours
from dsportal.sizing import papers as sizing
from measurement import papers
from tests.instance import ROOT

TYPED = Path(__file__).resolve().parents[3] / "data" / "papers_numbers.txt"
PAGE = ROOT / "docs" / "reference" / "papers-and-ours.md"
FIGURES = [figure for table in papers.TABLES for figure in table.figures]


@dataclass(frozen=True)
class Typed:
    """A line of the list."""

    source: str
    table: str
    words: str
    value: float
    unit: str

    def is_of(self, figure: papers.Figure) -> bool:
        """Say whether a figure is the one that the line means."""
        words = f"{figure.row} {figure.who} {figure.gpus} {figure.precision}".lower()
        words += f" batch {figure.batch}" if figure.batch else ""
        said = set(re.split(r"[\s,:']+", words))
        shown = round(100 * figure.value, 9) if figure.unit == "share" else figure.value
        return (
            figure.table == self.table
            and {word.lower() for word in self.words.split()} <= said
            and (shown, "%" if figure.unit == "share" else figure.unit) == (self.value, self.unit)
        )


def typed() -> list[Typed]:
    """Read the list."""
    lines = [line for line in TYPED.read_text().splitlines() if not line.startswith("#")]
    found = [[part.strip() for part in line.split("|")] for line in lines]
    return [
        Typed(source, table, words, float(value), unit)
        for source, table, words, value, unit in found
    ]


def test_the_list_is_long_and_says_where_each_is_from() -> None:
    assert len(typed()) >= 150
    assert {one.source for one in typed()} == {"r", "m", "p"}


@pytest.mark.parametrize("one", typed(), ids=lambda one: f"{one.table}: {one.words} {one.unit}")
def test_a_number_is_the_papers(one: Typed) -> None:
    assert any(one.is_of(figure) for figure in FIGURES), one


def test_no_figure_is_without_a_typed_number() -> None:
    lines = typed()
    left = [figure for figure in FIGURES if not any(one.is_of(figure) for one in lines)]
    assert left == []


def test_a_batch_and_a_precision_of_a_page_are_typed_too() -> None:
    """A line without them would fit a figure with any."""
    for figure in FIGURES:
        if figure.batch:
            (line,) = (one for one in typed() if one.is_of(figure))
            assert f"batch {figure.batch}" in line.words
            assert figure.precision in line.words


def test_the_speed_ups_are_of_three_frameworks_at_two_precisions_each() -> None:
    told = {(one.framework, one.precision): one.value for one in papers.SPEED_UPS if one.gpus == 32}
    assert told == {
        ("MXNet", "fp32"): 29.4,
        ("MXNet", "mixed"): 25.8,
        ("TensorFlow", "fp32"): 22.0,
        ("TensorFlow", "mixed"): 23.7,
        ("Caffe2", "fp32"): 26.5,
        ("Caffe2", "mixed"): 27.3,
    }


def test_the_page_is_as_the_file() -> None:
    assert PAGE.read_text(encoding="utf-8") == papers_and_ours.page(), "run make docs"


@pytest.mark.parametrize("table", papers.TABLES, ids=lambda one: f"{one.document} {one.table}")
def test_what_reproduces_a_table_is_there(table: papers.PublishedTable) -> None:
    assert table.document in papers.DOCUMENTS
    # Two GPUs are in no machine that this was tried on: copies between them alone are untried.
    untried = {"peer to peer", "links"}
    if table.table in untried:
        assert table.reproduced == "unrun"
    else:
        assert table.reproduced in ("whole", "small"), "nothing is left for later"
    assert table.reproduced in papers_and_ours.HOW_FAR
    if table.notebook.endswith((".ipynb", ".py")):
        assert (ROOT / "notebook_templates" / table.notebook).is_file()


def test_networks_of_two_versions_are_told_apart() -> None:
    found = papers.trainings("resnet50")
    assert found["TensorFlow v1, V100-PCIe"] == {1: 819, 8: 6142, 10: 7333}
    assert found["TensorFlow v1.5, V100-PCIe"] == {1: 752, 8: 5731, 10: 7112}
    assert all(figure.framework for figure in papers.TRAININGS if figure.version)


def test_sizing_has_the_same_figures() -> None:
    mb = papers.figures("dgx", "sizing", "MB/s of a GPU")
    fed = {
        kind: papers.figures("dgx", "sizing", f"GPUs of an {kind} node")
        for kind in ("F800", "H500")
    }
    for rate in sizing.RATES:
        row = f"{rate.model}, {rate.images}"
        if rate.card == "V100":
            assert rate.mb_per_second == mb[row]
            assert rate.gpus_per_node == {kind: by_row[row] for kind, by_row in fed.items()}
    (a100,) = (rate for rate in sizing.RATES if rate.card == "A100")
    assert (
        a100.gpus_per_node["F800"] == papers.figures("a100", "sizing")["resnet50-training, small"]
    )
    sizes = papers.figures("dgx", "sizing", "MB")
    assert [float(sizing.IMAGE_MB[size]) for size in ("small", "large")] == list(sizes.values())
    assert float(sizing.MOUNT_MB_PER_SECOND) == papers.figures("dgx", "mounts")["one NFS mount"]
