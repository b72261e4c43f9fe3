"""Input of a session, read from stdin: one schema, which hub and session import.

The standard library only: a session reads it before anything else.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_CALLBACK = "PORTAL_PORT_CALLBACK_URL"
_REQUIRED = ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX", "JUPYTERHUB_USER", _CALLBACK)
_UMASK = re.compile(r"([0-7]{3,4})?", re.ASCII)
# What a list or an object holds, in words.
_MANY = {str: "texts", int: "whole numbers"}


class InputError(ValueError):
    """The input is not what a session understands; the message names the key."""


@dataclass(frozen=True)
class Kernel:
    """A kernel to offer."""

    display_name: str
    interpreter: str
    language: str
    """``python`` or ``R``."""
    modules: tuple[str, ...] = ()
    """What is loaded before it starts."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WebTool:
    """A web tool to offer."""

    title: str
    command: tuple[str, ...]
    """May hold ``{unix_socket}``, ``{port}`` and ``{base_url}``; so may ``environment``."""
    icon: str | None = None
    """An SVG file."""
    modules: tuple[str, ...] = ()
    """What is loaded before it starts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    listens: str = "unix_socket"
    """``unix_socket`` or ``port``."""
    port: int | None = None
    """The one that it always takes."""
    has_own_network: bool = False
    """Whether it runs in a network without anything else in it."""
    absolute_url: bool = False
    """Whether it expects the whole path of a request."""
    start_timeout_seconds: int = 60


@dataclass(frozen=True)
class KernelImage:
    """An image whose kernels are offered."""

    title: str
    path: str


@dataclass(frozen=True)
class Containers:
    """Images and the settings to run them."""

    apptainer: str | None = None
    """The program; ``None`` where there are no containers."""
    images: Mapping[str, KernelImage] = field(default_factory=dict)
    """The site's, by their names."""
    own_images: str | None = None
    """The folder of the home with the user's own; ``None`` where these are not allowed."""
    binds: tuple[str, ...] = ()
    """What images see besides the home and the session's folders."""


@dataclass(frozen=True)
class SessionImage:
    """The image in which the session is to run."""

    title: str
    path: str
    apptainer: str
    """The program."""
    binds: tuple[str, ...] = ()
    """What it sees besides ``folders`` and ``mounts``."""


@dataclass(frozen=True)
class Certificate:
    """TLS key and certificate of the session, and the authorities it trusts; each as PEM."""

    key: str = field(repr=False)
    certificate: str
    authorities: str


@dataclass(frozen=True)
class SessionInput:
    """Input of a session. The spawner adds ``environment``, ``certificate`` and ``image``."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """What JupyterHub gives to each server, and what the site adds."""
    certificate: Certificate | None = None
    """``None``: session, hub and proxy speak without TLS."""
    image: SessionImage | None = None
    """``None``: the session is ours."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Name of a link in the home -> the folder that it shows."""
    folder_notes: Mapping[str, str] = field(default_factory=dict)
    """Name of a link -> what the folder is for, in a sentence."""
    mounts: tuple[str, ...] = ()
    """What nodes have mounted from file servers."""
    templates: str = ""
    """Which of ``folders`` has the templates; empty for none."""
    jupyter_path: tuple[str, ...] = ()
    """Folders whose ``kernels/`` holds kernel specs."""
    tensorboard_python: str | None = None
    """Interpreter of the environment that holds TensorBoard."""
    tensorboards: int = 4
    """How many of them may run at once."""
    tensorboard_idle_minutes: int = 60
    """When one sleeps that nobody looks at; 0 for never."""
    warning_minutes: tuple[int, ...] = ()
    """How long before its end the session warns of it."""
    modules_init: str | None = None
    """The file that defines ``module`` in bash."""
    module_paths: tuple[str, ...] = ()
    """Folders with modulefiles."""
    environments_folders: Mapping[str, str] = field(default_factory=dict)
    """Where the user's own environments may lie, by name: ``~`` and ``{user}`` may be in it."""
    environments_conda: str | None = None
    """The program that makes environments with conda's packages; ``None`` for none."""
    mlflow_folder: str = ""
    """Where MLflow keeps the user's runs, in the same way. Empty: it is told nothing."""
    shares_folder: str = ""
    """Where what users share lies: ``{user}`` is in it. Empty for no sharing."""
    ssh: bool = False
    """Whether the user may come in with SSH."""
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    """Kernels by their names, besides Python 3."""
    tools: Mapping[str, WebTool] = field(default_factory=dict)
    """Web tools by their names."""
    containers: Containers = field(default_factory=Containers)
    """What runs in images."""
    look: Mapping[str, str] = field(default_factory=dict)
    """The portal's title, logo and colours, for the page."""
    follows_system_theme: bool = True
    """Whether JupyterLab is light or dark as the system is, until the user chooses."""
    cluster_url: str | None = None
    """Where the service of the cluster's view listens; ``None`` where there is none."""
    slurm_bin_dir: str | None = None
    """Where Slurm's programs are."""
    extensions: tuple[str, ...] = ()
    """Extensions of JupyterLab that are not ours, by our names for them."""
    umask: str = ""
    """Of what the user writes, octal; empty for that of a login on the node."""
    is_encrypted: bool = False
    """Whether browsers come over HTTPS: cookies are not for anything else then."""

    @property
    def callback_url(self) -> str:
        """Where the hub wants to hear of the port."""
        return self.environment[_CALLBACK]

    @property
    def variables(self) -> dict[str, str]:
        """Those of ``environment`` that kernels and terminals see."""
        return {name: text for name, text in self.environment.items() if name != _CALLBACK}


