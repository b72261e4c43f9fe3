"""A folder of a user's environments, and the metadata in each of them."""

import contextlib
import fcntl
import json
import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dsportal.session.own_environments import words

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}", re.ASCII)
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*", re.ASCII)
# What a path may hold that stands in a modulefile, in a .pth file and in pip's configuration.
_PATH = re.compile(r"/[A-Za-z0-9/._+@-]*", re.ASCII)
_LONGEST_PACKAGE = 300
_MARK = ".portal-environment"
_RECORD = "portal-environment.json"
_MODULEFILES = ".modulefiles"
_VERSION = 1
"""Of a record; one of before there were versions has this, too."""


class OwnEnvironmentError(Exception):
    """An environment cannot be made, shown or removed; the message is for the user."""


@dataclass(frozen=True)
class EnvironmentRecord:
    """Metadata of a finished environment, stored inside it."""

    name: str
    on: tuple[str, ...] = ()
    """The modules below it, with their versions; none: plain Python."""
    base: str = ""
    """The folder with the packages of what is below it; empty where there are none."""
    packages: tuple[str, ...] = ()
    """What was asked for when it was made."""
    python: str = ""
    """The version of Python."""
    conda: bool = False
    """Whether conda has made it, or a program like it."""
    version: int = _VERSION
    """Of this record. Of one that is newer than what is read here only this is known."""

    @property
    def on_words(self) -> str:
        """Name what is below it."""
        if self.conda:
            return words.CONDA
        return ", ".join(self.on) or words.PLAIN_PYTHON

    @property
    def title(self) -> str:
        """Name its kernel."""
        return f"{self.name} ({self.on_words})"

    @property
    def variable(self) -> str:
        """Name the variable that leads to its prefix while it is used."""
        return "CONDA_PREFIX" if self.conda else "VIRTUAL_ENV"

    def prefix(self, place: Path) -> Path:
        """Return where its ``bin/`` is. Micromamba makes none in a folder that is there already."""
        return place / "conda" if self.conda else place


@dataclass(frozen=True)
class OwnEnvironment:
    """An environment of the user's; one without a record was not finished."""

    name: str
    folder: "EnvironmentFolder"
    record: EnvironmentRecord | None
    seen: str | None = None
    """What `trouble` said in a thread, as files may be slow; ``None`` where it was not asked."""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder.path / self.name

    @property
    def trouble(self) -> str:
        """Say why it cannot be used; empty where it can."""
        if self.seen is not None:
            return self.seen
        if self.record is None:
            return words.UNFINISHED
        if self.record.version > _VERSION:
            return words.NEWER
        is_there = not self.record.base or os.path.isdir(self.record.base)
        python = self.record.prefix(self.path) / "bin/python"
        return "" if is_there and python.exists() else words.BASE_GONE


def checked_name(name: str) -> str:
    """Take an environment's name.

    >>> checked_name("my-nlp_2.0")
    'my-nlp_2.0'
    """
    if not _NAME.fullmatch(name):
        raise OwnEnvironmentError(words.NOT_A_NAME.format(name=name))
    return name


def checked_modules(names: Sequence[str]) -> tuple[str, ...]:
    """Take the names of modules."""
    for name in names:
        if not _MODULE.fullmatch(name) or ".." in name:
            raise OwnEnvironmentError(words.NOT_A_MODULE.format(name=name))
    return tuple(names)


def checked_packages(texts: Sequence[str]) -> tuple[str, ...]:
    """Take what pip is to install: no options, nothing that is not shown."""
    for text in texts:
        is_plain = text.strip() and not text.lstrip().startswith("-") and text.isprintable()
        if not is_plain or len(text) > _LONGEST_PACKAGE:
            raise OwnEnvironmentError(words.NOT_A_PACKAGE.format(text=text))
    return tuple(texts)


def folder_from(text: str, home: str, user: str) -> Path:
    """Return the folder that the setting, or the variable, means for a user.

    >>> str(folder_from("/mnt/isilon/{user}/environments", "/home/ann", "ann"))
    '/mnt/isilon/ann/environments'
    """
    path = text.replace("{user}", user)
    if path == "~" or path.startswith("~/"):
        path = f"{home}{path[1:]}"
    if not _PATH.fullmatch(path) or ".." in Path(path).parts:
        raise OwnEnvironmentError(words.NOT_A_FOLDER.format(folder=path))
    return Path(path)


