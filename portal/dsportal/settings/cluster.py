"""Settings of the cluster page."""

from dsportal.settings.table import Table, setting
from dsportal.values import HttpUrl


class ClusterSettings(Table):
    """The page with the cluster's nodes, GPUs and queue, a service of the hub."""

    url: HttpUrl = setting(
        "http://127.0.0.1:8002",
        "Where the service listens, as the proxy and the sessions on the compute nodes reach it. "
        "How often it asks Slurm is `slurm.cluster_interval_seconds`.",
    )
    show_names: bool = setting(
        False,
        "Whether all users see who holds a GPU and what others' jobs are called. Admins always "
        "see it.",
    )
    login_seconds: float = setting(
        60.0,
        "How long a login or a token that has ended may still look.",
        unit="seconds",
        ge=1,
        le=600,
    )
