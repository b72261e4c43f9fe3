from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jupyterhub_gpu_slurm.errors import OverLimit
from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.allowance import NO_LIMITS, Allowance
from jupyterhub_gpu_slurm.options.limits import limits_for
from jupyterhub_gpu_slurm.options.policy import (
    AcceptedRequest,
    Defaults,
    Holding,
    Limits,
    PartitionLimit,
    accept,
    holding_in_words,
    left,
)
from jupyterhub_gpu_slurm.options.request import SessionRequest
from jupyterhub_gpu_slurm.outlook.availability import AvailabilityCounter
from jupyterhub_gpu_slurm.resources import Resources, ResourceShape
from jupyterhub_gpu_slurm.slurm.associations import Association
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Node, Partition

SHAPE = ResourceShape()


def node(
    name: str = "node001", gpus: int = 4, cores: int = 40, memory_mb: int = 384 * 1024
) -> Node:
    return Node(name, "127.0.0.1", (Gres("gpu", "v100", gpus),), cores, memory_mb, is_up=True)


def partition(
    name: str,
    *nodes: Node,
    is_default: bool = False,
    is_up: bool = True,
    max_time: timedelta | None = timedelta(hours=12),
    groups: frozenset[str] | None = None,
) -> Partition:
    return Partition(name, is_default, is_up, max_time, groups, nodes or (node(),))


def test_the_clusters_default_partition_is_offered_first() -> None:
    cluster = Cluster((partition("a"), partition("sxm2", is_default=True)))
    assert [
        limit.name for limit in limits_for([], cluster, AvailabilityCounter(SHAPE)).partitions
    ] == [
        "sxm2",
        "a",
    ]


def test_the_sites_default_partition_goes_before_the_clusters() -> None:
    cluster = Cluster((partition("a"), partition("sxm2", is_default=True)))
    limits = limits_for([], cluster, AvailabilityCounter(SHAPE), preferred_partition="a")
    assert [limit.name for limit in limits.partitions] == ["a", "sxm2"]


def test_a_partition_of_other_groups_is_not_offered() -> None:
    cluster = Cluster((partition("a", groups=frozenset({"admins"})), partition("b")))
    assert [
        limit.name
        for limit in limits_for(["users"], cluster, AvailabilityCounter(SHAPE)).partitions
    ] == ["b"]
    assert len(limits_for(["users", "admins"], cluster, AvailabilityCounter(SHAPE)).partitions) == 2


@pytest.mark.parametrize(
    "rule",
    [{"is_root_only": True}, {"is_hidden": True}, {"min_nodes": 2}, {"needs_reservation": True}],
    ids=str,
)
def test_a_partition_that_is_not_for_sessions_is_not_offered(rule: dict[str, Any]) -> None:
    one = replace(partition("a"), **rule)
    limits = limits_for([], Cluster((one, partition("b"))), AvailabilityCounter(SHAPE))
    assert [limit.name for limit in limits.partitions] == ["b"]


@pytest.mark.parametrize("rule", [{"is_hidden": True}, {"min_nodes": 2}], ids=str)
def test_such_a_partition_is_offered_where_the_site_names_it(rule: dict[str, Any]) -> None:
    cluster = Cluster((replace(partition("a"), **rule), partition("b")))
    counter = AvailabilityCounter(SHAPE)
    for limits in (
        limits_for([], cluster, counter, preferred_partition="a"),
        limits_for([], cluster, counter, allowance=Allowance(partitions=frozenset({"a"}))),
        limits_for([], cluster, counter, named=["a"]),
    ):
        assert limits.partitions[0].name == "a"


