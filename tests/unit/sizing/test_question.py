"""What may be asked."""

import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsportal.sizing import words
from dsportal.sizing.question import FIELDS, MEASURED, Question, SizingError, question

DOCUMENTS = Path(__file__).parents[3] / "notebook_templates/benchmarks/measurement/papers.json"


def test_the_papers_have_the_names_that_the_notebooks_give_them() -> None:
    assert sorted(words.PAPERS) == sorted(json.loads(DOCUMENTS.read_text())["documents"].values())


def test_every_field_is_described_once() -> None:
    assert [field.name for field in fields(Question)] == list(FIELDS)
    assert set(MEASURED) <= set(FIELDS)


def test_what_is_left_out_or_empty_has_its_default() -> None:
    assert question({}) == question(dict.fromkeys(FIELDS, " "))
    assert (question({}).gpus, question({}).images_per_second) == (80, None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpus", "0"),
        ("gpus", "-1"),
        ("gpus", "8.5"),
        ("gpus", "100001"),
        ("gpus", "1e3"),
        ("gpus", "٨"),
        ("gpus", "8\n9"),
        ("gpus", "9" * 5000),
        ("link_gbps", "0"),
        ("link_gbps", "nan"),
        ("link_gbps", "1/0"),
        ("images_per_second", "0"),
        ("images_per_second", "1,000"),
        ("card", "v100; id"),
        ("what", "1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(SizingError) as refused:
        question({name: text})
    assert set(refused.value.faults) == {name}
    assert len(refused.value.faults[name]) < 250


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SizingError) as refused:
        question({"gpus": "many", "card": "K80", "mb_per_image": "1"})
    assert set(refused.value.faults) == {"gpus", "card", "images_per_second"}


@given(st.dictionaries(st.sampled_from([*FIELDS, "other"]), st.text(max_size=20)))
def test_any_text_is_an_answer_or_a_refusal(asked: dict[str, str]) -> None:
    with suppress(SizingError):
        assert 1 <= question(asked).gpus <= 100_000
