"""The base of an environment: loaded modules, and the Python that they bring."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsportal.session.modules import ModulesError, ModuleSystem
from dsportal.session.own_environments import words
from dsportal.session.own_environments.records import OwnEnvironmentError

_SYSTEM = "/usr/bin/python3"
_SECONDS = 120.0
# Asked of the module's interpreter. What it finds for itself, a venv on it does not find.
_QUESTION = """\
import json, site, sys
from importlib.metadata import distributions
versions = {}
for one in distributions():
    # Of what pip was replacing when it was interrupted there may be an empty folder, or one ~NAME.
    is_left = getattr(getattr(one, "_path", None), "name", "").startswith("~")
    name = (one.metadata or {}).get("Name")
    if name and not is_left:
        versions.setdefault(name, one.version)
print(json.dumps({
    "is_own": sys.prefix not in ("/usr", "/usr/local"),
    "version": "%d.%d.%d" % sys.version_info[:3],
    "folders": site.getsitepackages(),
    "versions": versions,
}))
"""


@dataclass(frozen=True)
class Base:
    """The Python and modules that an environment is built on."""

    python: str
    """The interpreter that makes it."""
    version: str
    modules: tuple[str, ...] = ()
    """With their versions, as the module system has resolved the names."""
    folder: str = ""
    """With its packages; empty for an interpreter without any of its own."""
    versions: Mapping[str, str] | None = None
    """Its packages and their versions."""

    @property
    def constraints(self) -> str:
        """Write what pip may not change, as a file of constraints."""
        pairs = sorted((self.versions or {}).items(), key=lambda pair: pair[0].lower())
        return "".join(f"{name}=={version}\n" for name, version in pairs)

    def has(self, package: str) -> bool:
        """Say whether it brings a package."""
        return package in (self.versions or {})


def modules_init(environment: Mapping[str, str]) -> str | None:
    """Find the file that defines ``module``: as the session says, or the module system itself."""
    told = environment.get("BASH_ENV", "")
    home = environment.get("MODULESHOME", "")
    for file in (told, f"{home}/init/bash" if home else ""):
        if file and os.path.isfile(file):
            return file
    return None


def find(modules: Sequence[str], environment: Mapping[str, str]) -> Base:
    """Load the modules and ask their Python what it is; raises `OwnEnvironmentError`."""
    if not modules:
        return _asked(_SYSTEM, (), environment)
    init = modules_init(environment)
    if init is None:
        raise OwnEnvironmentError(words.NO_MODULES.format(base=", ".join(modules)))
    loaded = _loaded(init, modules, environment)
    before = environment.get("LOADEDMODULES", "").split(":")
    resolved = tuple(
        full
        for full in loaded.get("LOADEDMODULES", "").split(":")
        if full and (full not in before or _is_one_of(full, modules))
    )
    python = shutil.which("python", path=loaded.get("PATH")) or shutil.which(
        "python3", path=loaded.get("PATH")
    )
    if python is None:
        raise OwnEnvironmentError(words.NO_PYTHON.format(base=", ".join(modules), said=""))
    return _asked(python, resolved or tuple(modules), loaded)


def version_of(python: Path, maker: str, environment: Mapping[str, str]) -> str:
    """Ask an interpreter that something has made; raises `OwnEnvironmentError`."""
    return _asked(str(python), (maker,), environment).version


def is_module(name: str, environment: Mapping[str, str]) -> bool:
    """Say whether the site has a module of this name."""
    init = modules_init(environment)
    if init is None:
        return False
    try:
        _loaded(init, [name], environment)
    except OwnEnvironmentError:
        return False
    return True


def _is_one_of(full: str, modules: Sequence[str]) -> bool:
    return any(full == name or full.startswith(f"{name}/") for name in modules)


def _loaded(init: str, modules: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    try:
        return asyncio.run(ModuleSystem(init).loaded(modules, environment))
    except ModulesError as error:
        raise OwnEnvironmentError(str(error)) from error


def _asked(python: str, modules: tuple[str, ...], environment: Mapping[str, str]) -> Base:
    names = ", ".join(modules) or words.PLAIN_PYTHON
    try:
        done = subprocess.run(
            [python, "-I", "-c", _QUESTION],
            capture_output=True,
            text=True,
            env=dict(environment),
            timeout=_SECONDS,
            check=True,
        )
        told = json.loads(done.stdout)
        is_own, folders, versions = told["is_own"], told["folders"], told["versions"]
        version = str(told["version"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise OwnEnvironmentError(words.NO_PYTHON.format(base=names, said=error)) from error
    if not is_own:
        return Base(python, version, modules)
    return Base(python, version, modules, str(folders[0]), versions)