def test_a_partition_that_demands_a_reservation_is_offered_to_those_who_have_one() -> None:
    cluster = Cluster((replace(partition("a"), needs_reservation=True), partition("b")))
    counter = AvailabilityCounter(SHAPE)
    to_choose = Allowance(reservations=frozenset({"course"}))
    limits = limits_for([], cluster, counter, allowance=to_choose)
    with pytest.raises(OverLimit, match=r"Partition a .*reservation"):
        accept(SessionRequest(partition="a"), limits, SHAPE, Defaults())
    chosen = SessionRequest(partition="a", reservation="course")
    assert accept(chosen, limits, SHAPE, Defaults()).reservation == "course"
    # Without a choice it is a partition that demands none.
    assert accept(SessionRequest(), limits, SHAPE, Defaults()).partition == "b"
    fixed = limits_for([], cluster, counter, allowance=Allowance(reservation="course"))
    assert accept(SessionRequest(), fixed, SHAPE, Defaults()).partition == "a"
    assert accept(SessionRequest(), fixed, SHAPE, Defaults()).reservation == "course"


def test_a_partition_that_no_group_grants_is_not_offered() -> None:
    cluster = Cluster((partition("a", is_default=True), partition("b"), partition("c")))
    allowance = Allowance(partitions=frozenset({"c", "b", "nowhere"}))
    limits = limits_for(
        [], cluster, AvailabilityCounter(SHAPE), preferred_partition="a", allowance=allowance
    )
    assert [limit.name for limit in limits.partitions] == ["b", "c"]
    assert limits.allowance == allowance


def test_a_group_opens_no_partition_that_slurm_closes() -> None:
    cluster = Cluster((partition("a", groups=frozenset({"admins"})), partition("b")))
    allowance = Allowance(partitions=frozenset({"a"}))
    assert (
        limits_for(["users"], cluster, AvailabilityCounter(SHAPE), allowance=allowance).partitions
        == ()
    )


def test_a_closed_partition_is_not_offered() -> None:
    assert (
        limits_for(
            [], Cluster((partition("a", is_up=False),)), AvailabilityCounter(SHAPE)
        ).partitions
        == ()
    )


@pytest.mark.parametrize(
    ("one_node", "expected"),
    [
        (node(gpus=4), 4),
        (node(gpus=0), 0),
        (node(gpus=8, cores=40), 5),
        (node(gpus=8, cores=64, memory_mb=200 * 1024), 4),
    ],
)
def test_the_largest_session_has_its_cores_and_memory_on_the_node_too(
    one_node: Node, expected: int
) -> None:
    limits = limits_for([], Cluster((partition("a", one_node),)), AvailabilityCounter(SHAPE))
    assert limits.partitions[0].max_gpus == expected


def test_nodes_of_two_sizes_give_the_larger() -> None:
    cluster = Cluster((partition("a", node(gpus=2), node("node002", gpus=4)),))
    assert limits_for([], cluster, AvailabilityCounter(SHAPE)).partitions[0].max_gpus == 4


LIMITS = Limits(
    (
        PartitionLimit("sxm2", 4, timedelta(hours=12)),
        PartitionLimit("short", 2, timedelta(hours=1)),
        PartitionLimit("long", 1, None),
    )
)


def test_gaps_are_filled_with_the_defaults() -> None:
    accepted = accept(SessionRequest(), LIMITS, SHAPE, Defaults())
    assert accepted == AcceptedRequest(Resources(1, 8, 49152), timedelta(hours=8), "sxm2")


def test_the_default_time_is_cut_to_the_partitions() -> None:
    accepted = accept(SessionRequest(partition="short"), LIMITS, SHAPE, Defaults())
    assert accepted.time == timedelta(hours=1)


def test_a_partition_without_a_limit_takes_any_time() -> None:
    request = SessionRequest(partition="long", time=timedelta(days=30))
    assert accept(request, LIMITS, SHAPE, Defaults()).time == timedelta(days=30)


@pytest.mark.parametrize(
    ("request_", "fact"),
    [
        (SessionRequest(gpus=5), "at most 4"),
        (SessionRequest(gpus=3, partition="short"), "at most 2"),
        (SessionRequest(time=timedelta(hours=13)), "at most 12"),
        (SessionRequest(partition="secret"), "not open to you"),
    ],
)
def test_more_than_a_partition_gives_is_refused(request_: SessionRequest, fact: str) -> None:
    with pytest.raises(OverLimit, match=fact):
        accept(request_, LIMITS, SHAPE, Defaults())


