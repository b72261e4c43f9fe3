"""The nodes of a site's Slurm: what the form makes of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsportal.doctor.finding import Finding, ok, warning
from dsportal.doctor.judgement.attachment.names import some

FORMAT = "%R|%N|%c|%m|%G|%f"
"""For ``sinfo --Node``. 22.05: ``mix|node001|64|512000|gpu:a100:4(S:0-1)|a100,nvlink``."""
# gpu:4 | gpu:a100:4(S:0-1) | gpu:a100_1g.5gb:7 | gpu:a100:no_consume:4
_GPUS = re.compile(r"(?:^|,)gpu(?::([^:(),\s]+))??(?::no_consume)?:(\d+)(?=[(,]|$)", re.ASCII)
_RESERVATION = re.compile(r"^ReservationName=(.+?) StartTime=.*?\bFlags=(\S*)", re.MULTILINE)
# More than what a BIOS keeps of the memory of equal machines.
_ALIKE = 1.1
_HOW = "docs/how-to/offer-choices.md"


@dataclass(frozen=True)
class SiteNode:
    """A node in one of its partitions."""

    partition: str
    name: str
    cores: int
    memory_mb: int
    gpus: tuple[tuple[str, int], ...]
    """The types, "" for none, each with its number."""
    features: frozenset[str]

    @property
    def gpu_count(self) -> int:
        """All of its GPUs."""
        return sum(count for _, count in self.gpus)


def read(said: str) -> list[SiteNode]:
    """Read what ``sinfo`` says; a line of another form is left out."""
    fields = [line.strip().split("|", FORMAT.count("|")) for line in said.splitlines()]
    return [
        SiteNode(
            partition,
            name,
            int(cores),
            int(memory),
            tuple((kind, int(count)) for kind, count in _GPUS.findall(gres)),
            frozenset(features.split(",")) - {"", "(null)"},
        )
        for partition, name, cores, memory, gres, features in (
            line for line in fields if len(line) == FORMAT.count("|") + 1
        )
        if cores.isdecimal() and memory.isdecimal()
    ]


def gpus(nodes: Sequence[SiteNode]) -> Finding:
    """Say which GPUs there are."""
    found = {kind for node in nodes for kind, _ in node.gpus}
    if not found:
        return warning("no node has GPUs in its Gres", "the form offers none; see gres.conf(5)")
    types = sorted(found - {""})
    if not types:
        return ok("of one kind")
    if "" in found:
        return warning(
            f"some have a type ({', '.join(types)}), some have none", "give all of them a type"
        )
    return ok(f"of type {', '.join(types)}")


def mixed(nodes: Sequence[SiteNode]) -> Finding:
    """Say what the form shows of partitions whose nodes differ."""
    partitions: dict[str, list[SiteNode]] = {}
    for node in nodes:
        if node.gpu_count:
            partitions.setdefault(node.partition, []).append(node)
    choices = [words for name, found in partitions.items() if (words := _choice(name, found))]
    unequal = [words for name, found in partitions.items() if (words := _shares(name, found))]
    if not unequal:
        return ok("; ".join(choices) or "the GPU nodes of each partition are alike")
    return warning(
        f"{'; '.join([*choices, *unequal])}, of which the form gives each GPU the same share",
        "set session.cores_per_gpu and session.memory_mb_per_gpu to the least: where a node has "
        "less, not all of its GPUs can be used",
    )


def _shares(partition: str, nodes: Sequence[SiteNode]) -> str:
    cores = [node.cores // node.gpu_count for node in nodes]
    memory = [node.memory_mb // node.gpu_count for node in nodes]
    if max(cores) <= min(cores) * _ALIKE and max(memory) <= min(memory) * _ALIKE:
        return ""
    return (
        f"{partition} has {_range(cores)} cores and {_range([mb // 1024 for mb in memory])} GiB of "
        "memory per GPU"
    )


def _choice(partition: str, nodes: Sequence[SiteNode]) -> str:
    types = sorted({kind for node in nodes for kind, _ in node.gpus} - {""})
    counts = [node.gpu_count for node in nodes]
    words = []
    if len(types) > 1:
        words.append(f"the form offers a choice of {', '.join(types)}")
    if min(counts) != max(counts):
        words.append(f"the form offers up to {max(counts)} GPUs, which not every node has")
    return f"{partition}: {', '.join(words)}" if words else ""


def _range(values: Sequence[int]) -> str:
    least, most = min(values), max(values)
    return f"{least}" if least == most else f"{least} to {most}"


def features(nodes: Sequence[SiteNode]) -> Finding:
    """Say what nodes can be chosen by."""
    found = {name for node in nodes for name in node.features}
    if not found:
        return ok("no node has one")
    return ok(f"{some(found)}: users choose among those that you list as constraints ({_HOW})")


def reservations(said: str) -> Finding:
    """Read ``scontrol show reservation --oneliner``."""
    found = _RESERVATION.findall(said)
    if not found:
        return ok("none now")
    kept = {name for name, flags in found if "MAINT" in flags.split(",")}
    words = []
    if open_ := {name for name, _ in found} - kept:
        words.append(f"{some(open_)}: sessions use one where limits name it ({_HOW})")
    if kept:
        words.append(f"{some(kept)}: for maintenance, no session runs there meanwhile")
    return ok("; ".join(words))
