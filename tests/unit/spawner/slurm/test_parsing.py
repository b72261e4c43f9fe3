from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm import parsing
from jupyterhub_gpu_slurm.slurm.records import Gres, Job, JobState

DATA = Path(__file__).resolve().parents[2] / "data"


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
    ("gres", "used", "expected"),
    [
        ("gpu:v100:4", "gpu:v100:1(IDX:2)", [Gres("gpu", "v100", 4, 1)]),
        ("gpu:v100:4", "gpu:v100:0(IDX:N/A)", [Gres("gpu", "v100", 4, 0)]),
        ("gpu:8", "gpu:3(IDX:0,2,5)", [Gres("gpu", None, 8, 3)]),
        ("gpu:a100:4(S:0-1)", "", [Gres("gpu", "a100", 4)]),
        (
            "gpu:a100:2(S:0),gpu:t4:6(S:1)",
            "gpu:a100:2(IDX:0-1),gpu:t4:0(IDX:N/A)",
            [Gres("gpu", "a100", 2, 2), Gres("gpu", "t4", 6, 0)],
        ),
        ("gpu:a100:2(S:0),gpu:a100:2(S:1)", "gpu:a100:3(IDX:0-2)", [Gres("gpu", "a100", 4, 3)]),
        ("gpu:1g.10gb:7", "gpu:1g.10gb:2(IDX:0-1)", [Gres("gpu", "1g.10gb", 7, 2)]),
        ("gpu:a100_1g.5gb:7(S:0)", "", [Gres("gpu", "a100_1g.5gb", 7)]),
        (
            "gpu:l4:2,shard:l4:8",
            "gpu:l4:1(IDX:0),shard:l4:3(0/4,3/4)",
            [Gres("gpu", "l4", 2, 1), Gres("shard", "l4", 8, 1)],
        ),
        (
            "gpu:l4:4,shard:l4:16",
            "gpu:l4:0(IDX:N/A),shard:l4:3(IDX:1-3)",
            [Gres("gpu", "l4", 4, 0), Gres("shard", "l4", 16, 3)],
        ),
        # Slurm before 20.11, where the nodes give no type.
        ("gpu:4", "gpu:(null):3(IDX:0-2)", [Gres("gpu", None, 4, 3)]),
        # Whose use is not counted: slurm.conf(5), Gres.
        ("gpu:a100:no_consume:4(S:0)", "gpu:a100:0", [Gres("gpu", "a100", 4, 0)]),
        ("gpu:no_consume:4", "gpu:0", [Gres("gpu", None, 4, 0)]),
        # A multiple of 1024: _get_suffix() in src/interfaces/gres.c.
        ("gpu:l4:8,shard:l4:2K", "", [Gres("gpu", "l4", 8), Gres("shard", "l4", 2048)]),
        ("gpu:4090:2", "gpu:4090:1(IDX:0)", [Gres("gpu", "4090", 2, 1)]),
        # A percentage of each GPU: CUDA's Multi-Process Service, gres.html.
        (
            "gpu:v100:2,mps:v100:200",
            "gpu:v100:0(IDX:N/A),mps:v100:50(50/100,0/100)",
            [Gres("gpu", "v100", 2, 0), Gres("mps", "v100", 200, 1)],
        ),
        ("mps:400,gpu:1,gpu_mem:40G", "", [Gres("mps", None, 400), Gres("gpu", None, 1)]),
        ("(null)", "gpu:0", []),
        ("", "", []),
    ],
)
def test_gpus_of_a_node(gres: str, used: str, expected: list[Gres]) -> None:
    assert list(parsing.gres(gres, used)) == expected


def test_jobs_are_read_as_squeue_prints_them() -> None:
    text = (
        "12|PENDING|Resources|user1|sxm2||2026-11-21T14:05:00|2026-11-21T22:05:00|8:00:00\n"
        "13|RUNNING|None|user2|sxm2|node001|2026-11-21T09:00:01|2026-11-21T17:00:01|7:30:00\n"
        "14|PENDING|Priority|user3|sxm2||N/A|N/A|UNLIMITED\n"
    )
    at, hour = partial(datetime, 2026, 11, 21, tzinfo=UTC), timedelta(hours=1)
    assert parsing.jobs(text) == {
        12: Job(12, "PENDING", "Resources", "user1", "sxm2", None, at(14, 5), at(22, 5), 8 * hour),
        13: Job(
            13, "RUNNING", None, "user2", "sxm2", "node001", at(9, 0, 1), at(17, 0, 1), 7.5 * hour
        ),
        14: Job(14, "PENDING", "Priority", "user3", "sxm2"),
    }


