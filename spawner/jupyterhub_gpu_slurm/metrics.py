"""The spawner's Prometheus metrics; JupyterHub shows them with its own at ``/hub/metrics``.

What happens is counted where it happens. What is so at a moment (sessions, GPUs, whether Slurm
answers) is not counted up and down: it is looked up whenever Prometheus asks, so that nothing
drifts and a restart of the hub cannot make it lie. What is not known has no sample.

Labels have few values; no user, session or node is in them.
"""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from jupyterhub_gpu_slurm import errors

STATES = ("waiting", "starting", "running", "stopping", "interrupted")
"""Of sessions. ``interrupted``: the hub ended during its start, and will take it up again."""
USES = ("used", "idle", "unknown")
"""Of a session's GPUs. ``unknown``: the session has not said so for a quarter of an hour."""

_HOUR = 3600.0
_QUERY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60)

WAIT = Histogram(
    "gpu_spawner_session_wait_seconds",
    "Time from a session's submission to the start of its job on a node, to the second.",
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, _HOUR, 4 * _HOUR, 12 * _HOUR),
)
START = Histogram(
    "gpu_spawner_session_start_seconds",
    "Time from the start of a session's job until the session can be used, to the second.",
    buckets=(1, 2, 3, 5, 10, 20, 30, 60, 120, 180),
)
START_FAILURES = Counter(
    "gpu_spawner_session_start_failures",
    "Starts that were refused or failed, by the kind of error in jupyterhub_gpu_slurm.errors.",
    ["reason"],
)
ENDS = Counter(
    "gpu_spawner_session_ends",
    "Sessions that have ended, by what ended them; not_started: before they could be used.",
    ["kind"],
)
FORECASTS = Counter(
    "gpu_spawner_forecasts",
    "Forecasts of a start that forms asked for, by the answer; kept: one from the hub's cache.",
    ["answer"],
)
QUERY = Histogram(
    "gpu_spawner_slurm_query_duration_seconds",
    "Time from the call of a Slurm program by the hub until its output was read, or it failed.",
    ["program"],
    buckets=_QUERY_BUCKETS,
)
QUERY_FAILURES = Counter(
    "gpu_spawner_slurm_query_failures",
    "Slurm programs, run by the hub itself, that failed, timed out or gave unreadable output.",
    ["program", "reason"],
)
LAUNCHER = Histogram(
    "gpu_spawner_launcher_duration_seconds",
    "Duration of an order to the launcher, which acts as a user, with its wait in the queue.",
    ["verb"],
    buckets=_QUERY_BUCKETS,
)
LAUNCHER_FAILURES = Counter(
    "gpu_spawner_launcher_failures",
    "Orders to the launcher that were not carried out; slurm_refused: Slurm refused.",
    ["verb", "reason"],
)


def _reasons(kind: type[errors.SpawnerError]) -> Iterator[str]:
    yield kind.reason
    for below in kind.__subclasses__():
        yield from _reasons(below)


LAUNCHER_VERBS = (
    *("submit", "forecast", "cancel", "list", "log"),
    *("extend", "end", "jobs", "marked", "session"),
)
"""What the launcher is asked for: the verbs of users, and those of Slurm's operator."""

# Known from the start, so that the first failure is seen as a rise from 0.
for _reason in _reasons(errors.SpawnerError):
    START_FAILURES.labels(_reason)
for _error in (errors.CommandFailed, errors.CommandTimedOut, errors.UnreadableOutput):
    for _program in ("squeue", "scontrol"):
        QUERY_FAILURES.labels(_program, _error.reason)
    for _verb in LAUNCHER_VERBS:
        LAUNCHER_FAILURES.labels(_verb, _error.reason)


@contextmanager
def timed(duration: Histogram, failures: Counter, name: str) -> Iterator[None]:
    """Time one call, and count how it failed; that there is no such job is no failure."""
    begun = time.monotonic()
    try:
        yield
    except errors.NoSuchJob:
        raise
    except errors.SlurmError as error:
        failures.labels(name, error.reason).inc()
        raise
    finally:
        duration.labels(name).observe(time.monotonic() - begun)


@dataclass(frozen=True)
class SessionSample:
    """Metrics of a session, as of now."""

    state: str
    """One of `STATES`."""
    gpus: int
    """That it holds now; none while it waits."""
    use: str
    """One of `USES`."""
    waited_seconds: float = 0.0
    """In the queue, until now; 0 for one that does not wait."""


@dataclass(frozen=True)
class ClusterSample:
    """Metrics of the cluster, as of Slurm's last answer."""

    is_answering: bool
    gpus: Mapping[tuple[str, str], int]
    """By type, and by state: free, held, or unavailable; none where it did not answer."""


class Moment(Collector):
    """Prometheus collector for sessions and cluster, as of the scrape."""

    def __init__(
        self,
        sessions: Callable[[], Iterable[SessionSample]],
        cluster: Callable[[], ClusterSample | None],
    ) -> None:
        self._sessions = sessions
        self._cluster = cluster

    def describe(self) -> list[Metric]:
        """Return the metrics without samples."""
        return list(_families())

    def collect(self) -> Iterator[Metric]:
        """Return the metrics as they are now."""
        sessions, gpus, longest_wait, up, cluster_gpus = _families()
        found = list(self._sessions())
        states = Tally(one.state for one in found)
        for state in STATES:
            sessions.add_metric([state], states[state])
        for use in USES:
            gpus.add_metric([use], sum(one.gpus for one in found if one.use == use))
        longest_wait.add_metric([], max((one.waited_seconds for one in found), default=0.0))
        cluster = self._cluster()
        if cluster is not None:
            up.add_metric([], cluster.is_answering)
            for (kind, state), count in sorted(cluster.gpus.items()):
                cluster_gpus.add_metric([kind, state], count)
        yield from (sessions, gpus, longest_wait, up, cluster_gpus)


def _families() -> tuple[GaugeMetricFamily, ...]:
    return (
        GaugeMetricFamily(
            "gpu_spawner_sessions",
            "Sessions of this hub, by their state: waiting in the queue, starting, running, "
            "stopping, or interrupted: the hub ended during its start, and will continue it.",
            labels=["state"],
        ),
        GaugeMetricFamily(
            "gpu_spawner_session_gpus",
            "GPUs that sessions hold: used, idle (the session has been unused for "
            "idle_gpu_minutes), or unknown: the session has not reported its use for a quarter of "
            "an hour, or since the hub started.",
            labels=["use"],
        ),
        GaugeMetricFamily(
            "gpu_spawner_session_longest_wait_seconds",
            "How long the session that has waited longest has been in the queue; 0 if none waits.",
        ),
        GaugeMetricFamily(
            "gpu_spawner_slurm_up", "1 if Slurm answered the last query about its nodes, else 0."
        ),
        GaugeMetricFamily(
            "gpu_spawner_cluster_gpus",
            "GPUs of the cluster, by type and state: free, held by any job, or unavailable: on "
            "nodes, or in partitions, that accept no jobs.",
            labels=["type", "state"],
        ),
    )


_registered: list[Moment] = []


def register(moment: Moment, registry: CollectorRegistry = REGISTRY) -> None:
    """Let Prometheus see this, in the place of what was registered before."""
    while _registered:
        registry.unregister(_registered.pop())
    registry.register(moment)
    _registered.append(moment)
