"""What the spawner counts for Prometheus; JupyterHub shows it beside its own at ``/hub/metrics``.

What happens is counted where it happens. What is so at a moment (sessions, GPUs) is not counted up
and down: it is looked up whenever Prometheus asks, so that a restart of the hub cannot make it lie.
Labels have few values; no user, session or node is in them.
"""

from prometheus_client import Counter, Histogram

_HOUR = 3600.0

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
ENDS = Counter(
    "gpu_spawner_session_ends",
    "Sessions that have ended, by what ended them; not_started: before they could be used.",
    ["kind"],
)
