"""Slurm's own word, read by the soak itself: the portal's parsing is part of what is watched."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.instance import Instance

_QUEUE = "%i|%u|%T|%j"
_JOB = re.compile(r"^JobId=(\d+) .*?\bJobState=(\S+)")
# One for each group of nodes: "Nodes=node001 CPU_IDs=0-7 Mem=49152 GRES=gpu:v100:2(IDX:0,2-3)".
_PLACE = re.compile(r" Nodes=(\S+) CPU_IDs=\S+ Mem=\S+ GRES=(\S*)")
_INDICES = re.compile(r"gpu[^(]*\(IDX:([\d,-]+)\)")
_BRACKETS = re.compile(r"([^\[,]+)\[([\d,-]+)\]|([^\[,]+)")
_OF_USER = re.compile(r"^\s*(\S+)\s*\(\s*\d+\) count:(\d+)\s", re.MULTILINE)
_BY_USER = "Remote Procedure Call statistics by user"


@dataclass(frozen=True)
class ListedJob:
    """A job that Slurm still lists."""

    job_id: str
    user: str
    state: str
    name: str

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or Slurm is about to end it."""
        return self.state not in {"PENDING", "RUNNING", "CONFIGURING", "SUSPENDED"}


@dataclass(frozen=True)
class Allocation:
    """The GPUs of a running job."""

    job_id: str
    gpus: frozenset[tuple[str, int]]
    """Node and number."""


def queue(portal: Instance) -> list[ListedJob]:
    """Ask for all jobs, ended ones too as long as Slurm remembers them."""
    shown = portal.slurm("squeue", "--noheader", "--states=all", "-o", _QUEUE)
    return [ListedJob(*line.split("|", 3)) for line in shown.splitlines()]


def allocations(portal: Instance) -> list[Allocation]:
    """Ask which GPUs each running job has."""
    return list(parsed_allocations(portal.slurm("scontrol", "show", "job", "-d", "--oneliner")))


def questions_of(portal: Instance, user: str) -> int:
    """Return how many messages slurmctld has had from a user since it began to count."""
    return parsed_questions(portal.slurm("sdiag"), user)


def parsed_allocations(shown: str) -> Iterator[Allocation]:
    """Read ``scontrol show job -d --oneliner``."""
    for line in shown.splitlines():
        job = _JOB.match(line)
        if job and job[2] == "RUNNING":
            gpus = {
                (node, number)
                for place in _PLACE.finditer(line)
                for node in hosts(place[1])
                for indices in _INDICES.findall(place[2])
                for number in numbers(indices)
            }
            yield Allocation(job[1], frozenset(gpus))


def parsed_questions(shown: str, user: str) -> int:
    """Read ``sdiag``."""
    _, _, of_users = shown.partition(_BY_USER)
    return next((int(count) for name, count in _OF_USER.findall(of_users) if name == user), 0)


def hosts(words: str) -> Iterator[str]:
    """Give the nodes of a list as Slurm writes it: ``a[001-003,7],b``."""
    for prefix, ranges, alone in _BRACKETS.findall(words):
        if alone:
            yield alone
        else:
            width = len(re.split("[,-]", ranges)[0])
            yield from (f"{prefix}{number:0{width}}" for number in numbers(ranges))


def numbers(ranges: str) -> Iterable[int]:
    """Give the numbers of ``0,2-3``."""
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