def test_who_may_have_marked_jobs_is_found_by_the_jobs_names() -> None:
    jobs = (
        "12|user1|portal-user1",
        "13|user2|train",
        "14|user1|portal-user1",
        "15|user3|portals-x",
    )
    text = "".join(f"3f9a|{job}\n" for job in jobs)
    assert parsing.marked_jobs(text, "portal", "3f9a") == {"user1": {12, 14}}


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1e", "\x85", "\u2028"])
def test_a_name_cannot_forge_another_users_hint(end: str) -> None:
    forged = f"{end}99|user2|portal-user2{end}3f9b|99|user2|portal-user2{end}||||{end}portal-x"
    text = f"3f9a|12|user1|portal-user1{forged}\n3f9a|14|user3|portal-user3\n"
    assert parsing.marked_jobs(text, "portal", "3f9a") == {"user1": {12}, "user3": {14}}


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1e", "\x85", "\u2028"])
def test_only_a_newline_ends_a_job(end: str) -> None:
    row = f"7|PENDING|{end}8|RUNNING|user1|sxm2|N/A|N/A|N/A|N/A\n"
    with pytest.raises(UnreadableOutput):
        parsing.jobs(row)


def test_a_comment_is_a_session_if_it_is_nothing_else() -> None:
    mine = f"portal:{'a' * 32}\n"
    assert parsing.session(mine, "portal") == "a" * 32
    for other in ("", "(null)\n", mine * 2, f"x\n{mine}", f"{mine}x\n", mine[:-1], f"a{mine}"):
        assert parsing.session(other, "portal") is None
    assert parsing.session(mine, "another") is None


@pytest.mark.parametrize(
    "text", ["garbage\n", "12|PENDING\n", "x|RUNNING|None|u|p|n|N/A|N/A|N/A\n"]
)
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


def test_a_job_whose_reservation_is_gone_waits_unless_it_has_a_node() -> None:
    assert Job(1, "RESV_DEL_HOLD").state is JobState.PENDING
    assert Job(1, "RESV_DEL_HOLD", node="node001").state is JobState.UNKNOWN


def test_an_unknown_state_does_not_end_a_session() -> None:
    assert not JobState.UNKNOWN.is_over


NODES = (
    # As scontrol of Slurm 22.05 prints it.
    "NodeName=node001 Arch=x86_64 CoresPerSocket=20  CPUAlloc=8 CPUEfctv=38 CPUTot=40 CPULoad=1.10 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:v100:4 GresDrain=N/A "
    "GresUsed=gpu:v100:1(IDX:0) NodeAddr=127.0.0.1 NodeHostName=vm Port=16821 Version=22.05.8 "
    "OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=393216 AllocMem=49152 FreeMem=22078 "
    "Sockets=2 Boards=1 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=sxm2,debug  BootTime=2026-11-20T21:55:29 CfgTRES=cpu=40,mem=384G,billing=40 "
    "AllocTRES=cpu=8,mem=48G CapWatts=n/a\n"
    "NodeName=node002 CPUAlloc=0 CPUTot=64 Gres=gpu:a100:8(S:0-1) GresUsed=gpu:a100:0(IDX:N/A) "
    "NodeAddr=10.0.0.2 RealMemory=786432 AllocMem=0 State=IDLE+DRAIN Partitions=sxm2 "
    "Reason=disk State=IDLE Gres=gpu:99 [root@2026-11-20T10:00:00]\n"
)

PARTITIONS = (
    "PartitionName=sxm2 AllowGroups=ALL AllowAccounts=ALL Default=YES MaxTime=12:00:00 State=UP\n"
    "PartitionName=debug AllowGroups=admins,staff Default=NO Hidden=NO "
    "MaxTime=UNLIMITED RootOnly=NO State=DOWN\n"
    "PartitionName=empty AllowGroups=ALL Default=NO Hidden=YES "
    "MaxTime=30:00 RootOnly=YES ReqResv=YES State=UP\n"
)


def test_a_partition_of_two_kinds_of_nodes_keeps_both() -> None:
    cluster = parsing.cluster(parsing.nodes(NODES), parsing.partitions(PARTITIONS))
    sxm2, debug, empty = cluster.partitions
    assert [(node.name, node.gpus(), node.gpus_free()) for node in sxm2.nodes] == [
        ("node001", 4, 3),
        ("node002", 8, 0),
    ]
    assert (sxm2.is_default, sxm2.allowed_groups) == (True, None)
    assert (debug.is_up, debug.allowed_groups) == (False, frozenset({"admins", "staff"}))
    assert [node.name for node in debug.nodes] == ["node001"]
    assert empty.nodes == ()
    assert [one.is_root_only for one in cluster.partitions] == [False, False, True]
    assert [one.is_hidden for one in cluster.partitions] == [False, False, True]
    assert [one.needs_reservation for one in cluster.partitions] == [False, False, True]


def test_a_partitions_rules_for_jobs_are_read() -> None:
    # As slurm_sprint_partition_info() of 22.05 to 25.11 writes them.
    text = (
        "PartitionName=a MaxNodes=UNLIMITED MinNodes=0 MaxCPUsPerNode=UNLIMITED "
        "MaxMemPerNode=UNLIMITED\n"
        "PartitionName=b MaxNodes=64 MinNodes=4 MaxCPUsPerNode=32 MaxMemPerNode=204800\n"
        "PartitionName=c MaxCPUsPerNode=8 DefMemPerCPU=4000 MaxMemPerCPU=8000\n"
    )
    assert [
        (one.min_nodes, one.max_cores_per_node, one.max_memory_mb_per_node)
        for one in parsing.partitions(text)
    ] == [(0, None, None), (4, 32, 204800), (0, 8, None)]