@dataclass(frozen=True)
class EnvironmentFolder:
    """A folder of a user's environments."""

    path: Path
    name: str = "home"
    """What the site calls it."""

    @property
    def modulefiles(self) -> Path:
        """Where modulefiles are: a folder of MODULEPATH."""
        return self.path / _MODULEFILES

    @property
    def existing(self) -> Path:
        """Return it, or what there is of the way to it until the first environment is made."""
        return next(one for one in (self.path, *self.path.parents) if os.path.exists(one))

    @property
    def trouble(self) -> str:
        """Say why the user can have none there; empty where they can."""
        existing = self.existing
        if self._may_begin_in(existing) and os.access(existing, os.W_OK | os.X_OK):
            return ""
        return words.NOT_YOURS.format(folder=existing, name=self.name)

    def make(self) -> None:
        """Make the folder, unless it is there; raises `OwnEnvironmentError`."""
        if self.trouble:
            raise OwnEnvironmentError(self.trouble)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            text = words.NO_FOLDER.format(folder=self.path, reason=error.strerror or error)
            raise OwnEnvironmentError(text) from error

    def has_own_modulefiles(self) -> bool:
        """Say whether nobody else can put a modulefile here: it is a program of whoever wrote it.

        In a folder of root's for all, such as /scratch, somebody else could make the user's first:
        there it is made now.
        """
        try:
            if self.existing.stat().st_uid != os.geteuid():
                self.make()
                self.modulefiles.mkdir(exist_ok=True)
            made = [one for one in (self.path, self.modulefiles) if one.exists()]
            return not any(_is_anothers(one) for one in made)
        except (OSError, OwnEnvironmentError):
            return False

    def place(self, name: str) -> Path:
        """Return where one of this name is, or would be."""
        return self.path / checked_name(name)

    def all(self) -> list[OwnEnvironment]:
        """Find all, finished or not, by name; links are not followed."""
        try:
            # Whoever owns it decides what runs as a kernel.
            if _is_anothers(self.path):
                return []
            entries = sorted(os.scandir(self.path), key=lambda entry: entry.name.lower())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []
        return [
            OwnEnvironment(entry.name, self, self._record(entry.name))
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and self._is_ours(entry.name)
        ]

    def write(self, record: EnvironmentRecord) -> None:
        """Say that one is finished; what is written is there wholly or not at all."""
        write_whole(self.place(record.name) / _RECORD, json.dumps(asdict(record), indent=2) + "\n")

    def forget(self, name: str) -> None:
        """Say that one is not finished any more."""
        (self.place(name) / _RECORD).unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Keep others from making or removing one of this name; raises `OwnEnvironmentError`."""
        self.make()
        lock = self.path / f".{checked_name(name)}.lock"
        with contextlib.ExitStack() as held:
            try:
                fcntl.flock(held.enter_context(lock.open("a")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OwnEnvironmentError(words.IS_BUSY.format(name=name)) from error
            except OSError:
                # A file server without locks: two at once are the user's own doing. Or a quota that
                # is reached, which to remove one is the way out of.
                pass
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    def begin(self, name: str) -> None:
        """Make the folder of one, which is not finished yet."""
        place = self.place(name)
        place.mkdir()
        (place / _MARK).touch()

    def _may_begin_in(self, existing: Path) -> bool:
        """Say whether others can exchange nothing of what is made there."""
        owner, me = existing.stat().st_uid, os.geteuid()
        if owner == me or owner != 0:
            return owner == me
        # One of root's for all, such as /scratch: only a folder of the user's name is made in it.
        inside = self.path.relative_to(existing).parts
        return not inside or pwd.getpwuid(me).pw_name in inside[0]

    def _is_ours(self, name: str) -> bool:
        # A venv that somebody has put here is theirs.
        place = self.path / name
        try:
            is_made = bool(_NAME.fullmatch(name)) and (place / _MARK).is_file()
            return is_made and not _is_anothers(place)
        except FileNotFoundError:  # removed just now
            return False

    def _record(self, name: str) -> EnvironmentRecord | None:
        try:
            return _read(name, json.loads((self.path / name / _RECORD).read_bytes()))
        except (OSError, ValueError):
            return None


def _is_anothers(path: Path) -> bool:
    return path.stat().st_uid not in (0, os.geteuid())


def _read(name: str, given: object) -> EnvironmentRecord:
    """Read a record; what a user has put there is their word, and no more. Raises `ValueError`."""
    if not isinstance(given, Mapping):
        raise ValueError("not an object")
    version = given.get("version", _VERSION)
    if not isinstance(version, int):
        raise ValueError("version: not a whole number")
    if version > _VERSION:
        return EnvironmentRecord(name, version=version)
    found: dict[str, object] = {}
    for key in ("name", "on", "base", "packages", "python"):
        value = given.get(key)
        if key in ("on", "packages"):
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise ValueError(f"{key}: not a list of texts")
            found[key] = tuple(value)
        elif isinstance(value, str):
            found[key] = value
        else:
            raise ValueError(f"{key}: not a text")
    if not all(_MODULE.fullmatch(one) for one in given["on"]):
        raise ValueError("on: not names of modules")
    found["conda"] = given.get("conda", False) is True
    return EnvironmentRecord(**found | {"name": name})  # type: ignore[arg-type]


def write_whole(file: Path, text: str) -> None:
    """Write a file that others see wholly or not at all."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
