"""Settings of the cluster page."""

from dsportal.settings.table import Table, setting
from dsportal.values import HttpUrl


class ClusterSettings(Table):
    """The page that shows the cluster's nodes, GPUs and queue; a service of the hub."""

    url: HttpUrl = setting(
        "http://127.0.0.1:8002",
        "Where the service listens, as the proxy and the sessions on the compute nodes reach it. "
        "`slurm.cluster_interval_seconds` sets how often it asks Slurm.",
    )
    show_names: bool = setting(
        False,
        "Whether all users see who holds a GPU, and the names of others' jobs. Admins always do.",
    )
    login_seconds: float = setting(
        60.0,
        "How long a login or token still opens the page after it has ended.",
        unit="seconds",
        ge=1,
        le=600,
    )