def test_a_partition_of_a_group_with_a_space_in_its_name_is_its_members() -> None:
    # As Active Directory names its groups; Slurm writes the names as they are.
    text = (
        "PartitionName=a AllowGroups=domain users,gpu users AllowAccounts=ALL Default=YES Nodes= "
        "State=UP TRESBillingWeights=CPU=1.0,Mem=0.25G MaxMemPerNode=UNLIMITED\n"
    )
    (found,) = parsing.partitions(text)
    assert found.allowed_groups == frozenset({"domain users", "gpu users"})
    assert (found.is_default, found.is_up) == (True, True)


def test_a_partition_that_gives_whole_nodes_is_known() -> None:
    text = "PartitionName=a OverSubscribe=EXCLUSIVE\nPartitionName=b OverSubscribe=NO\n"
    assert [one.is_exclusive for one in parsing.partitions(text)] == [True, False]


def test_a_nodes_comment_of_several_lines_hides_no_node() -> None:
    # Slurm prints Comment and Extra as they are, newlines too: src/api/node_info.c.
    first, second = NODES.splitlines()
    text = f"{first} Comment=fan\n is loud\n{second} Comment=a\nb\n"
    nodes = parsing.nodes(text)["sxm2"]
    assert [node.name for node in nodes] == ["node001", "node002"]
    assert nodes[1].reason == "disk State=IDLE Gres=gpu:99"


def test_what_jobs_hold_of_a_node_is_read() -> None:
    node = parsing.nodes(NODES)["sxm2"][0]
    assert (node.cores, node.cores_used) == (38, 8)
    assert (node.memory_mb, node.memory_used_mb) == (393216, 49152)


@pytest.mark.parametrize(
    ("state", "is_up"),
    [
        ("IDLE", True),
        ("MIXED", True),
        ("ALLOCATED", True),
        ("IDLE+PLANNED", True),
        ("IDLE*", False),
        ("DOWN*", False),
        ("MIXED+DRAIN", False),
        ("IDLE+MAINTENANCE", False),
        ("ALLOCATED+FAIL", False),
        ("FUTURE", False),
        ("IDLE+NOT_RESPONDING", False),
        ("IDLE+RESERVED", False),
        # The flags that came after 22.05: src/common/slurm_protocol_defs.c of 25.05.
        ("IDLE+BLOCKED", False),
        ("IDLE+EXTERNAL", False),
        ("IDLE+INVALID_REG", False),
        ("IDLE+DYNAMIC_NORM", True),
        ("IDLE+CLOUD+POWERED_DOWN", True),
        ("IDLE+CLOUD+POWERING_DOWN", False),
        ("UNKNOWN", False),
    ],
)
def test_which_nodes_take_new_jobs(state: str, is_up: bool) -> None:
    line = f"NodeName=n CPUTot=8 RealMemory=1000 Gres=gpu:2 State={state} Partitions=sxm2\n"
    (node,) = parsing.nodes(line)["sxm2"]
    assert node.is_up is is_up
    assert node.gpus_free() == (2 if is_up else 0)


def test_nodes_of_many_kinds_are_read_as_slurm_prints_them() -> None:
    text = (DATA / "nodes_of_slurm_22.05.txt").read_text(encoding="utf-8")
    nodes = parsing.nodes(text)
    found = {node.name: (node.gpus(), node.gpus_free(), node.cores) for node in nodes["sxm2"]}
    assert found == {
        "bench0001": (4, 3, 40),
        "bench0002": (4, 3, 38),
        # Drained; the reason that its administrator wrote looks like a state and GPUs.
        "bench0003": (4, 0, 40),
        # One GPU is a job's, of the three others jobs hold shards.
        "bench0004": (4, 0, 40),
        "bench0005": (4, 4, 40),
    }
    by_name = {node.name: node for node in nodes["sxm2"]}
    assert [kind.type for kind in by_name["bench0003"].gres] == ["1g.10gb", "a100_3g.20gb"]
    assert by_name["bench0002"].gpus_free("a100") == 1
    # 8 GiB are kept for the system.
    assert by_name["bench0002"].memory_mb == 384 * 1024 - 8192
    assert [node.name for node in nodes["one"]] == ["bench0005"]


@pytest.mark.parametrize("text", ["garbage\n", "NodeName=x CPUTot=many RealMemory=1 State=IDLE\n"])
def test_what_is_no_node_is_refused(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        parsing.nodes(text)


def test_a_nodes_address_is_what_slurm_reports() -> None:
    cluster = parsing.cluster(parsing.nodes(NODES), parsing.partitions(PARTITIONS))
    assert cluster.address_of("node002") == "10.0.0.2"
    assert cluster.address_of("node999") is None