PHYSICS = Association("physics", frozenset({"normal", "high"}), is_default=True)
TEACHING = Association("teaching", frozenset({"normal"}))


def accepted_of(limits: Limits, **asked: Any) -> AcceptedRequest:
    return accept(SessionRequest(**asked), limits, SHAPE, Defaults())


def test_an_account_and_a_qos_of_the_users_own_are_accepted() -> None:
    limits = replace(LIMITS, associations=(PHYSICS, TEACHING))
    found = accepted_of(limits, account="teaching", qos="normal")
    assert (found.account, found.qos) == ("teaching", "normal")
    # Slurm's own choice.
    assert accepted_of(limits).account is None
    assert accepted_of(limits, qos="high").qos == "high"


@pytest.mark.parametrize(
    ("allowance", "asked", "refusal"),
    [
        (NO_LIMITS, {"account": "x"}, ("Account", "x", "physics", "teaching")),
        (NO_LIMITS, {"account": "teaching", "qos": "high"}, ("QOS", "high", "normal")),
        (Allowance(account="a"), {"account": "physics"}, ("Account", "physics", "a")),
        (Allowance(qos="small"), {"qos": "high"}, ("QOS", "high", "small")),
        (NO_LIMITS, {"reservation": "course"}, ("Reservation", "course")),
        (NO_LIMITS, {"constraint": "nvlink"}, ("Node feature", "nvlink")),
        (
            Allowance(constraints=frozenset({"nvlink"})),
            {"constraint": "ib"},
            ("Node feature", "ib", "nvlink"),
        ),
    ],
)
def test_what_is_not_the_users_to_choose_is_refused(
    allowance: Allowance, asked: dict[str, str], refusal: tuple[str, ...]
) -> None:
    limits = replace(LIMITS, allowance=allowance, associations=(PHYSICS, TEACHING))
    with pytest.raises(OverLimit) as raised:
        accepted_of(limits, **asked)
    what, name, *others = refusal
    assert str(raised.value) == words.not_to_choose(what, name, *others)


def test_a_feature_that_no_node_of_the_partition_has_is_refused() -> None:
    partitions = tuple(
        replace(limit, features=frozenset({"nvlink"} if limit.name == "sxm2" else ()))
        for limit in LIMITS.partitions
    )
    limits = Limits(partitions, Allowance(constraints=frozenset({"nvlink"})))
    assert accepted_of(limits, constraint="nvlink", partition="sxm2").constraint == "nvlink"
    with pytest.raises(OverLimit, match=words.no_such_feature("nvlink", "short")):
        accepted_of(limits, constraint="nvlink", partition="short")


def test_what_the_site_sets_may_be_named() -> None:
    allowance = Allowance(account="a", qos="small", reservation="course")
    limits = replace(LIMITS, allowance=allowance)
    found = accepted_of(limits, account="a", qos="small", reservation="course")
    assert found == accepted_of(limits)
    assert (found.account, found.qos, found.reservation) == ("a", "small", "course")


def test_a_session_runs_in_an_image_that_the_site_offers() -> None:
    limits = replace(LIMITS, images={"ngc": "PyTorch of NVIDIA"})
    assert accept(SessionRequest(), limits, SHAPE, Defaults()).image is None
    assert accept(SessionRequest(image="ngc"), limits, SHAPE, Defaults()).image == "ngc"
    for offered in (limits, LIMITS):
        with pytest.raises(OverLimit, match=words.no_such_image("other", *offered.images)):
            accept(SessionRequest(image="other"), offered, SHAPE, Defaults())


def test_without_any_partition_nothing_is_accepted() -> None:
    with pytest.raises(OverLimit, match=words.NO_PARTITION):
        accept(SessionRequest(), Limits(()), SHAPE, Defaults())


