"""The manifest of a backup, the first file of its archive: what is in it."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

NAME = "manifest.json"
FORMAT = 1


class BackupError(Exception):
    """A backup cannot be made or put back; the message says why, and what to do."""


class Kind(StrEnum):
    """Type of a part, which says how it is saved and restored."""

    FILES = "files"
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    MARIADB = "mariadb"


@dataclass(frozen=True)
class BackupEntry:
    """A file of the archive, and the path or database that it is restored to."""

    kind: Kind
    place: str
    member: str
    sha256: str
    owner: str = ""
    group: str = ""
    mode: int = 0


@dataclass(frozen=True)
class Manifest:
    """All parts, who made them when (UTC, ISO 8601), and the text of portal.toml then."""

    format: int
    portal: str
    host: str
    made: str
    settings: str
    parts: tuple[BackupEntry, ...]


_ADAPTER = TypeAdapter(Manifest)


def to_json(manifest: Manifest) -> bytes:
    """Write it down."""
    return _ADAPTER.dump_json(manifest, indent=2)


def from_json(text: bytes) -> Manifest:
    """Read it; raise BackupError for what is none, or a later release's."""
    try:
        manifest = _ADAPTER.validate_json(text)
    except ValidationError as error:
        raise BackupError("the manifest cannot be read: this is no backup of the portal") from error
    if manifest.format != FORMAT:
        raise BackupError(f"the backup has format {manifest.format}; this release reads {FORMAT}")
    return manifest


def check_release(manifest: Manifest, installed: str) -> None:
    """Refuse what a later release has made: its database may have tables that this one lacks."""
    if _numbers(manifest.portal) > _numbers(installed):
        raise BackupError(
            f"the backup was made by release {manifest.portal}, and this is {installed}: "
            f"deploy {manifest.portal} first"
        )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())
