"""Reasons why a job waits, in plain words, and what its owner can do about them.

Slurm's reasons are one word each: squeue(1), "JOB REASON CODES", and ``job_state_reason.c`` of
Slurm 22.05 to 26.05. The many limits of accounts and QOS follow a grammar (who, what, of what, per
what) and are read by it.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Reason of a waiting job, and advice. No capital letter, no full stop."""

    why: str
    advice: str


_WAIT = "it starts by itself as soon as there is room; fewer GPUs may start sooner"
_ASK = "cancel it and ask the administrators"
_CHOOSE = "cancel it and choose less, or another partition"
_TURN = "it starts by itself when its turn comes"
_SHARED = "wait, or stop another session or job"

REASONS = {
    "Resources": Reason("no node has enough free GPUs, cores and memory at the moment", _WAIT),
    "Priority": Reason("jobs with a higher priority come first", _TURN),
    "None": Reason("Slurm has not looked at it yet", "this takes a few seconds"),
    "Prolog": Reason("its node is being prepared", "this takes a moment"),
    "BeginTime": Reason(
        "its start time has not come yet",
        "Slurm sets it a minute or two ahead before it retries a failed start",
    ),
    "SchedDefer": Reason("Slurm has postponed the decision", "this takes a moment"),
    "Cleaning": Reason("its last attempt is being cleaned up", "this takes a minute or two"),
    "Dependency": Reason("it is waiting for another job", _TURN),
    "DependencyNeverSatisfied": Reason("the job that it is waiting for has failed", _ASK),
    "Licenses": Reason("a licence that it needs is in use", _TURN),
    "NvidiaImexChannels": Reason("all NVIDIA IMEX channels are in use", _TURN),
    "MpiPortsBusy": Reason("the network ports that it needs are in use", _TURN),
    "MaxPoweredUpNodes": Reason("the cluster has reached its limit of powered-up nodes", _TURN),
    "PowerNotAvail": Reason("the cluster's power budget is used up", _TURN),
    "PowerReserved": Reason(
        "the rest of the cluster's power budget is set aside for others", _TURN
    ),
    "ReqNodeNotAvail": Reason(
        "the nodes that it could use are down, drained or set aside for maintenance",
        "a shorter session may fit before the maintenance; otherwise choose another partition",
    ),
    "Nodes required for job are DOWN": Reason(
        "the nodes that it could use are down, drained or reserved for higher-priority partitions",
        "choose another partition, or wait",
    ),
    "NodeDown": Reason("a node that it needs is down", "choose another partition, or wait"),
    "FrontEndDown": Reason("the cluster's front end is down", "wait, or tell the administrators"),
    "PartitionDown": Reason(
        "the administrators have closed the partition", "choose another partition, or wait"
    ),
    "PartitionInactive": Reason(
        "the administrators have closed the partition", "choose another partition, or wait"
    ),
    "PartitionTimeLimit": Reason("it asks for more time than the partition allows", _CHOOSE),
    "PartitionNodeLimit": Reason(
        "it asks for more than the partition allows at the moment", _CHOOSE
    ),
    "PartitionConfig": Reason("the partition's rules do not allow it", _CHOOSE),
    "Reservation": Reason("its reservation has not begun yet", _TURN),
    "ReservationDeleted": Reason("its reservation was removed", _ASK),
    "ReservationInvalid": Reason("its reservation cannot be used", _ASK),
    "BadConstraints": Reason("no node has what it asks for", _CHOOSE),
    "Constraints": Reason("no free node has what it asks for", _WAIT),
    "JobHeldUser": Reason(
        "you, or one of your programs, put it on hold",
        "release it with scontrol release, or cancel it",
    ),
    "JobHeldAdmin": Reason("an administrator put it on hold", _ASK),
    "JobHoldMaxRequeue": Reason("it failed to start too many times and is on hold", _ASK),
    "launch failed requeued held": Reason(
        "it could not be started on its node and is on hold", _ASK
    ),
    "JobLaunchFailure": Reason("it could not be started on its node", "cancel it and start again"),
    "JobArrayTaskLimit": Reason("its array has reached its limit of running tasks", _TURN),
    "FedJobLock": Reason("another cluster in the federation is deciding whether to run it", _TURN),
    "SystemFailure": Reason("Slurm or the file system failed", "cancel it and start again"),
    "NonZeroExitCode": Reason("its last attempt failed", "cancel it and start again"),
    "RaisedSignal": Reason("its last attempt was stopped", "cancel it and start again"),
    "OutOfMemory": Reason("its last attempt used more memory than it had", _CHOOSE),
    "TimeLimit": Reason("its time is up", "start again with more time"),
    "DeadLine": Reason("it cannot finish before its deadline", "start again with less time"),
    "InactiveLimit": Reason("it was idle for too long", "start again"),
    "InvalidAccount": Reason("its Slurm account is not valid", _ASK),
    "AccountNotAllowed": Reason("your Slurm account may not use the partition", _ASK),
    "InvalidQOS": Reason("its quality of service (QOS) is not valid", _ASK),
    "QOSNotAllowed": Reason("your quality of service (QOS) may not be used here", _ASK),
    "QOSUsageThreshold": Reason("your use of the cluster is above your QOS's threshold", _TURN),
    "QOSJobLimit": Reason("your QOS has reached its limit of jobs", _SHARED),
    "QOSResourceLimit": Reason("your QOS has reached its resource limit", _SHARED),
    "QOSTimeLimit": Reason("it asks for more time than your QOS allows", _CHOOSE),
    "AssociationJobLimit": Reason("your account has reached its limit of jobs", _SHARED),
    "AssociationResourceLimit": Reason("your account has reached its resource limit", _SHARED),
    "AssociationTimeLimit": Reason("it asks for more time than your account allows", _CHOOSE),
    "AccountingPolicy": Reason("a limit of your account or QOS has been reached", _SHARED),
    "MaxMemPerLimit": Reason("it asks for more memory than a job may have on one node", _CHOOSE),
    "BurstBufferResources": Reason("the burst buffer is full", _TURN),
    "BurstBufferStageIn": Reason("its data is being copied", _TURN),
    "BurstBufferOperation": Reason("the burst buffer failed", _ASK),
    "BlockMaxError": Reason("its block of nodes has failed", _ASK),
    "BlockFreeAction": Reason("its block of nodes is being prepared", _TURN),
}
"""By Slurm's word."""

