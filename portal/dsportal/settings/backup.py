"""Settings of backups: what they hold besides the hub's own state, and where nightly ones go."""

from dsportal.settings.table import Table, setting
from dsportal.values import AbsolutePath, OptionalPath, Paths


class BackupSettings(Table):
    """Backups: their folder, and what they hold besides `hub.state_dir` and the hub's database."""

    folder: AbsolutePath = setting(
        "/var/backups/data-scientist-portal",
        "The folder for the backups of `portal backup --nightly`; best on another disk.",
    )
    keep: int = setting(
        14,
        "How many nightly backups are kept; the oldest are deleted.",
        unit="files",
        ge=1,
        le=1000,
    )
    files: Paths = setting(
        (),
        "Additional files and folders to back up, such as the folder of the settings, Slurm's "
        "configuration and munge's key.",
    )
    slurm_state_dir: OptionalPath = setting(
        "",
        "The folder of slurmctld's state (`StateSaveLocation`); empty if it is on another machine.",
    )
    accounting_socket: OptionalPath = setting(
        "", "The socket of slurmdbd's MariaDB; empty if it does not run on this machine."
    )
    accounting_database: str = setting(
        "slurm_accounting", "The name of slurmdbd's database.", pattern=r"^[A-Za-z0-9_]+$"
    )
