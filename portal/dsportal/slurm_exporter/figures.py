"""Slurm's answers as metrics for Prometheus. Numbers only: no user, no job's name."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dsportal.slurm_exporter.scheduler import Scheduler
from jupyterhub_gpu_slurm.slurm.records import Cluster, Node, Partition, QueuedJob

SCHEDULER_WORDS = {
    "server_threads": "Threads of slurmctld that are answering somebody.",
    "agent_queue": "Messages of slurmctld to nodes that wait to be sent.",
    "dbd_agent_queue": "Messages to slurmdbd that wait: it grows while that is away.",
    "last_cycle_seconds": "Time that the last round of the scheduler took.",
    "mean_cycle_seconds": "Time that its rounds take on average.",
    "backfill_last_cycle_seconds": "Time that the last round of backfill took.",
    "backfill_queue": "Jobs that backfill looked at in its last round.",
}
_AWAY = (("down",), ("drained",), ("fail",), ("inval",), ("unknown",))
# sinfo(1), "NODE STATE CODES". POWER_DOWN alone is an order for when its jobs have ended.
_POWER = re.compile(r"(?:^|\+)(?:POWERED_DOWN|POWERING_DOWN|POWERING_UP)(?=\+|$)", re.ASCII)
_SEVERAL = "One that waits for any of several partitions counts in the first that it names."


@dataclass(frozen=True)
class Answer:
    """Slurm's state at one moment."""

    cluster: Cluster
    jobs: Sequence[QueuedJob]
    scheduler: Scheduler


class Figures(Collector):
    """Prometheus collector for one answer, or for none where Slurm gave none."""

    def __init__(self, answer: Answer | None) -> None:
        self._answer = answer

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give all figures."""
        up = "1 if Slurm answered when it was last asked."
        yield GaugeMetricFamily("slurm_up", up, value=float(self._answer is not None))
        if self._answer:
            yield from _of_nodes(self._answer.cluster)
            yield from _of_jobs(self._answer.jobs)
            yield from _of_scheduler(self._answer.scheduler)


def _of_nodes(cluster: Cluster) -> Iterator[GaugeMetricFamily]:
    nodes = cluster.nodes
    # With zeros: a rule that looks back sees at once that no node is away any more.
    states = Counter(dict.fromkeys(_AWAY, 0))
    states.update((_state(node),) for node in nodes.values())
    yield _family("slurm_nodes", "Nodes, by Slurm's word for their state.", ["state"], states)
    in_partitions: Counter[tuple[str, ...]] = Counter()
    on_nodes: Counter[tuple[str, ...]] = Counter()
    for part in cluster.partitions:
        for state, count in _gpus(part.nodes, is_open=part.is_up).items():
            in_partitions[part.name, state] = count
    opened = {node.name for part in cluster.partitions if part.is_up for node in part.nodes}
    for node in nodes.values():
        for state, count in _gpus((node,), is_open=node.name in opened).items():
            on_nodes[node.name, state] = count
    states_of_gpus = (
        "free, held by jobs, or unavailable: on a node, or in partitions, that take no jobs."
    )
    words = f"GPUs of a partition: {states_of_gpus} A GPU in two partitions counts in both."
    yield _family("slurm_partition_gpus", words, ["partition", "state"], in_partitions)
    words = f"GPUs of a node: {states_of_gpus}"
    yield _family("slurm_node_gpus", words, ["node", "state"], on_nodes)
    for name, words, values in (
        ("slurm_node_cores", "Cores of a node.", {(n.name,): n.cores for n in nodes.values()}),
        (
            "slurm_node_cores_held",
            "Cores of a node that jobs hold.",
            {(n.name,): n.cores_used for n in nodes.values()},
        ),
        (
            "slurm_node_memory_bytes",
            "Memory of a node.",
            {(n.name,): n.memory_mb * 2**20 for n in nodes.values()},
        ),
        (
            "slurm_node_memory_held_bytes",
            "Memory of a node that jobs hold.",
            {(n.name,): n.memory_used_mb * 2**20 for n in nodes.values()},
        ),
        (
            "slurm_node_power_saving",
            "1 for a node that Slurm has turned off to save power, or is turning off or on.",
            {(n.name,): int(bool(_POWER.search(n.state))) for n in nodes.values()},
        ),
    ):
        yield _family(name, words, ["node"], values)


def _state(node: Node) -> str:
    """Give sinfo's word, without what it only notes besides: IDLE+DRAIN is drained."""
    base, *more = node.state.lower().split("+")
    if "drain" in more or "fail" in more:
        return "drained"
    # A node that boots for a job need not answer yet: MIXED+CLOUD+NOT_RESPONDING+POWERING_UP.
    if "*" in base or ("not_responding" in more and "powering_up" not in more):
        return "down"
    if "invalid_reg" in more:
        return "inval"
    base = base.rstrip("~#%$@^!-")
    if base != "idle":
        return base
    return "maint" if "maintenance" in more else "reserved" if "reserved" in more else base


def _gpus(nodes: tuple[Node, ...], *, is_open: bool) -> Mapping[str, int]:
    alone = Partition("", False, is_open, None, None, nodes)
    counted = Counter({"free": 0, "held": 0, "unavailable": 0})
    for (_, state), count in Cluster((alone,)).gpus_by_state().items():
        counted[state] += count
    return counted


def _of_jobs(jobs: Iterable[QueuedJob]) -> Iterator[GaugeMetricFamily]:
    counted: Counter[tuple[str, ...]] = Counter()
    for job in jobs:
        counted[_partition(job), job.slurm_state.lower()] += job.tasks
    words = f"Jobs that have not ended, by partition and Slurm's word for their state. {_SEVERAL}"
    yield _family("slurm_jobs", words, ["partition", "state"], counted)
    wanted: Counter[tuple[str, ...]] = Counter()
    for job in jobs:
        if job.slurm_state == "PENDING":
            wanted[(_partition(job),)] += job.gpus * job.tasks
    words = f"GPUs that jobs in the queue ask for. {_SEVERAL}"
    yield _family("slurm_gpus_waited_for", words, ["partition"], wanted)


def _partition(job: QueuedJob) -> str:
    """Give one name: users write lists of partitions as they like, and labels have few values."""
    return job.partition.partition(",")[0]


def _of_scheduler(scheduler: Scheduler) -> Iterator[GaugeMetricFamily]:
    for key, value in asdict(scheduler).items():
        if value is not None:
            name, words = f"slurm_scheduler_{key}", SCHEDULER_WORDS[key]
            yield GaugeMetricFamily(name, words, value=float(value))


def _family(
    name: str, words: str, labels: list[str], values: Mapping[Any, int]
) -> GaugeMetricFamily:
    """Make one of values by their labels' values, a tuple."""
    family = GaugeMetricFamily(name, words, labels=labels)
    for found, value in sorted(values.items()):
        family.add_metric(found, float(value))
    return family
