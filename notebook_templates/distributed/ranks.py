"""Where a process is among all that train together, and how they find each other.

Needs nothing but Python, so that the programs of every framework use it.
"""

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

PATIENCE_SECONDS = 300.0
"""How long the first process is waited for: nodes do not all start a job at the same moment."""


@dataclass(frozen=True)
class Rank:
    """A process among all that train together."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    node: int
    """Its node's number among the job's."""
    address: str
    """Where rank 0 listens for the others."""
    port: int

    @property
    def is_first(self) -> bool:
        """Whether this process writes what stays."""
        return self.rank == 0


def place(variables: Mapping[str, str]) -> Rank:
    """Read Slurm's variables; without `srun` there is one process.

    A batch script has them too, for itself: SLURM_STEP_ID is what srun alone sets.
    """
    if "SLURM_STEP_ID" not in variables or "SLURM_PROCID" not in variables:
        return Rank(0, 1, 0, 1, 0, "127.0.0.1", 0)
    return Rank(
        rank=int(variables["SLURM_PROCID"]),
        ranks=int(variables["SLURM_NTASKS"]),
        local_rank=int(variables["SLURM_LOCALID"]),
        # "4", "4(x2)" or "4,2": the tasks of each node.
        local_ranks=int(variables["SLURM_STEP_TASKS_PER_NODE"].split(",")[0].split("(")[0]),
        node=int(variables["SLURM_NODEID"]),
        # The node of the batch script, whose first task is rank 0; an address needs no resolver.
        address=variables["SLURM_LAUNCH_NODE_IPADDR"],
        port=port_of(int(variables["SLURM_JOB_ID"]), int(variables["SLURM_STEP_ID"])),
    )


def cores_of_task(allowed: int, tasks: int, variables: Mapping[str, str]) -> int:
    """Return how many of the cores that a process is allowed are for it alone.

    Where Slurm binds tasks (``TaskPlugin=task/affinity``) they all are; else a node's tasks share.
    """
    asked = variables.get("SLURM_CPUS_PER_TASK", "")
    return min(allowed, int(asked)) if asked.isdecimal() else max(1, allowed // tasks)


def own_gpu(local_rank: int, variables: Mapping[str, str]) -> int:
    """Return which of the GPUs that a process sees is its own; where it sees one, that.

    >>> all_of_node, one = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, {"CUDA_VISIBLE_DEVICES": "3"}
    >>> own_gpu(3, all_of_node), own_gpu(3, one)
    (3, 0)
    """
    seen = [name for name in variables.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return local_rank % len(seen) if seen else local_rank


def port_of(job: int, step: int) -> int:
    """Return where rank 0 listens: above what the system gives away, and below 65536.

    No two of 65 jobs in a row have one in common, whatever their steps; and first steps, which most
    jobs have no more of, only jobs that are 4,499 apart, a prime number.
    """
    return 61_000 + (job * 61 + step % 61) % 4_499


def free_port() -> int:
    """Return a TCP port that nobody listens on here."""
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def meet(here: Rank, port: int, patience_seconds: float = PATIENCE_SECONDS) -> list[str]:
    """Tell everybody the port that this process listens on; return all, "address:port" by rank.

    Each process calls it once. For frameworks that want to be told where all processes are, and
    not just the first. Slurm's list of nodes would need their names to be known to a resolver, and
    ports that no other job of the node has.
    """
    if here.is_first:
        return _gather(here, port, patience_seconds)
    with _connected(here, patience_seconds) as line:
        line.settimeout(patience_seconds)
        line.sendall(json.dumps([here.rank, port]).encode() + b"\n")
        with line.makefile() as answer:
            found = answer.readline()
    if not found:
        raise ConnectionError(f"rank 0 on {here.address} ended before all processes had joined")
    return [str(address) for address in json.loads(found)]


def _gather(here: Rank, port: int, patience_seconds: float) -> list[str]:
    addresses = {0: f"{here.address}:{port}"}
    lines = []
    with socket.create_server((here.address, here.port)) as server:
        server.settimeout(patience_seconds)
        while len(addresses) < here.ranks:
            line, (address, _) = server.accept()
            line.settimeout(patience_seconds)
            with line.makefile() as said:
                rank, its_port = json.loads(said.readline())
            addresses[int(rank)] = f"{address}:{int(its_port)}"
            lines.append(line)
    found = [addresses[rank] for rank in range(here.ranks)]
    for line in lines:
        with line:
            line.sendall(json.dumps(found).encode() + b"\n")
    return found


def _connected(here: Rank, patience_seconds: float) -> socket.socket:
    until = time.monotonic() + patience_seconds
    while True:
        try:
            return socket.create_connection((here.address, here.port), timeout=10)
        except OSError:
            # The first process is not there yet.
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
