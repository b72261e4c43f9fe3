"""One node and one partition as each supported Slurm prints them.

`PRINTED` is what real clusters printed and others have published; what our own 22.05 printed is in
`tests/unit/data`. The rest is composed after Slurm's sources, in
https://github.com/SchedMD/slurm at the commits of `COMMITS`. Read there:

- `slurm_sprint_node_table()` in `src/api/node_info.c` and `slurm_sprint_partition_info()` in
  `src/api/partition_info.c`: the words and their order;
- `_build_node_gres_str()` and `_node_gres_used()` in `src/common/gres.c`, from 23.11 on in
  `src/interfaces/gres.c`: ``Gres`` and ``GresUsed``;
- `_handle_mig()` in `src/plugins/gpu/nvml/gpu_nvml.c`: the types of MIG slices;
- `node_state_flags` in `src/common/slurm_protocol_defs.c`: the states.
"""

import pytest

from jupyterhub_gpu_slurm.slurm import parsing
from jupyterhub_gpu_slurm.slurm.records import Node

COMMITS = {
    "22.05": "5f7526a4898ce9f82833cd538dede5c1fba95415",
    "23.11": "03d8cb565accc4da7cd42cd0541db5e759df2ced",
    "24.05": "23139d3cb64f20c49fee854516fcb48fe53272e8",
    "24.11": "defaf214db2e55326f45ab08f1bde5b2036d9f5d",
    "25.05": "f531c7eed365ea3e10d969fb1cc9746a0f3a5bdf",
}
"""The head of each version's branch that was read."""

_BEGIN = (
    "NodeName=gpu01 Arch=x86_64 CoresPerSocket=32  CPUAlloc=8 CPUEfctv=62 CPUTot=64 CPULoad=0.52 "
    "AvailableFeatures=a100,nvlink,ib ActiveFeatures=a100,nvlink "
    "Gres=gpu:nvidia_a100_1g.5gb:7(S:0),gpu:a100:3(S:0-1),shard:a100:12(S:0-1) "
)
_PLACE = (
    "NodeAddr=10.0.0.1 NodeHostName=gpu01 Version={version} "
    "OS=Linux 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29)  "
    "RealMemory=515000 AllocMem=49152 FreeMem=480000 Sockets=2 Boards=1 "
    "CoreSpecCount=2 CPUSpecList=31,63 MemSpecLimit=8192 "
)
_STATE = (
    "State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=dgx,short  BootTime=2026-11-20T21:55:29 SlurmdStartTime=2026-11-21T02:56:02 "
    "LastBusyTime=2026-11-21T02:56:02 {resume}"
    "CfgTRES=cpu=62,mem=515000M,billing=62,gres/gpu=10,gres/gpu:a100=3,gres/shard=12 "
    "AllocTRES=cpu=8,mem=48G,gres/gpu=2,gres/gpu:a100=1 "
)
_REASON = "Reason=fan: State=IDLE Gres=gpu:9 [root@2026-11-22T10:00:00] Comment=seen [twice]"
# Which GPUs are shared, and from 23.11 on how many of the shards of each.
_USED_UNTIL_22_05 = (
    "GresDrain=N/A GresUsed=gpu:nvidia_a100_1g.5gb:1(IDX:3),gpu:a100:1(IDX:0),shard:a100:1(IDX:1) "
)
_USED = "GresUsed=gpu:nvidia_a100_1g.5gb:1(IDX:3),gpu:a100:1(IDX:0),shard:a100:3(0/4,3/4,0/4) "
_SENSORS = "ExtSensorsJoules={0} ExtSensorsWatts=0 ExtSensorsTemp={0} "

NODES = {
    "22.05": _BEGIN
    + _USED_UNTIL_22_05
    + _PLACE
    + _STATE
    + "CapWatts=n/a CurrentWatts=0 AveWatts=0 "
    + _SENSORS.format("n/s")
    + _REASON,
    "23.11": _BEGIN
    + _USED
    + _PLACE
    + _STATE
    + "CapWatts=n/a CurrentWatts=0 AveWatts=0 "
    + _SENSORS.format("n/a")
    + _REASON
    + " ReservationName=maint",
    "24.05": _BEGIN
    + _USED
    + _PLACE
    + "RestrictedCoresPerGPU=2(0-1) "
    + _STATE
    + "CurrentWatts=n/a AveWatts=n/a "
    + _REASON
    + " InstanceId=i-1 InstanceType=p4d ReservationName=maint",
}
NODES["24.11"] = NODES["24.05"]
NODES["25.05"] = (
    f"{NODES['24.05']} TLSCertTokenSet=No TLSCertLastRenewal=Unknown Topology=default:leaf1"
)

