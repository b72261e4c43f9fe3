"""The archive of a backup: a compressed tar with the manifest first; for root's eyes only."""

import hashlib
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsportal.backup import manifest as manifests
from dsportal.backup.manifest import BackupError, Manifest

_BLOCK = 1 << 20


def digest(file: Path) -> str:
    """Return a file's SHA-256."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def staging(beside: Path) -> Iterator[Path]:
    """Give a folder on the same disk that only root can look into."""
    with tempfile.TemporaryDirectory(prefix=".portal-backup-", dir=beside) as folder:
        yield Path(folder)


def write(manifest: Manifest, folder: Path, file: Path) -> None:
    """Make the file from its parts at once, mode 0600; never in the place of another."""
    building = folder / "archive"
    with os.fdopen(os.open(building, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
        with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as tar:
            for name in (manifests.NAME, *(part.member for part in manifest.parts)):
                tar.add(folder / name, name)
        raw.flush()
        os.fsync(raw.fileno())
    try:
        os.link(building, file)
    except FileExistsError as error:
        raise BackupError(f"{file} is there already: name another file") from error


def read(file: Path, folder: Path) -> Manifest:
    """Unpack a backup's parts into a folder, all of them as they were written."""
    try:
        with tarfile.open(file, "r:gz") as tar:
            manifest = manifests.from_json(_content(tar, manifests.NAME))
            for part in manifest.parts:
                _extract(tar, part.member, folder)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise BackupError(f"{file} cannot be read: {error}") from error
    for part in manifest.parts:
        if digest(folder / part.member) != part.sha256:
            raise BackupError(f"{file} is damaged: {part.place} is not what was written")
    return manifest


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.next()
    if member is None or member.name != name or not member.isfile():
        raise BackupError("there is no manifest in it: this is no backup of the portal")
    content = tar.extractfile(member)
    return content.read() if content else b""


def _extract(tar: tarfile.TarFile, name: str, folder: Path) -> None:
    try:
        content = tar.extractfile(name)
    except KeyError as error:
        raise BackupError(f"the backup lacks {name}: it is damaged") from error
    if content is None or "/" in name:
        raise BackupError(f"{name} of the backup is no file")
    with content, (folder / name).open("xb") as to:
        while block := content.read(_BLOCK):
            to.write(block)
