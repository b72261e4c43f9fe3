"""Parsers for the output of Slurm's programs. Traps and examples are in the tests' tables.

Raises `UnreadableOutput` for what does not look like Slurm's own output.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm.records import Cluster, Gres, Job, Node, Partition

# days-hours:minutes:seconds, from the right; "30:00" is thirty minutes.
_TIME = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", re.ASCII)
# gpu:4 | gpu:v100:4 | gpu:a100:4(S:0-1) | gpu:v100:2(IDX:0,3) | gpu:(null):1(IDX:0) |
# shard:l4:2(IDX:1-2) | shard:a100:8(2/4,0/4) | gpu:a100:no_consume:4(S:0) | shard:2K | mps:400.
# Others (gpu_mem:...) are neither GPUs nor parts of them that jobs are given.
_GRES = re.compile(
    r"(?:^|,)(gpu|shard|mps)(?::([^:(),]+|\(null\)))??(?::no_consume)?:(\d+)([KMGTP]?)"
    r"(?:\(([^)]*)\))?(?=,|$)",
    re.ASCII,
)
_THOUSANDS = " KMGTP"
# A word of a partition. Groups' names may have spaces: "AllowGroups=domain users,staff Default=NO".
_PARTITION_WORD = re.compile(r"(\w+)=(.*?)(?= +\w+=|\s*$)", re.ASCII)
_COMMENT = re.compile(r"([^:\n]+):([0-9a-f]{32})\n", re.ASCII)
# scontrol show config prints "PrivateData             = jobs,usage"
_PRIVATE_DATA = re.compile(r"^PrivateData\s*=\s*(\S+)", re.ASCII | re.MULTILINE)
_INDEXES = re.compile(r"IDX:\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)
_MOST_GPUS = 1024
_NODE_WORD = re.compile(
    r"(?:^| )(NodeName|NodeAddr|Gres|GresUsed|CPUEfctv|CPUTot|CPUAlloc|RealMemory|MemSpecLimit"
    r"|AllocMem|State|Partitions|AvailableFeatures)=(\S*)",
    re.ASCII,
)
# A line ends with "Reason=disk is broken [root@2026-11-21T03:01:25] Comment=fan", and the like.
_NODE_REASON = re.compile(
    r" Reason=(.*?)(?: \[[^\[\]@]*@\d{4}-\d\d-\d\dT[\d:]+\].*)?$", re.ASCII | re.DOTALL
)
# Words of a node's state (sinfo(1), "NODE STATE CODES") that keep new jobs away; with a star it
# does not answer. A node that is POWERED_DOWN is started for a job.
_KEEPS_JOBS_AWAY = re.compile(
    r"\*|(?:^|\+)(?:BLOCKED|DOWN|DRAIN\w*|ERROR|EXTERNAL|FAIL\w*|FUTURE|INVAL\w*|MAINT\w*|NOT_RESPONDING"
    r"|POWERING_DOWN|REBOOT\w*|RESERVED|UNKNOWN)(?=\+|$)",
    re.ASCII,
)


def jobs(text: str) -> dict[int, Job]:
    """Read the answer to :func:`jupyterhub_gpu_slurm.slurm.commands.jobs`."""
    found: dict[int, Job] = {}
    for fields in _rows(text, 9):
        job_id, state, reason, user, partition, nodes, start, end, limit = fields
        if not job_id.isdecimal():
            raise UnreadableOutput(f"squeue printed {job_id!r} for a job id.")
        found[int(job_id)] = Job(
            job_id=int(job_id),
            slurm_state=state,
            reason=known(reason),
            user=known(user),
            partition=known(partition),
            node=known(nodes),
            start=moment(start),
            end=moment(end),
            limit=_duration(limit),
        )
    return found


def marked_jobs(text: str, mark: str, word: str) -> dict[str, set[int]]:
    """Return, by user, the jobs whose name begins with a hub's mark: who is to be asked more.

    ``word`` is that of the question, see `commands.marked`: lines without it are the rest of a name
    with a newline in it. Users can name their own jobs so: a hint where to look, not a fact.
    """
    found: dict[str, set[int]] = {}
    for line in text.split("\n"):
        begin, _, rest = line.partition("|")
        job_id, _, rest = rest.partition("|")
        user, _, name = rest.partition("|")
        if begin == word and job_id.isdecimal() and user and name.startswith(f"{mark}-"):
            found.setdefault(user, set()).add(int(job_id))
    return found


def users_of(jobs_told: Mapping[int, Job]) -> dict[str, set[int]]:
    """Return the jobs' numbers by user."""
    found: dict[str, set[int]] = {}
    for job in jobs_told.values():
        if job.user:
            found.setdefault(job.user, set()).add(job.job_id)
    return found


