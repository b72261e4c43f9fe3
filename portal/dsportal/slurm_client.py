"""The Slurm client of the hub's own services, made from the settings."""

from dsportal.settings.slurm import SlurmSettings
from jupyterhub_gpu_slurm.launcher_files import launcher_cmd
from jupyterhub_gpu_slurm.slurm.client import SlurmClient


def client_of(slurm: SlurmSettings, *, may_act: bool) -> SlurmClient:
    """Return a client; one that may not act only asks, and has no launcher."""
    return SlurmClient(
        bin_dir=slurm.bin_dir,
        slurm_conf=slurm.config_file,
        launcher_cmd=launcher_cmd(slurm.launcher, slurm.sudo) if may_act else (),
        time_limit=slurm.command_timeout_seconds,
        operator=slurm.operator if may_act else "",
    )