# What slurmctld writes as a sentence instead (``state_desc`` in its sources), and the word for it.
_SENTENCES = (
    (re.compile(r"Job's account not permitted to use this partition"), "AccountNotAllowed"),
    (re.compile(r"Job's QOS not (known|permitted)"), "QOSNotAllowed"),
    (re.compile(r"uid \d+ not in group permitted", re.ASCII), "PartitionConfig"),
    (re.compile(r"Reservation \S+ was deleted"), "ReservationDeleted"),
    (re.compile(r"Reservation \S+ is invalid"), "ReservationInvalid"),
)

_OF_WHAT = {
    "GRES": "GPUs",
    "Cpu": "cores",
    "CPU": "cores",
    "Mem": "memory",
    "Memory": "memory",
    "Node": "nodes",
    "Energy": "energy",
    "License": "licences",
    "BB": "burst buffer",
    "Billing": "billing units",
    "Jobs": "jobs",
    "SubmitJobs": "waiting and running jobs",
    "SubmitJob": "waiting and running jobs",
    "Wall": "time",
    "WallDuration": "time",
    "Unknown": "something that Slurm does not name",
}
_LIMIT = re.compile(
    rf"(Assoc|QOS)?(Grp|Max|Min)({'|'.join(sorted(_OF_WHAT, key=len, reverse=True))})"
    r"(Minutes|RunMinutes|RunMins)?(PerJob|PerNode|PerUser|PerAccount)?(Limit|NotSatisfied)?",
    re.ASCII,
)


def reason_of(word: str) -> Reason | None:
    """Explain a reason as Slurm prints it; ``None`` for a word that no release of it had.

    Slurm adds to some reasons what they are about: ``ReqNodeNotAvail, UnavailableNodes:node1``.
    """
    meant = (known for sentence, known in _SENTENCES if sentence.match(word))
    word = next(meant, word.split(",")[0].strip())
    known = REASONS.get(word)
    if known is not None:
        return known
    match = _LIMIT.fullmatch(word)
    return None if match is None else _limit(*match.groups())


def _limit(
    who: str | None, kind: str, what: str, minutes: str | None, per: str | None, _: str | None
) -> Reason:
    of_what = _OF_WHAT[what] + (" over time" if minutes else "")
    whose = {"Assoc": "your Slurm account", "QOS": "your QOS", None: "your Slurm account"}[who]
    if per == "PerAccount":
        whose = "your Slurm account"
    if kind == "Min":
        return Reason(f"it asks for less than {whose} requires ({of_what})", "choose more")
    if kind == "Grp" or per == "PerAccount":
        return Reason(f"{whose} as a whole is at its limit of {of_what}", _SHARED)
    if per in ("PerJob", "PerNode"):
        return Reason(f"it asks for more than {whose} allows for one job ({of_what})", _CHOOSE)
    return Reason(f"you are at your limit of {of_what} under {whose}", _SHARED)