def hides_jobs(text: str) -> bool:
    """Read the answer to `commands.config`: whether others' jobs are hidden, see slurm.conf(5)."""
    found = _PRIVATE_DATA.search(text)
    if found is None:
        raise UnreadableOutput("scontrol does not tell PrivateData among Slurm's settings.")
    return "jobs" in found[1].lower().split(",")


def session(text: str, mark: str) -> str | None:
    """Read the answer to `commands.comment`: a session of a hub, if the comment is nothing else."""
    match = _COMMENT.fullmatch(text)
    return match[2] if match and match[1] == mark else None


def cluster(nodes: Mapping[str, list[Node]], partitions: Iterable[Partition]) -> Cluster:
    """Put `nodes` into their `partitions`."""
    return Cluster(tuple(replace(one, nodes=tuple(nodes.get(one.name, ()))) for one in partitions))


def nodes(text: str) -> dict[str, list[Node]]:
    """Read the answer to `commands.nodes`: the nodes of each partition."""
    members: dict[str, list[Node]] = {}
    # An administrator's own words may hold newlines: Comment, Extra.
    for line in re.split(r"\n(?=NodeName=)", text):
        if not line.strip() or line.startswith("No nodes"):
            continue
        words: dict[str, str] = {}
        for key, value in _NODE_WORD.findall(line):
            # The first counts: a line ends with an administrator's own words.
            words.setdefault(key, value)
        if not words.get("NodeName"):
            raise UnreadableOutput(f"scontrol printed {line[:100]!r} for a node.")
        node = Node(
            name=words["NodeName"],
            address=words.get("NodeAddr", words["NodeName"]),
            gres=gres(words.get("Gres", ""), words.get("GresUsed", "")),
            cores=_number("cores", words.get("CPUEfctv", words.get("CPUTot", ""))),
            memory_mb=max(
                0,
                _number("memory", words.get("RealMemory", ""))
                - _number("reserved memory", words.get("MemSpecLimit", "0")),
            ),
            is_up=not _KEEPS_JOBS_AWAY.search(words.get("State", "UNKNOWN")),
            cores_used=_number("used cores", words.get("CPUAlloc", "0")),
            memory_used_mb=_number("used memory", words.get("AllocMem", "0")),
            state=words.get("State", "UNKNOWN"),
            reason=reason[1] if (reason := _NODE_REASON.search(line.rstrip())) else None,
            gpus_in_use=gpus_in_use(words.get("GresUsed", "")),
            features=_features(words.get("AvailableFeatures", "")),
        )
        for partition in words.get("Partitions", "").split(","):
            members.setdefault(partition, []).append(node)
    return members


def partitions(text: str) -> list[Partition]:
    """Read the answer to `commands.partitions`, as yet without their nodes."""
    found = []
    for line in text.split("\n"):
        if not line.startswith("PartitionName="):
            if line.strip() and not line.startswith("No partitions"):
                raise UnreadableOutput(f"scontrol printed {line!r} for a partition.")
            continue
        words = dict(_PARTITION_WORD.findall(line))
        partition = Partition(
            name=words["PartitionName"],
            is_default=words.get("Default") == "YES",
            is_up=words.get("State") == "UP",
            max_time=time_limit(words.get("MaxTime", "UNLIMITED")),
            allowed_groups=_groups(words.get("AllowGroups", "ALL")),
            nodes=(),
            is_root_only=words.get("RootOnly") == "YES",
            is_hidden=words.get("Hidden") == "YES",
            min_nodes=_limit(words.get("MinNodes", "")) or 0,
            max_cores_per_node=_limit(words.get("MaxCPUsPerNode", "")),
            max_memory_mb_per_node=_limit(words.get("MaxMemPerNode", "")),
            needs_reservation=words.get("ReqResv") == "YES",
            is_exclusive=words.get("OverSubscribe") == "EXCLUSIVE",
        )
        found.append(partition)
    return found