PARTITION = (
    "PartitionName=dgx AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES "
    "QoS=N/A DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO {exclusive}GraceTime=0 Hidden=NO "
    "MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED {sockets}"
    "Nodes=gpu01 PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO "
    "OverTimeLimit=NONE PreemptMode=OFF {topology}State=UP TotalCPUs=64 TotalNodes=1 "
    "SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED "
    "TRES=cpu=62,mem=515000M,node=1,billing=62,gres/gpu=10\n"
)


def partition(version: str) -> str:
    return PARTITION.format(
        exclusive="ExclusiveTopo=NO " if version >= "24.05" else "",
        sockets="MaxCPUsPerSocket=UNLIMITED " if version >= "23.02" else "",
        topology="Topology=default " if version >= "25.05" else "",
    )


def node(version: str, state: str = "MIXED") -> Node:
    resume = "ResumeAfterTime=None " if version >= "23.02" else ""
    line = NODES[version].format(version=f"{version}.1", state=state, resume=resume)
    (found,) = parsing.nodes(line)["dgx"]
    return found


VERSIONS = pytest.mark.parametrize("version", COMMITS)


@VERSIONS
def test_slices_and_whole_gpus_are_kinds_of_their_own(version: str) -> None:
    kinds = [(one.name, one.type, one.count, one.used) for one in node(version).gres]
    assert kinds == [
        ("gpu", "nvidia_a100_1g.5gb", 7, 1),
        ("gpu", "a100", 3, 1),
        # Of how many GPUs shards are lent.
        ("shard", "a100", 12, 1),
    ]


@VERSIONS
def test_a_gpu_whose_shards_are_lent_is_not_free(version: str) -> None:
    assert node(version).gpus_free("a100") == 1
    assert node(version).gpus_free("nvidia_a100_1g.5gb") == 6


@VERSIONS
def test_cores_memory_and_features_are_read(version: str) -> None:
    found = node(version)
    assert (found.cores, found.cores_used) == (62, 8)
    assert (found.memory_mb, found.memory_used_mb) == (515000 - 8192, 49152)
    # A job may ask for what a reboot would bring, too.
    assert found.features == {"a100", "nvlink", "ib"}


@VERSIONS
def test_a_reason_ends_where_slurm_says_who_gave_it(version: str) -> None:
    found = node(version, "MIXED+DRAIN")
    assert found.reason == "fan: State=IDLE Gres=gpu:9"
    assert found.state == "MIXED+DRAIN"
    assert not found.is_up


@VERSIONS
def test_a_partition_is_read(version: str) -> None:
    (found,) = parsing.partitions(partition(version))
    assert found.name == "dgx"
    assert (found.is_default, found.is_up, found.allowed_groups) == (True, True, None)
    assert found.max_time is not None
    assert found.max_time.total_seconds() == 24 * 3600


def test_a_reason_without_a_time_is_the_rest_of_the_line() -> None:
    line = "NodeName=n CPUTot=8 RealMemory=1000 State=DOWN Partitions=dgx Reason=Not responding\n"
    (found,) = parsing.nodes(line)["dgx"]
    assert found.reason == "Not responding"


