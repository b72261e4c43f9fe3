"""Copies of databases while they are in use, and their restore."""

import grp
import os
import pwd
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from dsportal.backup import sqlite_files
from dsportal.backup.manifest import BackupEntry, BackupError

_TIME_LIMIT_SECONDS = 3600
_PATH = "/usr/bin:/bin"
_MISSING = "{} is not installed: it is in the package of the database or its client"


def copy_sqlite(file: Path, to: Path) -> None:
    """Copy an SQLite file as of one moment (sqlite.org/backup.html).

    Raises:
        BackupError: it is held by somebody else, or is no database.

    """
    try:
        with (
            closing(sqlite3.connect(file, timeout=30)) as source,
            closing(sqlite3.connect(to)) as copy,
        ):
            source.backup(copy)
            # One file, which needs no log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise BackupError(f"{file} cannot be copied: {error}") from error


def put_sqlite(copy: Path, part: BackupEntry) -> None:
    """Put an SQLite file back, with the owner that it had."""
    file = Path(part.place)
    for tail in sqlite_files.BESIDE:
        file.with_name(file.name + tail).unlink(missing_ok=True)
    building = file.with_name(f".{file.name}.restoring")
    # The folder is the hub's user's, and so is what comes back in it: a link of that name, say.
    building.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with copy.open("rb") as content, open(os.open(building, flags, 0o600), "wb") as to:
        shutil.copyfileobj(content, to)
        os.fchown(to.fileno(), pwd.getpwnam(part.owner).pw_uid, grp.getgrnam(part.group).gr_gid)
        os.fchmod(to.fileno(), part.mode)
    building.replace(file)


def dump_postgresql(url: str, user: str, to: Path) -> None:
    """Dump the hub's database as of one moment, as the hub's user."""
    argv = ["pg_dump", "--format=custom", "--no-password", f"--dbname={url}"]
    _run(argv, user=user, output=to)


def put_postgresql(url: str, user: str, dump: Path) -> None:
    """Put the hub's database back in one transaction: all of it, or nothing."""
    argv = ["pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction"]
    _run([*argv, "--no-password", f"--dbname={url}"], user=user, given=dump)


def dump_mariadb(socket: str, name: str, to: Path) -> None:
    """Dump slurmdbd's database as of one moment; root may, by the socket."""
    argv = ["mariadb-dump", "--no-defaults", f"--socket={socket}", "--user=root"]
    argv += ["--single-transaction", "--routines", "--add-drop-database", "--databases", name]
    _run(argv, output=to)


def put_mariadb(socket: str, dump: Path) -> None:
    """Put slurmdbd's database back."""
    _run(["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"], given=dump)


def check_program(name: str) -> None:
    """Look whether a database's program is here.

    Raises:
        BackupError: it is not.

    """
    if shutil.which(name, path=_PATH) is None:
        raise BackupError(_MISSING.format(name))


def _run(
    argv: Sequence[str],
    *,
    user: str = "root",
    output: Path | None = None,
    given: Path | None = None,
) -> None:
    """Run a database's own program, with files for its input and output."""
    who = pwd.getpwnam(user)
    try:
        with (
            (given or Path(os.devnull)).open("rb") as stdin,
            (output or Path(os.devnull)).open("wb") as stdout,
        ):
            done = subprocess.run(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                env={"LC_ALL": "C.UTF-8", "PATH": _PATH, "HOME": "/nonexistent"},
                cwd="/",
                user=who.pw_uid,
                group=who.pw_gid,
                extra_groups=[],
                timeout=_TIME_LIMIT_SECONDS,
                check=False,
            )
    except FileNotFoundError as error:
        raise BackupError(_MISSING.format(argv[0])) from error
    except subprocess.TimeoutExpired as error:
        raise BackupError(f"{argv[0]} did not end within {_TIME_LIMIT_SECONDS} s") from error
    if done.returncode != 0:
        raise BackupError(f"{argv[0]} failed: {done.stderr.strip()}")
