"""Settings of Slurm: how the hub reaches it."""

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from dsportal.settings.table import Table, setting
from dsportal.values import AbsolutePath, Texts, UnixName
from jupyterhub_gpu_slurm.defaults import SlurmDefaults
from jupyterhub_gpu_slurm.session.script import check_options


class SlurmSettings(Table):
    """How the hub reaches Slurm."""

    config_file: AbsolutePath = setting(SlurmDefaults.config_file, "Slurm's configuration.")
    bin_dir: AbsolutePath = setting(
        SlurmDefaults.bin_dir, "The folder with squeue, sinfo and scontrol."
    )
    launcher: AbsolutePath = setting(
        "/opt/data-scientist-portal/libexec/portal/slurm-launcher",
        "The one program that sudo lets the hub run as a user.",
    )
    sudo: AbsolutePath = setting(SlurmDefaults.sudo, "The sudo program.")
    operator: UnixName = setting(
        "",
        "The account as which the launcher raises the time limits of running sessions, and ends "
        "those of deleted accounts, and sees jobs where Slurm's PrivateData hides them: Slurm's "
        "SlurmUser, or an operator in Slurm's accounting; "
        "empty: sessions are not extended.",
    )
    offer_accounts: bool = setting(
        SlurmDefaults.offer_accounts,
        "Whether the form lets users choose among the accounts and QOS that Slurm's accounting "
        "gives them, where there are several and `limits` sets none.",
    )
    sbatch_options: Texts = setting(
        (),
        "Options that every session's job has, such as `--nice=100`: those that choose nodes, "
        "priority and mail. A node feature that a user chooses stands in for `--constraint`.",
    )
    query_interval_seconds: float = setting(
        SlurmDefaults.query_interval_seconds,
        "The time between two questions to squeue, for all sessions together, while one starts; "
        "a tenth of it for a session that listens already.",
        unit="seconds",
        ge=0.1,
        le=60,
    )
    quiet_interval_seconds: float = setting(
        SlurmDefaults.quiet_interval_seconds,
        "The time between two questions to squeue while sessions only run.",
        unit="seconds",
        ge=1,
        le=15,
    )
    cluster_interval_seconds: float = setting(
        SlurmDefaults.cluster_interval_seconds,
        "The time between two looks at what the nodes have free, for all open forms together.",
        unit="seconds",
        ge=1,
        le=600,
    )
    reconcile_interval_seconds: float = setting(
        SlurmDefaults.reconcile_interval_seconds,
        "The time between two looks for jobs of this hub that belong to no server.",
        unit="seconds",
        ge=1,
        le=86400,
    )
    launches_at_once: int = setting(
        SlurmDefaults.launches_at_once,
        "How many starts and stops may be handed to Slurm at one moment; others wait a little.",
        ge=1,
        le=100,
    )
    command_timeout_seconds: float = setting(
        SlurmDefaults.command_timeout_seconds,
        "How long a program of Slurm may take to answer.",
        unit="seconds",
        ge=1,
        le=600,
    )

    @field_validator("sbatch_options")
    @classmethod
    def _are_allowed(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return check_options(options)
        except ValueError as error:
            raise PydanticCustomError("rule", "{words}", {"words": str(error)}) from error
