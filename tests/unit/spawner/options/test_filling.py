"""What a link or the last choice fills the form in with, and what it says of the rest."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.form.filling import Filling, fill_in
from jupyterhub_gpu_slurm.options.form.render import render
from jupyterhub_gpu_slurm.options.policy import Defaults, Limits, PartitionLimit
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm.associations import Association

LIMITS = Limits(
    (
        PartitionLimit("sxm2", 4, timedelta(hours=12), (("v100", 4),)),
        PartitionLimit("mixed", 8, timedelta(hours=1), (("a100", 2), ("v100", 8))),
    ),
    images={"ngc": "PyTorch"},
)
PHYSICS = Association("physics", frozenset({"normal", "high"}), is_default=True)
TEACHING = Association("teaching", frozenset({"normal"}))


def filling(**asked: str) -> Filling:
    return fill_in(asked, LIMITS, Defaults())


def test_without_a_wish_it_has_the_defaults() -> None:
    assert filling() == Filling("sxm2", 1, "", timedelta(hours=8), "")


def test_what_can_be_had_is_taken_and_nothing_is_said_of_it() -> None:
    found = filling(gpus="2", partition="mixed", gpu_type="a100", hours="0.5", image="ngc")
    assert found == Filling("mixed", 2, "a100", timedelta(minutes=30), "ngc")


@pytest.mark.parametrize(
    ("asked", "stands", "sentence"),
    [
        ({"gpus": "99"}, {"gpus": 1}, words.gpus_not_taken(99, "sxm2", 4, 1)),
        (
            {"gpus": "3", "partition": "mixed", "gpu_type": "a100"},
            {"gpus": 1},
            words.gpus_not_taken(3, "mixed", 2, 1),
        ),
        ({"partition": "dgx"}, {"partition": "sxm2"}, words.partition_not_taken("dgx", "sxm2")),
        (
            {"hours": "48"},
            {"time": timedelta(hours=12)},
            words.time_not_taken(timedelta(hours=48), "sxm2", timedelta(hours=12)),
        ),
        ({"gpus": "abc"}, {"gpus": 1}, words.gpus_not_understood("abc", 1)),
        ({"gpus": "10000000"}, {"gpus": 1}, words.gpus_not_understood("10000000", 1)),
        *[
            (
                {"hours": hours},
                {"time": timedelta(hours=8)},
                words.time_not_understood(hours, timedelta(hours=8)),
            )
            for hours in ("0", "-1", "abc", "nan", "1e400")
        ],
        (
            {"hours": "0.01"},
            {"time": timedelta(hours=0.1)},
            words.time_not_understood("0.01", timedelta(hours=0.1)),
        ),
        ({"gpu_type": "k80"}, {"gpu_type": ""}, words.type_not_taken("k80", "sxm2")),
        ({"image": "gone"}, {"image": ""}, words.image_not_taken("gone")),
    ],
)
def test_what_cannot_be_had_is_named_as_it_was_and_as_it_stands_now(
    asked: dict[str, str], stands: dict[str, object], sentence: str
) -> None:
    found = filling(**asked)
    assert found.not_taken == (sentence,)
    assert {name: getattr(found, name) for name in stands} == stands
    shown = render(LIMITS, ResourceShape(), Defaults(), asked)
    assert 'id="gpu-form-not-taken"' in shown
    assert all(value in sentence for value in asked.values() if value not in ("mixed", "a100"))


def test_other_choices_are_filled_in_where_they_are_offered() -> None:
    limits = replace(LIMITS, associations=(PHYSICS, TEACHING))
    found = fill_in({"account": "teaching", "qos": "long"}, limits, Defaults())
    assert found.chosen == {"account": "teaching"}
    assert found.not_taken == (words.not_chosen("QOS", "long", "The account's default"),)
    assert filling(account="teaching").not_taken == (words.not_chosen("Account", "teaching", ""),)


def test_each_thing_that_cannot_be_had_has_its_own_sentence() -> None:
    assert len(filling(gpus="99", partition="dgx", hours="48").not_taken) == 3


def test_a_number_of_gpus_chooses_a_partition_that_has_them() -> None:
    found = filling(gpus="8")
    assert (found.partition, found.gpus, found.not_taken) == ("mixed", 8, ())


def test_a_default_that_is_too_long_for_a_partition_is_no_news() -> None:
    found = filling(partition="mixed")
    assert (found.time, found.not_taken) == (timedelta(hours=1), ())


def test_a_link_s_text_is_no_markup() -> None:
    shown = render(LIMITS, ResourceShape(), Defaults(), {"partition": "<b>x"})
    assert "&lt;b&gt;x" in shown
    assert "<b>x" not in shown


def test_a_choice_of_a_minute_is_filled_in_as_the_shortest_that_the_form_takes() -> None:
    assert filling(hours="0.02").time == timedelta(hours=0.1)
