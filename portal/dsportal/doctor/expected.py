"""Expectations of this host by the deployment: ``doctor.d/*.json``, a file for each role.

A file holds some of the keys of `Expected`. Lists of several files are joined; anything else may be
in one file only.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


class ExpectedError(Exception):
    """The expectations cannot be read; the message says which file, and why."""


@dataclass(frozen=True)
class Services:
    """The service manager of this host: systemd or supervisor."""

    systemd_units: str = ""
    """A pattern, such as ``portal-*.service``."""
    supervisorctl: tuple[str, ...] = ()
    """How supervisor is asked, without a verb."""


@dataclass(frozen=True)
class ExpectedDirectory:
    """The LDAP servers, as the hub asks them."""

    servers: tuple[str, ...]
    start_tls: bool = False
    ca_file: str = ""
    bind_dn: str = ""
    bind_password_file: str = ""


@dataclass(frozen=True)
class ExpectedSlurm:
    """The cluster, and which of its nodes are on this host."""

    conf: str
    munge_socket: str = ""
    """Empty: munge is not asked."""
    nodes: tuple[str, ...] = ()
    bin_dir: str = "/usr/bin"


@dataclass(frozen=True)
class Mount:
    """A file system that must be mounted; ``type`` ``nfs`` stands for NFS of any version."""

    path: str
    type: str = ""
    source: str = ""
    options: str = ""


@dataclass(frozen=True)
class Modules:
    """The module system, and the modules of the frameworks."""

    init: str
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExpectedKernel:
    """A kernel for everybody, as in ``portal.toml``."""

    name: str
    interpreter: str = "python"
    language: str = "python"
    modules: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ExpectedImage:
    """An image of containers for everybody, as in ``portal.toml``."""

    name: str
    path: str
    apptainer: str


@dataclass(frozen=True)
class ExpectedCertificate:
    """Certificates in files: ``file`` may have ``*`` in it."""

    what: str
    file: str


@dataclass(frozen=True)
class PrivateFile:
    """A file that nobody but its owner may read."""

    path: str
    owner: str


@dataclass(frozen=True)
class ExpectedHub:
    """Addresses of the hub, and its files."""

    public_url: str
    subdomain_host: str = ""
    """The address below which each user has a host name, as in ``portal.toml``."""
    is_encrypted: bool = False
    """Whether browsers speak HTTPS, with the portal or with a proxy of the site before it."""
    proxy_api_url: str = ""
    metrics_token_file: str = ""
    settings_file: str = ""
    python: str = ""


@dataclass(frozen=True)
class Sudo:
    """The hub's rule for sudo."""

    file: str
    user: str
    launcher: str


@dataclass(frozen=True)
class ExpectedClock:
    """Time synchronisation of this host, and the hub whose clock it must agree with."""

    synchronised: bool = True
    hub_url: str = ""


@dataclass(frozen=True)
class ExpectedBackup:
    """Files that must be made anew now and then: ``file`` may have ``*`` in it."""

    what: str
    file: str
    hours: float


@dataclass(frozen=True)
class Expected:
    """All expectations of this host."""

    services: Services | None = None
    directory: ExpectedDirectory | None = None
    groups: tuple[str, ...] = ()
    slurm: ExpectedSlurm | None = None
    mounts: tuple[Mount, ...] = ()
    modules: Modules | None = None
    kernels: tuple[ExpectedKernel, ...] = ()
    images: tuple[ExpectedImage, ...] = ()
    certificates: tuple[ExpectedCertificate, ...] = ()
    clock: ExpectedClock | None = None
    hosts: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()
    private_files: tuple[PrivateFile, ...] = ()
    backups: tuple[ExpectedBackup, ...] = ()
    hub: ExpectedHub | None = None
    sudo: Sudo | None = None


def load(folder: Path) -> Expected:
    """Read all files of the folder; raise ExpectedError where one cannot be used."""
    joined: dict[str, Any] = {}
    files = sorted(folder.glob("*.json"))
    if not files:
        raise ExpectedError(f"{folder} has no *.json: deploy this host, or name its folder")
    for file in files:
        for key, value in _read(file).items():
            if key in joined and not isinstance(value, list):
                raise ExpectedError(f"{file}: {key} is in another file of this folder too")
            joined[key] = joined[key] + value if key in joined else value
    return made(Expected, joined, str(folder))


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExpectedError(f"{file}: {error}") from error
    if not isinstance(content, dict):
        raise ExpectedError(f"{file}: is no JSON object")
    return content


def made(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Make a record of JSON; raise ExpectedError with the key that does not belong there."""
    hints = get_type_hints(kind)
    if unknown := sorted(set(given) - set(hints)):
        raise ExpectedError(f"{where}: {', '.join(unknown)}: no such key of {kind.__name__}")
    values = {key: _value(hints[key], value, f"{where}: {key}") for key, value in given.items()}
    try:
        return kind(**values)
    except TypeError as error:
        needed = ", ".join(field.name for field in fields(kind))  # type: ignore[arg-type]
        raise ExpectedError(f"{where}: {error}; {kind.__name__} has {needed}") from error


def _value(hint: Any, value: Any, where: str) -> Any:
    kinds = [kind for kind in (*get_args(hint), hint) if is_dataclass(kind)]
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ExpectedError(f"{where}: must be a list")
        return tuple(made(kinds[0], one, where) if kinds else one for one in value)  # type: ignore[arg-type]
    if kinds and isinstance(value, Mapping):
        return made(kinds[0], value, where)  # type: ignore[arg-type]
    return value
