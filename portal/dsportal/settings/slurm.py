"""Settings of Slurm: how the hub reaches it."""

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from dsportal.settings.table import Table, setting
from dsportal.values import AbsolutePath, Texts, UnixName
from jupyterhub_gpu_slurm.defaults import SlurmDefaults
from jupyterhub_gpu_slurm.session.script import check_options


class SlurmSettings(Table):
    """The hub's access to Slurm: its programs, and how often they are called."""

    config_file: AbsolutePath = setting(SlurmDefaults.config_file, "Slurm's configuration file.")
    bin_dir: AbsolutePath = setting(
        SlurmDefaults.bin_dir, "The folder with squeue, sinfo and scontrol."
    )
    launcher: AbsolutePath = setting(
        "/opt/data-scientist-portal/libexec/portal/slurm-launcher",
        "The only program that sudo lets the hub run as a user.",
    )
    sudo: AbsolutePath = setting(SlurmDefaults.sudo, "The sudo program.")
    operator: UnixName = setting(
        "",
        "The account as which the launcher raises the time limits of running sessions, ends "
        "sessions of deleted accounts, and sees jobs where Slurm's PrivateData hides them: "
        "Slurm's SlurmUser, or an operator in Slurm's accounting. Empty: sessions cannot be "
        "extended.",
    )
    offer_accounts: bool = setting(
        SlurmDefaults.offer_accounts,
        "Whether the form lets users choose from their accounts and QOS in Slurm's accounting, if "
        "there are several and `limits` sets none.",
    )
    sbatch_options: Texts = setting(
        (),
        "Options for every session's job, such as `--nice=100`; only those on nodes, priority and "
        "mail are allowed. A node feature that a user chooses replaces `--constraint`.",
    )
    query_interval_seconds: float = setting(
        SlurmDefaults.query_interval_seconds,
        "The time between two calls of squeue, for all sessions together, while one starts; a "
        "tenth of it for a session that is already listening.",
        unit="seconds",
        ge=0.1,
        le=60,
    )
    quiet_interval_seconds: float = setting(
        SlurmDefaults.quiet_interval_seconds,
        "The time between two calls of squeue while no session starts or ends.",
        unit="seconds",
        ge=1,
        le=15,
    )
    cluster_interval_seconds: float = setting(
        SlurmDefaults.cluster_interval_seconds,
        "The time between two queries for the nodes' free resources, for all open forms together.",
        unit="seconds",
        ge=1,
        le=600,
    )
    reconcile_interval_seconds: float = setting(
        SlurmDefaults.reconcile_interval_seconds,
        "The time between two searches for jobs of this hub that belong to no server.",
        unit="seconds",
        ge=1,
        le=86400,
    )
    launches_at_once: int = setting(
        SlurmDefaults.launches_at_once,
        "How many starts and stops may be passed to Slurm at the same time; others wait a little.",
        ge=1,
        le=100,
    )
    command_timeout_seconds: float = setting(
        SlurmDefaults.command_timeout_seconds,
        "How long a Slurm command may take to answer.",
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
