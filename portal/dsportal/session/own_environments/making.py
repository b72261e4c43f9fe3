"""Making an environment, and removing one: it is there wholly, or not at all."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dsportal.session.own_environments import base as bases
from dsportal.session.own_environments import conda, modulefile, words
from dsportal.session.own_environments.base import Base
from dsportal.session.own_environments.folders import EnvironmentFolders
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    EnvironmentRecord,
    OwnEnvironmentError,
    checked_modules,
    checked_name,
    checked_packages,
    write_whole,
)
from dsportal.session.own_environments.sizes import size_of, size_words

_KERNEL = "ipykernel"
_VENV_SECONDS = 300.0
_PIP_SECONDS = 6 * 3600.0
# pip's: -I keeps the user's own folders from it.
_PIP = ("-I", "-m", "pip")


@dataclass(frozen=True)
class Order:
    """Request for a new environment."""

    name: str
    on: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    """Files that list packages."""
    folder: str = ""
    """The name of that in which it is to lie; empty for the first."""
    conda: bool = False
    """Whether conda is to make it, and not pip."""

    def checked(self) -> "Order":
        """Return it; raises `OwnEnvironmentError`."""
        checked_name(self.name)
        checked_modules(self.on)
        checked_packages([*self.packages, *self.requirements])
        if self.conda and self.on:
            raise OwnEnvironmentError(words.CONDA_ALONE)
        return self


@dataclass(frozen=True)
class Maker:
    """Makes and removes environments."""

    folders: EnvironmentFolders
    environment: Mapping[str, str]
    """What programs are run with."""
    say: Callable[[str], None]

    def create(self, order: Order) -> EnvironmentRecord:
        """Make one; raises `OwnEnvironmentError`, and leaves nothing then."""
        order.checked()
        folder = self.folders.named(order.folder)
        with self.folders.first.locked(order.name):
            folder.make()
            self._clear(order.name, folder)
            with self._wholly(order.name, folder):
                return self._made(order, folder)

    def remove(self, name: str) -> None:
        """Remove one; raises `OwnEnvironmentError`."""
        with self.folders.first.locked(name):
            self._delete(name, self.folders.find(name).folder)
        self.say(words.REMOVED.format(name=name))

    def _clear(self, name: str, folder: EnvironmentFolder) -> None:
        """Make room: what was not finished is removed, all else is the user's."""
        for one in self.folders.environments():
            if one.name != name:
                continue
            if one.record is not None:
                raise OwnEnvironmentError(words.EXISTS.format(name=name, folder=one.folder.name))
            self._delete(name, one.folder)
            self.say(words.REMOVED_HALF.format(name=name))
        if os.path.lexists(folder.place(name)):
            raise OwnEnvironmentError(words.EXISTS.format(name=name, folder=folder.name))

    @contextmanager
    def _wholly(self, name: str, folder: EnvironmentFolder) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt as error:
            self._delete(name, folder)
            raise OwnEnvironmentError(words.STOPPED.format(name=name)) from error
        except OSError as error:
            self._delete(name, folder)
            reason, path = error.strerror or str(error), error.filename or folder.place(name)
            text = words.NOT_WRITTEN.format(path=path, reason=reason, name=name)
            raise OwnEnvironmentError(text) from error
        except BaseException:
            self._delete(name, folder)
            raise

    def _made(self, order: Order, folder: EnvironmentFolder) -> EnvironmentRecord:
        place = folder.place(order.name)
        if bases.is_module(order.name, self.environment):
            raise OwnEnvironmentError(words.IS_A_MODULE.format(name=order.name))
        record = (self._by_conda if order.conda else self._by_pip)(order, folder)
        modulefiles = self.folders.first.modulefiles
        modulefiles.mkdir(exist_ok=True)
        write_whole(modulefiles / order.name, modulefile.text(record, place))
        folder.write(record)
        has_modules = bases.modules_init(self.environment) is not None
        by_hand = f"export PATH={record.prefix(place)}/bin:$PATH"
        activate = f"module load {order.name}" if has_modules else by_hand
        size = size_words(size_of(place))
        name, title = order.name, record.title
        self.say(words.MADE.format(name=name, size=size, title=title, activate=activate))
        return record

    def _by_conda(self, order: Order, folder: EnvironmentFolder) -> EnvironmentRecord:
        program = conda.program(self.environment)
        record = EnvironmentRecord(order.name, packages=order.packages, conda=True)
        place = folder.place(order.name)
        self.say(words.MAKING.format(name=order.name, place=place))
        folder.begin(order.name)
        prefix, packages = record.prefix(place), (*order.packages, _KERNEL)
        try:
            argv = conda.create_argv(program, prefix, packages, order.requirements)
            self._run(argv, _PIP_SECONDS)
        except subprocess.CalledProcessError as error:
            named = ", ".join([*packages, *order.requirements])
            text = words.CONDA_FAILED.format(program=program, packages=named)
            raise OwnEnvironmentError(text) from error
        version = bases.version_of(prefix / "bin/python", words.CONDA, self.environment)
        return replace(record, python=version)

    def _by_pip(self, order: Order, folder: EnvironmentFolder) -> EnvironmentRecord:
        place = folder.place(order.name)
        base = bases.find(order.on, self.environment)
        record = EnvironmentRecord(
            order.name, base.modules, base.folder, order.packages, base.version
        )
        told = words.MAKING_ON if base.modules else words.MAKING
        self.say(told.format(name=order.name, base=record.on_words, place=place))
        folder.begin(order.name)
        self._venv(base, place)
        self._put_on(base, place)
        needed = () if base.has(_KERNEL) else (_KERNEL,)
        self._install(order, needed, record, place)
        if needed:
            self.say(words.MADE_WITH_KERNEL)
        return record

    def _venv(self, base: Base, place: Path) -> None:
        try:
            self._run([base.python, "-I", "-m", "venv", str(place)], _VENV_SECONDS, quiet=True)
        except subprocess.CalledProcessError as error:
            said = " ".join((error.stdout or b"").decode(errors="replace").split())[-300:]
            raise OwnEnvironmentError(words.NO_VENV.format(said=said)) from error

    def _put_on(self, base: Base, place: Path) -> None:
        # The user's own configuration of pip may have `user = true`, which no venv takes.
        configuration = "[install]\nuser = false\n"
        if base.folder:
            configuration += f"constraint = {self._add_base(base, place).as_uri()}\n"
        (place / "pip.conf").write_text(configuration, encoding="utf-8")

    def _add_base(self, base: Base, place: Path) -> Path:
        """Add the base's packages; return the file of what pip may not change."""
        (packages,) = place.glob("lib/python3*/site-packages")
        # addsitedir puts it behind the environment's own, and reads the .pth files in it.
        line = f"import site; site.addsitedir({base.folder!r})\n"
        (packages / "_portal_base.pth").write_text(line, encoding="utf-8")
        constraints = place / "base-constraints.txt"
        constraints.write_text(base.constraints, encoding="utf-8")
        return constraints

    def _install(
        self, order: Order, needed: tuple[str, ...], record: EnvironmentRecord, place: Path
    ) -> None:
        wanted = [*order.packages, *needed]
        files = [f"--requirement={file}" for file in order.requirements]
        if not wanted and not files:
            return
        named = ", ".join([*wanted, *order.requirements])
        self.say(words.INSTALLING.format(packages=named))
        options = ["--disable-pip-version-check", "--no-input", *files]
        argv = [f"{place}/bin/python", *_PIP, "install", *options, "--", *wanted]
        try:
            self._run(argv, _PIP_SECONDS)
        except subprocess.CalledProcessError as error:
            text = words.PIP_FAILED if record.base else words.PIP_FAILED_ALONE
            told = text.format(packages=named, base=record.on_words)
            raise OwnEnvironmentError(told) from error

    def _run(self, argv: Sequence[str], seconds: float, *, quiet: bool = False) -> None:
        clean = {
            name: text
            for name, text in self.environment.items()
            if not name.startswith("PYTHON") and name not in ("VIRTUAL_ENV", "PIP_USER")
        }
        try:
            subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if quiet else None,
                stderr=subprocess.STDOUT,
                env=clean | {"LC_ALL": "C.UTF-8"},
                timeout=seconds,
                check=True,
            )
        except subprocess.TimeoutExpired as error:
            raise subprocess.CalledProcessError(1, argv, error.stdout) from error

    def _delete(self, name: str, folder: EnvironmentFolder) -> None:
        place = folder.place(name)
        try:
            # So that what is left of it, should this be interrupted, is not taken for one.
            folder.forget(name)
            (self.folders.first.modulefiles / name).unlink(missing_ok=True)
            if os.path.lexists(place):
                shutil.rmtree(place)
        except OSError as error:
            reason, path = error.strerror or str(error), error.filename or place
            raise OwnEnvironmentError(words.NOT_REMOVED.format(path=path, reason=reason)) from error