def granted(**allowance: object) -> Limits:
    """Return the limits above for a user whom the site grants less."""
    return Limits(LIMITS.partitions, Allowance(**allowance))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "limits", "holding", "message"),
    [
        (
            SessionRequest(gpus=3),
            granted(max_gpus_per_session=2),
            Holding(),
            words.too_many_for_one_session(3, most=2),
        ),
        (
            SessionRequest(gpus=5),
            granted(max_gpus_per_session=2),
            Holding(),
            words.too_many_for_partition(5, "sxm2", most=4),
        ),
        (
            SessionRequest(gpus=4),
            granted(max_gpus=3),
            Holding(),
            words.too_many_at_once(4, most=3),
        ),
        (
            SessionRequest(gpus=1),
            granted(max_gpus=0),
            Holding(),
            words.too_many_at_once(1, most=0),
        ),
        (
            SessionRequest(gpus=2),
            granted(max_gpus=4),
            Holding(3, 2),
            words.too_much_held(3, sessions=2, most=4),
        ),
        (
            SessionRequest(gpus=1),
            granted(max_gpus=1),
            Holding(1, 1),
            words.too_much_held(1, sessions=1, most=1),
        ),
        # More is held than may be: the limit came later.
        (
            SessionRequest(gpus=1),
            granted(max_gpus=2),
            Holding(4, 1),
            words.too_much_held(4, sessions=1, most=2),
        ),
        # Who says nothing asks for the default, and gets no less than on another day.
        (
            SessionRequest(),
            granted(max_gpus=2),
            Holding(2, 1),
            words.too_much_held(2, sessions=1, most=2),
        ),
        (
            SessionRequest(gpus=0),
            granted(max_sessions=2),
            Holding(0, 2),
            words.too_many_sessions(2, most=2),
        ),
        (
            SessionRequest(gpus=0),
            granted(max_sessions=0),
            Holding(),
            words.NO_SESSIONS,
        ),
        (
            SessionRequest(gpus=0, time=timedelta(hours=5)),
            granted(max_time=timedelta(hours=4)),
            Holding(),
            words.too_long(timedelta(hours=5), most=timedelta(hours=4)),
        ),
        (
            SessionRequest(gpus=0, time=timedelta(hours=5), partition="short"),
            granted(max_time=timedelta(hours=4)),
            Holding(),
            words.too_long_for_partition(timedelta(hours=5), "short", most=timedelta(hours=1)),
        ),
    ],
)
def test_more_than_the_site_grants_is_refused_in_words(
    request_: SessionRequest, limits: Limits, holding: Holding, message: str
) -> None:
    with pytest.raises(OverLimit) as caught:
        accept(request_, limits, SHAPE, Defaults(), holding)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("request_", "limits", "holding", "gpus", "hours"),
    [
        # Gaps are filled with no more than may be had.
        (SessionRequest(), granted(max_gpus_per_session=0), Holding(), 0, 8),
        (SessionRequest(), granted(max_gpus=0), Holding(), 0, 8),
        (SessionRequest(), granted(max_time=timedelta(hours=4)), Holding(), 1, 4),
        (SessionRequest(partition="long"), granted(max_time=timedelta(hours=4)), Holding(), 1, 4),
        (SessionRequest(partition="short"), granted(max_time=timedelta(hours=4)), Holding(), 1, 1),
        # Up to the limit, and not one more.
        (SessionRequest(gpus=1), granted(max_gpus=4), Holding(3, 2), 1, 8),
        (SessionRequest(gpus=1), granted(max_sessions=3), Holding(3, 2), 1, 8),
        # A session without GPUs adds none, whatever is held.
        (SessionRequest(gpus=0), granted(max_gpus=2), Holding(4, 2), 0, 8),
        # No limit: what is held does not matter.
        (SessionRequest(gpus=4), LIMITS, Holding(400, 100), 4, 8),
    ],
)
def test_what_the_site_grants_is_accepted(
    request_: SessionRequest, limits: Limits, holding: Holding, gpus: int, hours: float
) -> None:
    accepted = accept(request_, limits, SHAPE, Defaults(), holding)
    assert accepted.resources == SHAPE.resources(gpus)
    assert accepted.time == timedelta(hours=hours)


