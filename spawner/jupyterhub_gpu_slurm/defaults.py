"""Default values that the spawner's options and the portal's settings have in common."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SlurmDefaults:
    """Defaults of the connection to Slurm and of its intervals."""

    config_file: str = "/etc/slurm/slurm.conf"
    bin_dir: str = "/usr/bin"
    sudo: str = "/usr/bin/sudo"
    query_interval_seconds: float = 1.0
    """Between two questions about jobs while a session starts or ends."""
    quiet_interval_seconds: float = 10.0
    """Between two questions about jobs while sessions only run."""
    cluster_interval_seconds: float = 10.0
    """Between two questions about nodes, partitions and the queue."""
    reconcile_interval_seconds: float = 300.0
    """Between two rounds of the reconciler."""
    command_timeout_seconds: float = 20.0
    launches_at_once: int = 2
    offer_accounts: bool = True


@dataclass(frozen=True)
class IdleDefaults:
    """Default times of the idle warning, and until GPUs count as idle."""

    warning_minutes: float = 10.0
    gpu_minutes: float = 30.0