def parse(text: str) -> SessionInput:
    """Read what the hub wrote: one JSON object with the keys of `SessionInput`.

    Raises:
        InputError: anything else; it names the key.

    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InputError("not a JSON object")
    unknown = sorted(given.keys() - {each.name for each in fields(SessionInput)})
    if unknown:
        raise InputError(f"unknown key: {', '.join(unknown)}")
    if "environment" not in given:
        raise InputError("missing key: environment")
    told = SessionInput(**_members(SessionInput, "", given))
    missing = [name for name in _REQUIRED if not told.environment.get(name)]
    if missing:
        raise InputError(f"missing in environment: {', '.join(missing)}")
    if not _UMASK.fullmatch(told.umask):
        raise InputError("umask: not an octal number")
    return told


def to_json(value: object) -> Any:
    """Return what `parse` reads, as values that JSON knows."""
    if is_dataclass(value):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_json(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(one) for one in value]
    return value


def taken_from(kind: type[T], settings: object, **others: object) -> T:
    """Make one of these of an object that has attributes of the same names, but for the others."""
    names = {each.name for each in fields(kind)} - others.keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(settings, name) for name in names}, **others)


def _members(kind: type[Any], key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    prefix = f"{key}." if key else ""
    return {name: _value(f"{prefix}{name}", hints[name], value) for name, value in given.items()}


def _value(key: str, kind: Any, value: Any) -> Any:
    """Read a value of this type, as annotated in a schema above."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is UnionType:
        # Of one type, or ``None``; an empty text says no more than none.
        return None if value is None or value == "" else _value(key, of[0], value)
    if origin is tuple:
        if not isinstance(value, list) or not all(type(one) is of[0] for one in value):
            raise InputError(f"{key}: not a list of {_MANY[of[0]]}")
        return tuple(value)
    if origin is not None:
        return _by_name(key, of[1], value)
    if is_dataclass(kind):
        return _object(key, kind, value)
    # A bool is an int to Python.
    if type(value) is not kind:
        words = {str: "a text", int: "a whole number", bool: "true or false"}
        raise InputError(f"{key}: not {words[kind]}")
    return value


def _by_name(key: str, kind: Any, value: Any) -> dict[str, Any]:
    if kind is str:
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise InputError(f"{key}: not an object of texts")
        return value
    if not isinstance(value, dict):
        raise InputError(f"{key}: not an object")
    return {name: _value(f"{key}.{name}", kind, one) for name, one in value.items()}


def _object(key: str, kind: Any, value: Any) -> Any:
    known = {each.name: each for each in fields(kind)}
    required = {
        name
        for name, each in known.items()
        if each.default is MISSING and each.default_factory is MISSING
    }
    if not isinstance(value, dict) or not required <= value.keys() <= known.keys():
        raise InputError(f"{key}: not an object with {', '.join(sorted(known))}")
    return kind(**_members(kind, key, value))
