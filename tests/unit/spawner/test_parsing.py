from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from spawner.errors import UnreadableOutput
from spawner.slurm import parsing
from spawner.slurm.records import Job, JobState


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30:00", timedelta(minutes=30)),
        ("12:00:00", timedelta(hours=12)),
        ("1-00:00:00", timedelta(days=1)),
        ("7-12:30:05", timedelta(days=7, hours=12, minutes=30, seconds=5)),
        ("45", timedelta(seconds=45)),
        ("UNLIMITED", None),
        ("infinite", None),
    ],
)
def test_time_limits(text: str, expected: timedelta | None) -> None:
    assert parsing.time_limit(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5"])
def test_what_is_no_time_limit_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        parsing.time_limit(text)


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("gpu:v100:4", 4),
        ("gpu:8", 8),
        ("gpu:a100:4(S:0-1)", 4),
        ("gpu:a100:2(S:0),gpu:t4:6(S:1)", 8),
        ("(null)", 0),
        ("", 0),
        ("mps:400,gpu:1", 1),
    ],
)
def test_gpus_of_a_node(gres: str, expected: int) -> None:
    assert parsing.gpus(gres) == expected


def test_jobs_are_read_as_squeue_prints_them() -> None:
    text = (
        "12|PENDING|Resources|user1|sxm2||2026-11-21T14:05:00|2026-11-21T22:05:00\n"
        "13|RUNNING|None|user2|sxm2|node001|2026-11-21T09:00:01|2026-11-21T17:00:01\n"
        "14|PENDING|Priority|user3|sxm2||N/A|N/A\n"
    )
    at = partial(datetime, 2026, 11, 21, tzinfo=UTC)
    assert parsing.jobs(text) == {
        12: Job(12, "PENDING", "Resources", "user1", "sxm2", None, at(14, 5), at(22, 5)),
        13: Job(13, "RUNNING", None, "user2", "sxm2", "node001", at(9, 0, 1), at(17, 0, 1)),
        14: Job(14, "PENDING", "Priority", "user3", "sxm2"),
    }


def test_who_may_have_marked_jobs_is_found_by_the_jobs_names() -> None:
    text = "12|user1|portal-user1\n13|user2|train\n14|user1|portal-user1\n15|user3|portals-user3\n"
    assert parsing.marked_jobs(text, "portal") == {"user1": {12, 14}}


def test_a_name_with_a_newline_forges_a_hint_at_most() -> None:
    text = "12|user1|x\n99|user2|portal-user2\n|broken\n|||\nportal-x\n"
    assert parsing.marked_jobs(text, "portal") == {"user2": {99}}


@pytest.mark.parametrize("text", ["garbage\n", "12|PENDING\n", "x|RUNNING|None|u|p|n|N/A|N/A\n"])
def test_what_squeue_never_prints_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        parsing.jobs(text)


@pytest.mark.parametrize(
    ("slurm_state", "expected"),
    [
        ("PENDING", JobState.PENDING),
        ("CONFIGURING", JobState.RUNNING),
        ("OUT_OF_MEMORY", JobState.ENDED),
        ("COMPLETING", JobState.COMPLETING),
        ("", JobState.UNKNOWN),
        ("BRAND_NEW_STATE", JobState.UNKNOWN),
        ("GONE", JobState.GONE),
    ],
)
def test_states(slurm_state: str, expected: JobState) -> None:
    assert Job(1, slurm_state).state is expected


def test_an_unknown_state_does_not_end_a_session() -> None:
    assert not JobState.UNKNOWN.is_over


NODES = """\
sxm2|node001|127.0.0.1|idle|40|393216|gpu:v100:4
sxm2|node002|10.0.0.2|drained*|64|786432|gpu:a100:8(S:0-1)
debug|node001|127.0.0.1|idle|40|393216|gpu:v100:4
"""

PARTITIONS = (
    "PartitionName=sxm2 AllowGroups=ALL AllowAccounts=ALL Default=YES MaxTime=12:00:00 State=UP\n"
    "PartitionName=debug AllowGroups=admins,staff Default=NO MaxTime=UNLIMITED State=DOWN\n"
    "PartitionName=empty AllowGroups=ALL Default=NO MaxTime=30:00 State=UP\n"
)


def test_a_partition_of_two_kinds_of_nodes_keeps_both() -> None:
    cluster = parsing.cluster(NODES, PARTITIONS)
    sxm2, debug, empty = cluster.partitions
    assert [(node.name, node.gpus, node.is_up) for node in sxm2.nodes] == [
        ("node001", 4, True),
        ("node002", 8, False),
    ]
    assert (sxm2.is_default, sxm2.allowed_groups) == (True, None)
    assert (debug.is_up, debug.allowed_groups) == (False, frozenset({"admins", "staff"}))
    assert empty.nodes == ()


def test_a_nodes_address_is_what_slurm_reports() -> None:
    cluster = parsing.cluster(NODES, PARTITIONS)
    assert cluster.address_of("node002") == "10.0.0.2"
    assert cluster.address_of("node999") is None