def test_account_and_qos_are_the_sites() -> None:
    accepted = accept(SessionRequest(), granted(account="a", qos="q"), SHAPE, Defaults())
    assert (accepted.account, accepted.qos) == ("a", "q")


def test_the_form_offers_what_is_left() -> None:
    limits = granted(max_gpus_per_session=3, max_gpus=5, max_time=timedelta(hours=4))
    assert left(limits, Holding()).partitions == (
        PartitionLimit("sxm2", 3, timedelta(hours=4)),
        PartitionLimit("short", 2, timedelta(hours=1)),
        PartitionLimit("long", 1, timedelta(hours=4)),
    )
    assert [limit.max_gpus for limit in left(limits, Holding(4, 1)).partitions] == [1, 1, 1]
    assert [limit.max_gpus for limit in left(limits, Holding(9, 2)).partitions] == [0, 0, 0]


def test_the_form_offers_nothing_to_who_may_have_no_more_sessions() -> None:
    with pytest.raises(OverLimit, match="stop one first"):
        left(granted(max_sessions=1), Holding(0, 1))


@pytest.mark.parametrize("held", [Holding(), Holding(3, 2), Holding(5, 1)])
@pytest.mark.parametrize("partition_name", ["sxm2", "short", "long"])
def test_what_the_form_offers_is_accepted(held: Holding, partition_name: str) -> None:
    limits = granted(max_gpus_per_session=3, max_gpus=5, max_time=timedelta(hours=4))
    offered = next(one for one in left(limits, held).partitions if one.name == partition_name)
    request = SessionRequest(offered.max_gpus, offered.max_time, partition_name)
    assert accept(request, limits, SHAPE, Defaults(), held).resources.gpus == offered.max_gpus


def test_the_form_says_what_is_held_where_that_counts() -> None:
    words = "You hold 3 GPUs in 2 sessions and may hold 4 at once."
    assert holding_in_words(granted(max_gpus=4), Holding(3, 2)) == words
    assert holding_in_words(granted(max_gpus=4), Holding(0, 2)) == ""
    assert holding_in_words(LIMITS, Holding(3, 2)) == ""


A100_AND_V100 = Limits(
    (PartitionLimit("sxm2", 8, timedelta(hours=12), (("a100", 2), ("v100", 4))),)
)


def test_a_type_that_the_partition_has_is_granted() -> None:
    request = SessionRequest(gpus=2, gpu_type="a100")
    assert accept(request, A100_AND_V100, SHAPE, Defaults()).gpu_type == "a100"


def test_no_gpu_has_no_type() -> None:
    request = SessionRequest(gpus=0, gpu_type="a100")
    assert accept(request, A100_AND_V100, SHAPE, Defaults()).gpu_type is None


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (SessionRequest(gpus=1, gpu_type="h200"), "Its types are: a100, v100"),
        (SessionRequest(gpus=3, gpu_type="a100"), "at most 2 of type a100"),
    ],
)
def test_a_type_or_number_that_the_partition_has_not_is_refused(
    request_: SessionRequest, words: str
) -> None:
    with pytest.raises(OverLimit, match=words):
        accept(request_, A100_AND_V100, SHAPE, Defaults())


def test_the_types_of_a_partition_come_with_the_most_of_each() -> None:
    both = Node(
        "n", "n", (Gres("gpu", "a100", 2), Gres("gpu", None, 1)), 40, 384 * 1024, is_up=True
    )
    cluster = Cluster((partition("sxm2", both, node(gpus=4)),))
    assert limits_for([], cluster, AvailabilityCounter(SHAPE)).partitions[0].max_of_type == (
        ("a100", 2),
        ("v100", 4),
    )
