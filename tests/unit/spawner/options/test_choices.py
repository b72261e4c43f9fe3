"""What else can be chosen: values in, values out."""

import pytest

from jupyterhub_gpu_slurm.options.allowance import NO_LIMITS, Allowance
from jupyterhub_gpu_slurm.options.choices import Choices
from jupyterhub_gpu_slurm.slurm.associations import Association

PHYSICS = Association("physics", frozenset({"normal", "high"}), is_default=True)
TEACHING = Association("teaching", frozenset({"normal"}))
ONLY_ON_MIG = Association("teaching", frozenset({"long"}), partition="mig")


def fields(
    *associations: Association, allowance: Allowance = NO_LIMITS
) -> dict[str, tuple[str, ...]]:
    return {one.key: one.names for one in Choices(allowance, associations).fields}


def test_one_account_with_one_qos_is_no_choice() -> None:
    assert fields(TEACHING) == {}


def test_several_of_them_are() -> None:
    assert fields(PHYSICS) == {"qos": ("high", "normal")}
    assert fields(PHYSICS, TEACHING) == {
        "account": ("physics", "teaching"),
        "qos": ("high", "normal"),
    }


def test_accounts_with_one_qos_each_leave_no_choice_of_qos() -> None:
    default = Association("medicine", frozenset({"long"}), is_default=True)
    assert fields(TEACHING, default) == {"account": ("medicine", "teaching")}


def test_what_the_site_sets_is_no_choice() -> None:
    both = (PHYSICS, TEACHING)
    assert fields(*both, allowance=Allowance(account="teaching")) == {}
    assert fields(*both, allowance=Allowance(account="physics")) == {"qos": ("high", "normal")}
    assert fields(*both, allowance=Allowance(qos="high")) == {"account": ("physics", "teaching")}


@pytest.mark.parametrize(
    ("account", "partition", "allowed"),
    [
        (None, None, {"normal", "high"}),
        ("physics", None, {"normal", "high"}),
        ("teaching", None, {"normal", "long"}),
        ("teaching", "sxm2", {"normal"}),
        ("teaching", "mig", {"normal", "long"}),
        ("medicine", None, set()),
    ],
)
def test_a_qos_is_that_of_the_account_and_the_partition(
    account: str | None, partition: str | None, allowed: set[str]
) -> None:
    choices = Choices(NO_LIMITS, (PHYSICS, TEACHING, ONLY_ON_MIG))
    assert choices.allowed("qos", account, partition) == allowed


def test_without_a_known_default_account_any_of_the_qos_may_be_asked_for() -> None:
    choices = Choices(NO_LIMITS, (TEACHING, Association("medicine", frozenset({"long"}))))
    assert choices.allowed("qos") == {"normal", "long"}


def test_the_sites_reservation_may_be_named_and_is_what_is_had_without_a_choice() -> None:
    allowance = Allowance(reservation="course", reservations=frozenset({"course", "exam"}))
    (choice,) = Choices(allowance).fields
    assert (choice.unchosen, choice.names) == ("course", ("exam",))
    assert Choices(allowance).allowed("reservation") == {"course", "exam"}
    assert fields(allowance=Allowance(reservation="course")) == {}