# 23.11.3: a report on AutoDetect=nvml in a public repository of Ansible roles, "scontrol show node
# -d". 24.05.3: the documentation of UC Irvine's HPC3. A cloud: AWS PCS's user guide, on MPI ports,
# as it stands there; it says 25.05.5, but with dates before that version and words of older ones.
PRINTED = {
    "23.11": """NodeName=worker1 Arch=x86_64 CoresPerSocket=10
   CPUAlloc=0 CPUEfctv=20 CPUTot=20 CPULoad=0.01
   AvailableFeatures=(null)
   ActiveFeatures=(null)
   Gres=gpu:quadro_p1000:1(S:0)
   GresDrain=N/A
   GresUsed=gpu:quadro_p1000:0(IDX:N/A)
   NodeAddr=worker1 NodeHostName=worker1 Version=23.11.3
   OS=Linux 5.14.0-611.20.1.el9_7.x86_64 #1 SMP PREEMPT_DYNAMIC Thu Jan 15 13:21:39 UTC 2026
   RealMemory=62715 AllocMem=0 FreeMem=60823 Sockets=1 Boards=1
   State=IDLE ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=debug,gpu
   BootTime=2026-01-23T12:37:22 SlurmdStartTime=2026-01-24T11:35:30
   LastBusyTime=2026-01-24T11:29:05 ResumeAfterTime=None
   CfgTRES=cpu=20,mem=62715M,billing=20
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a""",
    "24.05": """NodeName=hpc3-gpu-16-00 Arch=x86_64 CoresPerSocket=20
   CPUAlloc=26 CPUEfctv=40 CPUTot=40 CPULoad=6.80
   AvailableFeatures=intel,avx512,mlx5_ib
   ActiveFeatures=intel,avx512,mlx5_ib
   Gres=gpu:V100:4
   NodeAddr=hpc3-gpu-16-00 NodeHostName=hpc3-gpu-16-00 Version=24.05.3
   OS=Linux 4.18.0-477.15.1.el8_8.x86_64 #1 SMP Wed Jun 28 15:04:18 UTC 2023
   RealMemory=192000 AllocMem=150720 FreeMem=39430 Sockets=2 Boards=1
   State=MIXED ThreadsPerCore=1 TmpDisk=228000 Weight=3 Owner=N/A MCS_label=N/A
   Partitions=free-gpu,gpu
   BootTime=2024-09-17T15:48:44 SlurmdStartTime=2024-10-22T16:04:19
   LastBusyTime=2024-10-21T16:19:36 ResumeAfterTime=None
   CfgTRES=cpu=40,mem=187.50G,billing=168,gres/gpu=4
   AllocTRES=cpu=26,mem=150720M,gres/gpu=4
   CurrentWatts=0 AveWatts=0""",
    "a cloud": """NodeName=hpc7g-1 Arch=aarch64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.00
   AvailableFeatures=hpc7g
   ActiveFeatures=hpc7g
   Gres=(null)
   NodeAddr=10.3.140.69 NodeHostName=ip-10-3-140-69 Version=25.05.5
   OS=Linux 5.10.218-208.862.amzn2.aarch64 #1 SMP Tue Jun 4 16:52:10 UTC 2024
   RealMemory=124518 AllocMem=0 FreeMem=110763 Sockets=64 Boards=1
   State=IDLE+CLOUD ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=efa
   BootTime=2024-07-02T19:00:09 SlurmdStartTime=2024-07-08T19:33:25
   LastBusyTime=2024-07-08T19:33:25 ResumeAfterTime=None
   CfgTRES=cpu=64,mem=124518M,billing=64
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a
   Reason=Maintain Minimum Number Of Instances [root@2024-07-02T18:59:00]
   InstanceId=i-04927897a9ce3c143 InstanceType=hpc7g.16xlarge""",
}


def printed_node(version: str, partition_name: str) -> Node:
    """Read it as one line, as the portal asks for it."""
    line = " ".join(PRINTED[version].split())
    (found,) = parsing.nodes(line)[partition_name]
    return found


def test_a_gpu_that_nvml_found_is_read_as_23_11_printed_it() -> None:
    found = printed_node("23.11", "gpu")
    kinds = [(one.name, one.type, one.count, one.used) for one in found.gres]
    assert kinds == [("gpu", "quadro_p1000", 1, 0)]
    assert (found.cores, found.memory_mb, found.memory_used_mb) == (20, 62715, 0)
    assert (found.gpus_free(), found.features) == (1, frozenset())


def test_a_busy_node_is_read_as_24_05_printed_it() -> None:
    found = printed_node("24.05", "free-gpu")
    assert [(one.name, one.type, one.count) for one in found.gres] == [("gpu", "V100", 4)]
    assert (found.cores, found.cores_used) == (40, 26)
    assert (found.memory_mb, found.memory_used_mb) == (192000, 150720)
    assert found.features == {"intel", "avx512", "mlx5_ib"}
    assert (found.state, found.is_up) == ("MIXED", True)


def test_a_cloud_node_is_read() -> None:
    found = printed_node("a cloud", "efa")
    assert (found.name, found.address, found.gres) == ("hpc7g-1", "10.3.140.69", ())
    assert (found.state, found.is_up) == ("IDLE+CLOUD", True)
    assert found.reason == "Maintain Minimum Number Of Instances"
