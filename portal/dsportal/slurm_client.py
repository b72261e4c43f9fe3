"""The way to Slurm that the settings describe, for the hub's own services."""

from dsportal.settings.slurm import SlurmSettings
from jupyterhub_gpu_slurm.slurm.client import SlurmClient


def launcher_cmd(slurm: SlurmSettings) -> tuple[str, ...]:
    """Return how the launcher is run as a user; ``{username}`` stands for the user."""
    return (slurm.sudo, "-n", "-u", "{username}", "--", slurm.launcher)


def client_of(slurm: SlurmSettings, *, may_act: bool) -> SlurmClient:
    """Return a client; one that may not act only asks, and has no launcher."""
    return SlurmClient(
        bin_dir=slurm.bin_dir,
        slurm_conf=slurm.config_file,
        launcher_cmd=launcher_cmd(slurm) if may_act else (),
        time_limit=slurm.command_timeout_seconds,
        operator=slurm.operator if may_act else "",
    )
