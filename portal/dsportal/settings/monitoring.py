"""Settings for Prometheus: its login, and what it is told."""

from dsportal.settings.table import Table, setting
from dsportal.values import OptionalPath
from jupyterhub_gpu_slurm.defaults import IdleDefaults


class Monitoring(Table):
    """Metrics for Prometheus, at `/hub/metrics`."""

    token_file: OptionalPath = setting(
        "",
        "The file with the token that lets Prometheus read the metrics, readable by the hub's "
        "user: at least 32 letters, digits, hyphens and underscores. Empty: only admins can read "
        "the metrics.",
    )
    idle_gpu_minutes: float = setting(
        IdleDefaults.gpu_minutes,
        "The time without use after which the metrics count a session's GPUs as idle.",
        unit="minutes",
        gt=0,
    )
