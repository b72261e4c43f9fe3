"""What a user may have of what the site wrote for its groups."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterhub_gpu_slurm.options.allowance import NO_LIMITS, Allowance, combine, read

STUDENTS = Allowance(
    max_gpus_per_session=1,
    max_gpus=1,
    max_time=timedelta(hours=4),
    partitions=frozenset({"short"}),
    account="teaching",
)
STAFF = Allowance(max_gpus=4, max_sessions=3, partitions=frozenset({"sxm2"}), account="research")
BORROWERS = Allowance(qos="low", max_gpus=0)
GROUPS = {"students": STUDENTS, "staff": STAFF, "borrowers": BORROWERS}
DEFAULT = Allowance(max_gpus_per_session=2, max_gpus=2, max_sessions=2, qos="normal")


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        # Nobody's group: the default as it is.
        ([], DEFAULT),
        (["others"], DEFAULT),
        # One group: its keys, and the default for those it lacks; also where it gives less.
        (
            ["students"],
            Allowance(
                max_gpus_per_session=1,
                max_gpus=1,
                max_time=timedelta(hours=4),
                max_sessions=2,
                partitions=frozenset({"short"}),
                account="teaching",
                qos="normal",
            ),
        ),
        # Nought is a figure, not a gap.
        (
            ["borrowers"],
            Allowance(max_gpus_per_session=2, max_gpus=0, max_sessions=2, qos="low"),
        ),
        # Two groups: the higher figure, all partitions, the account of the first in the table;
        # a key that one of them lacks is the other's.
        (
            ["staff", "students", "others"],
            Allowance(
                max_gpus_per_session=1,
                max_gpus=4,
                max_time=timedelta(hours=4),
                max_sessions=3,
                partitions=frozenset({"short", "sxm2"}),
                account="teaching",
                qos="normal",
            ),
        ),
        (
            ["borrowers", "staff"],
            Allowance(
                max_gpus_per_session=2,
                max_gpus=4,
                max_sessions=3,
                partitions=frozenset({"sxm2"}),
                account="research",
                qos="low",
            ),
        ),
    ],
)
def test_groups_combine_key_by_key(groups: list[str], expected: Allowance) -> None:
    assert combine(DEFAULT, GROUPS, groups) == expected


def test_the_order_of_the_users_groups_does_not_matter() -> None:
    there = combine(DEFAULT, GROUPS, ["students", "staff", "borrowers"])
    assert combine(DEFAULT, GROUPS, ["borrowers", "staff", "students"]) == there


def test_the_order_of_the_tables_decides_the_account() -> None:
    turned = dict(reversed(GROUPS.items()))
    assert combine(DEFAULT, turned, ["students", "staff"]).account == "research"


def test_without_tables_there_are_no_limits() -> None:
    assert combine(NO_LIMITS, {}, ["students"]) == NO_LIMITS


FIGURES = st.none() | st.integers(0, 8)
ALLOWANCES = st.builds(
    Allowance,
    max_gpus=FIGURES,
    max_sessions=FIGURES,
    partitions=st.none() | st.frozensets(st.sampled_from("abc"), min_size=1),
)


@given(ALLOWANCES, st.dictionaries(st.sampled_from("xyz"), ALLOWANCES), st.sampled_from("xyz"))
def test_one_more_group_that_grants_the_same_keys_takes_nothing_away(
    default: Allowance, tables: dict[str, Allowance], joined: str
) -> None:
    before = combine(default, tables, set("xyz") - {joined})
    after = combine(default, tables, set("xyz"))
    others = [allowance for name, allowance in tables.items() if name != joined]
    if any(allowance.max_gpus is not None for allowance in others):
        assert before.max_gpus is not None
        assert after.max_gpus is not None
        assert after.max_gpus >= before.max_gpus
    if any(allowance.partitions is not None for allowance in others):
        assert (before.partitions or frozenset()) <= (after.partitions or frozenset())


def test_a_table_is_read_with_its_units() -> None:
    table = {
        "max_gpus_per_session": 2,
        "max_gpus": 4,
        "max_hours": 1.5,
        "max_sessions": 0,
        "partitions": ("sxm2", "short"),
        "account": "research",
        "qos": "high-1",
    }
    assert read(table) == Allowance(
        max_gpus_per_session=2,
        max_gpus=4,
        max_time=timedelta(minutes=90),
        max_sessions=0,
        partitions=frozenset({"sxm2", "short"}),
        account="research",
        qos="high-1",
    )
    assert read({}) == NO_LIMITS


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (None, "None: must be a table"),
        ([("max_gpus", 1)], "must be a table"),
        ({"max_gpu": 1}, "'max_gpu' is not a known key"),
        ({1: 1}, "1 is not a known key"),
        ({"max_gpus": -1}, "max_gpus = -1: must be a whole number"),
        ({"max_gpus": "4"}, "max_gpus = '4': must be a whole number"),
        ({"max_sessions": True}, "max_sessions = True: must be a whole number"),
        ({"max_gpus_per_session": 1.0}, "must be a whole number"),
        ({"max_hours": 0}, "max_hours = 0: must be hours"),
        ({"max_hours": float("nan")}, "max_hours = nan: must be hours"),
        ({"max_hours": 10_000}, "at most 8760"),
        ({"max_hours": 10**400}, "at most 8760"),
        ({"max_hours": "8"}, "must be hours"),
        ({"partitions": "sxm2"}, "partitions = 'sxm2': must be a list"),
        ({"partitions": []}, "at least one name"),
        ({"partitions": ["a,b"]}, "partitions = 'a,b': must be one word"),
        ({"account": ""}, "account = '': must be one word"),
        ({"account": "a b"}, "must be one word"),
        ({"account": "-x"}, "must be one word"),
        ({"qos": "a\n#SBATCH --uid=0"}, "must be one word"),
        ({"qos": 1}, "must be one word"),
    ],
)
def test_a_mistake_in_a_table_is_named(table: object, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace("[", r"\[")) as caught:
        read(table)
    assert "\n" not in str(caught.value)


def test_what_can_be_chosen_is_what_any_group_of_the_user_lists() -> None:
    tables = {"a": read({"reservations": ["course"]}), "b": read({"reservations": ["exam"]})}
    default = read({"constraints": ["nvlink"]})
    found = combine(default, tables, ["a", "b"])
    assert found.reservations == frozenset({"course", "exam"})
    assert found.constraints == frozenset({"nvlink"})
    assert combine(default, tables, []).reservations is None
