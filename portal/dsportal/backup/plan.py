"""The plan of a backup: what it takes, from the settings."""

from dataclasses import dataclass
from pathlib import Path

from dsportal.backup import sqlite_files
from dsportal.backup.manifest import Kind
from dsportal.settings.whole import Settings


@dataclass(frozen=True)
class Source:
    """A file, folder or database to back up."""

    kind: Kind
    place: str
    without: tuple[str, ...] = ()
    """Patterns of names in a folder that are taken in another way."""


def sources(settings: Settings, file: Path) -> list[Source]:
    """Say what belongs to this portal; files come first, as databases are put back into them."""
    state = Path(settings.hub.state_dir)
    wanted = [file, *map(Path, settings.backup.files)]
    if settings.backup.slurm_state_dir:
        wanted.append(Path(settings.backup.slurm_state_dir))
    plain = [Source(Kind.FILES, str(path)) for path in outermost(wanted) if path != state]
    hub = Source(Kind.FILES, str(state), sqlite_files.PATTERNS)
    databases = [Source(Kind.SQLITE, str(path)) for path in sqlite_files.below(state)]
    if settings.hub.database_url:
        databases.append(Source(Kind.POSTGRESQL, "the hub's PostgreSQL"))
    if settings.backup.accounting_socket:
        databases.append(Source(Kind.MARIADB, settings.backup.accounting_database))
    return [*plain, hub, *databases]


def outermost(paths: list[Path]) -> list[Path]:
    """Leave out what lies in another one."""
    return sorted({path for path in paths if not any(other in path.parents for other in paths)})
