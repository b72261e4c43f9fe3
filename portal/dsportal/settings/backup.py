"""Settings of backups: what they hold besides the hub's own state, and where nightly ones go."""

from dsportal.settings.table import Table, setting
from dsportal.values import AbsolutePath, OptionalPath, Paths


class BackupSettings(Table):
    """What `portal backup` takes besides `hub.state_dir` and the hub's database, and where to."""

    folder: AbsolutePath = setting(
        "/var/backups/data-scientist-portal",
        "Where `portal backup --nightly` puts its files; best on another disk.",
    )
    keep: int = setting(
        14, "How many of those are kept; the oldest go.", unit="files", ge=1, le=1000
    )
    files: Paths = setting(
        (), "More files and folders: the settings' folder, Slurm's settings, munge's key."
    )
    slurm_state_dir: OptionalPath = setting(
        "", "The folder of slurmctld's state (`StateSaveLocation`); empty where it is elsewhere."
    )
    accounting_socket: OptionalPath = setting(
        "", "The socket of slurmdbd's MariaDB; empty where there is none on this machine."
    )
    accounting_database: str = setting(
        "slurm_accounting", "The name of slurmdbd's database.", pattern=r"^[A-Za-z0-9_]+$"
    )
