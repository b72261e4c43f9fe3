"""JupyterHub sessions as Slurm jobs with GPUs.

Use it with ``c.JupyterHub.spawner_class = "gpu-slurm"``.
"""

from typing import Any

__all__ = ["GpuSlurmSpawner"]


def __getattr__(name: str) -> Any:
    """Give the spawner, and have the hub of this process know that it may be the one it takes.

    A hub imports every spawner that is installed, to list its settings; it asks here for the one
    that its configuration names.
    """
    if name != "GpuSlurmSpawner":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from jupyterhub_gpu_slurm import registration, spawner

    registration.join_hub_once_chosen()
    return spawner.GpuSlurmSpawner
