"""``portal backup`` and ``portal restore``, for root on the head node."""

import os
import signal
import socket
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dsportal.backup import archive, databases, manifest, owners, plan, saving, services, trees
from dsportal.backup.manifest import BackupEntry, BackupError, Kind, Manifest
from dsportal.hub.database import libpq_url
from dsportal.settings.whole import Settings
from dsportal.settings_file import SettingsError, file_of, load

_NIGHTLY = "portal-{}.tar.gz"
_ANY_NIGHT = _NIGHTLY.format("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T" + "[0-9]" * 6 + "Z")


def add_options(backup: ArgumentParser, restore: ArgumentParser) -> None:
    """Describe both commands."""
    target = backup.add_mutually_exclusive_group(required=True)
    target.add_argument("file", type=Path, nargs="?", help="the file to make, as /root/x.tar.gz")
    target.add_argument(
        "--nightly", action="store_true", help="a file in backup.folder; the oldest ones go"
    )
    restore.add_argument("file", type=Path, help="the file that `portal backup` made")
    restore.add_argument(
        "--replace", action="store_true", help="put what is there now aside, and databases away"
    )
    file = file_of(os.environ)
    for parser in (backup, restore):
        parser.add_argument("--settings", type=Path, default=file, help="default: %(default)s")


def run(options: Namespace) -> int:
    """Do what is asked; say in one line why not."""
    _end_tidily()
    try:
        if os.geteuid() != 0:
            raise BackupError("run this as root: it reads what only its owners may")
        if options.command == "restore":
            restore(options.file.absolute(), options.settings, replace=options.replace)
        elif options.nightly:
            nightly(options.settings)
        else:
            make(options.file.absolute(), options.settings)
    except (BackupError, SettingsError, OSError) as error:
        sys.stderr.write(f"portal {options.command}: {error}\n")
        return 1
    return 0


def _end_tidily() -> None:
    """Let who is told to end remove its folder of copies first: secrets, and a whole database."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # With nohup it is ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda told, _: sys.exit(128 + told))


def make(file: Path, settings_file: Path) -> None:
    """Take everything, then read it back."""
    settings = load(settings_file)
    if file.exists():
        raise BackupError(f"{file} is there already: name another file")
    if services.SLURMCTLD in services.running(settings):
        _have_jobs_written(settings)
    with archive.staging(file.parent) as folder:
        found = enumerate(plan.sources(settings, settings_file))
        parts = tuple(_take(source, number, folder, settings) for number, source in found)
        made = datetime.now(UTC).isoformat(timespec="seconds")
        text = settings_file.read_text(encoding="utf-8")
        content = Manifest(manifest.FORMAT, _release(), socket.gethostname(), made, text, parts)
        (folder / manifest.NAME).write_bytes(manifest.to_json(content))
        archive.write(content, folder, file)
    with archive.staging(file.parent) as folder:
        archive.read(file, folder)
    _say(f"{file}: {len(parts)} parts, {file.stat().st_size / 1e6:.1f} MB, read back")


def nightly(settings_file: Path) -> None:
    """Make a backup with the time in its name, and remove the oldest."""
    settings = load(settings_file)
    folder = Path(settings.backup.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    make(folder / _NIGHTLY.format(stamp), settings_file)
    for old in sorted(folder.glob(_ANY_NIGHT))[: -settings.backup.keep]:
        old.unlink()
        _say(f"{old}: removed, as there are {settings.backup.keep} newer ones")


def restore(file: Path, settings_file: Path, *, replace: bool) -> None:
    """Put everything back, after all checks; by this machine's settings, or those of the backup."""
    with archive.staging(file.parent) as folder:
        content = archive.read(file, folder)
        manifest.check_release(content, _release())
        if not settings_file.exists():
            settings_file = folder / "portal.toml"
            settings_file.write_text(content.settings, encoding="utf-8")
        settings = load(settings_file)
        if up := services.running(settings):
            raise BackupError(f"{' and '.join(up)} must not run meanwhile: stop the services first")
        if not replace and (there := [one for one in content.parts if _is_there(one)]):
            raise BackupError(
                f"{there[0].place} is there already. --replace puts what is there aside; "
                "databases are replaced"
            )
        for part in content.parts:
            _check(part, folder / part.member, settings)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for part in content.parts:
            _put(part, folder / part.member, settings, stamp)
            _say(f"{part.place}: as of {content.made} ({content.host})")


def _have_jobs_written(settings: Settings) -> None:
    if not saving.written(Path(settings.backup.slurm_state_dir), settings.slurm):
        sys.stderr.write(
            "portal backup: slurmctld has not written its jobs; what began in the last five "
            "minutes may be missing in the backup\n"
        )


def _take(source: plan.Source, number: int, folder: Path, settings: Settings) -> BackupEntry:
    place, member = Path(source.place), f"{number:03d}.{source.kind}"
    part = BackupEntry(source.kind, source.place, member, "")
    to = folder / member
    match source.kind:
        case Kind.FILES:
            trees.pack(place, to, source.without)
        case Kind.SQLITE:
            databases.copy_sqlite(place, to)
            mode = place.stat().st_mode & 0o7777
            part = replace(part, owner=place.owner(), group=place.group(), mode=mode)
        case Kind.POSTGRESQL:
            databases.dump_postgresql(_postgresql(settings), _hub_user(settings), to)
        case Kind.MARIADB:
            databases.dump_mariadb(settings.backup.accounting_socket, source.place, to)
    return replace(part, sha256=archive.digest(to))


def _put(part: BackupEntry, content: Path, settings: Settings, stamp: str) -> None:
    place = Path(part.place)
    match part.kind:
        case Kind.FILES:
            trees.unpack(content, place, place.with_name(f"{place.name}.replaced-{stamp}"))
        case Kind.SQLITE:
            databases.put_sqlite(content, part)
        case Kind.POSTGRESQL:
            databases.put_postgresql(_postgresql(settings), _hub_user(settings), content)
        case Kind.MARIADB:
            databases.put_mariadb(settings.backup.accounting_socket, content)


def _check(part: BackupEntry, content: Path, settings: Settings) -> None:
    """Look whether a part can be put back, and change nothing."""
    match part.kind:
        case Kind.FILES:
            trees.check(content, Path(part.place))
        case Kind.SQLITE:
            owners.check(part.owner, part.group)
        case Kind.POSTGRESQL:
            _postgresql(settings)
            databases.check_program("pg_restore")
        case Kind.MARIADB:
            databases.check_program("mariadb")


def _is_there(part: BackupEntry) -> bool:
    """Say whether something would be lost; whose a database is, cannot be seen."""
    place = Path(part.place)
    if part.kind in (Kind.POSTGRESQL, Kind.MARIADB):
        return True
    return place.is_file() or (place.is_dir() and any(place.iterdir()))


def _postgresql(settings: Settings) -> str:
    if not settings.hub.database_url:
        raise BackupError("the backup holds a PostgreSQL: set hub.database_url to an empty one")
    return libpq_url(settings.hub.database_url, settings.hub.database_password_file)


def _hub_user(settings: Settings) -> str:
    return Path(settings.hub.state_dir).owner()


def _release() -> str:
    return version("data-scientist-portal")


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()