def gres(text: str, used_text: str = "") -> tuple[Gres, ...]:
    """Read a node's ``Gres`` and ``GresUsed``: ``gpu:v100:4(S:0-1)``, ``gpu:v100:1(IDX:2)``."""
    used: dict[tuple[str, str | None], int] = {}
    for name, kind, count, where in kinds(used_text):
        touched = count if name == "gpu" else _lent_gpus(count, where)
        used[name, kind] = used.get((name, kind), 0) + touched
    counts: dict[tuple[str, str | None], int] = {}
    for name, kind, count, _ in kinds(text):
        # One kind may be told for each socket: gpu:a100:2(S:0),gpu:a100:2(S:1).
        counts[name, kind] = counts.get((name, kind), 0) + count
    return tuple(
        Gres(name, kind, count, used.get((name, kind), 0)) for (name, kind), count in counts.items()
    )


def gpus_in_use(used_text: str) -> frozenset[int] | None:
    """Read from ``GresUsed`` which GPUs jobs hold; ``None`` where some are not told by number."""
    found: set[int] = set()
    for _, _, count, where in kinds(used_text):
        if count and (told := indexes(where)) is None:
            return None
        found.update(told if count and told else ())
    return frozenset(found)


def indexes(where: str) -> frozenset[int] | None:
    """Read ``IDX:0-1,3``; ``None`` for anything else."""
    if not _INDEXES.fullmatch(where):
        return None
    found: set[int] = set()
    for part in where.removeprefix("IDX:").split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first), _MOST_GPUS) + 1))
    return frozenset(found)


def kinds(text: str) -> Iterator[tuple[str, str | None, int, str]]:
    """Read a list of GPUs: name, type, count, and what is said of them in brackets."""
    for name, kind, count, unit, where in _GRES.findall(text):
        yield name, known(kind), int(count) * 1024 ** _THOUSANDS.index(unit or " "), where


def _lent_gpus(count: int, where: str) -> int:
    """Return of how many GPUs jobs hold parts.

    Slurm 22.05 tells just that (seen: three shards of one GPU are ``shard:l4:1(IDX:1)``), newer
    ones the shards of each GPU: ``shard:l4:5(4/4,1/4,0/4)``.
    """
    if "/" not in where:
        return count
    return sum(not part.startswith("0/") for part in where.split(","))


def _features(text: str) -> frozenset[str]:
    return frozenset(text.split(",") if known(text) else ())


def time_limit(text: str) -> timedelta | None:
    """Read a time limit of a partition; ``None`` for no limit."""
    if text in ("UNLIMITED", "infinite"):
        return None
    limit = _duration(text)
    if limit is None:
        raise UnreadableOutput(f"{text!r} is not a time limit.")
    return limit


def _duration(text: str) -> timedelta | None:
    """Read a number of hours and minutes; ``UNLIMITED``, ``NOT_SET`` and the like are ``None``."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def _rows(text: str, width: int) -> Iterator[list[str]]:
    for line in text.split("\n"):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != width:
            raise UnreadableOutput(f"Slurm printed {line!r}; {width} fields were asked for.")
        yield fields


def _limit(text: str) -> int | None:
    """Read a number of a partition's rules; ``UNLIMITED`` is ``None``."""
    return int(text) if text.isdecimal() else None


def _groups(text: str) -> frozenset[str] | None:
    return None if text == "ALL" else frozenset(text.split(","))


def known(text: str) -> str | None:
    """Give a word of Slurm's, ``None`` for those that mean that there is none."""
    return None if text in ("", "None", "(null)", "N/A") else text


def moment(text: str) -> datetime | None:
    """Read a time that was asked for in UTC; ``N/A`` and the like are ``None``."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def _number(what: str, text: str) -> int:
    if not text.isdecimal():
        raise UnreadableOutput(f"scontrol printed {text!r} for a node's {what}.")
    return int(text)
