"""What the hub says to a session, on its standard input."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsportal.session.config.containers import ContainerOrders, container_orders
from dsportal.session.config.values import (
    OrdersError,
    number,
    numbers,
    objects,
    text_or_none,
    texts,
    texts_by_name,
    true_or_false,
)

_KEYS = {
    "certificate",
    "cluster_url",
    "containers",
    "environment",
    "folder_notes",
    "folders",
    "image",
    "is_encrypted",
    "jupyter_path",
    "kernels",
    "look",
    "module_paths",
    "modules_init",
    "mounts",
    "slurm_bin_dir",
    "templates",
    "tensorboard_idle_minutes",
    "tensorboard_python",
    "tensorboards",
    "tools",
    "umask",
    "warning_minutes",
}
_KERNEL_KEYS = {"display_name", "environment", "interpreter", "language", "modules"}
_TOOL_KEYS = {
    "absolute_url",
    "command",
    "environment",
    "icon",
    "listens",
    "modules",
    "own_network",
    "port",
    "start_timeout_seconds",
    "title",
}
_IMAGE_KEYS = {"apptainer", "binds", "path", "title"}
_CALLBACK = "PORTAL_PORT_CALLBACK_URL"
_REQUIRED = ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX", "JUPYTERHUB_USER", _CALLBACK)


@dataclass(frozen=True)
class KernelOrder:
    """A kernel to offer."""

    display_name: str
    interpreter: str
    language: str
    """``python`` or ``R``."""
    modules: tuple[str, ...] = ()
    """What is loaded before it starts."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolOrder:
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
    own_network: bool = False
    """Whether it runs in a network without anything else in it."""
    absolute_url: bool = False
    """Whether it expects the whole path of a request."""
    start_timeout_seconds: int = 60


@dataclass(frozen=True)
class ImageOrder:
    """The image in which the session is to run."""

    title: str
    path: str
    apptainer: str
    """The program."""
    binds: tuple[str, ...] = ()
    """What it sees besides ``folders`` and ``mounts``."""


@dataclass(frozen=True)
class Certificate:
    """How the session shows who it is, and who may connect to it; each as PEM."""

    key: str = field(repr=False)
    certificate: str
    authorities: str


@dataclass(frozen=True)
class Orders:
    """One session's orders: one JSON object on one line."""

    environment: Mapping[str, str]
    """What JupyterHub gives to each server, and what the site adds."""
    callback_url: str
    """Where the hub wants to hear of the port; comes as a variable of ``environment``."""
    certificate: Certificate | None = None
    """``None``: session, hub and proxy speak without TLS."""
    image: ImageOrder | None = None
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
    kernels: Mapping[str, KernelOrder] = field(default_factory=dict)
    """Kernels by their names, besides Python 3."""
    tools: Mapping[str, ToolOrder] = field(default_factory=dict)
    """Web tools by their names."""
    containers: ContainerOrders = field(default_factory=ContainerOrders)
    """What runs in images."""
    look: Mapping[str, str] = field(default_factory=dict)
    """The portal's title, logo and colours, for the page."""
    cluster_url: str | None = None
    """Where the service of the cluster's view listens; ``None`` where there is none."""
    slurm_bin_dir: str | None = None
    """Where Slurm's programs are."""
    umask: str = ""
    """Of what the user writes, octal; empty for that of a login on the node."""
    is_encrypted: bool = False
    """Whether browsers come over HTTPS: cookies are not for anything else then."""


def parse_orders(text: str) -> Orders:
    """Read what the hub wrote.

    Raises OrdersError for anything but an object with the keys of Orders;
    ``environment`` is required, the others are optional.
    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise OrdersError(f"not JSON: {error}") from error
    if not isinstance(given, dict):
        raise OrdersError("not a JSON object")
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise OrdersError(f"unknown key: {', '.join(unknown)}")
    if "environment" not in given:
        raise OrdersError("missing key: environment")
    environment = texts_by_name("environment", given["environment"])
    missing = [name for name in _REQUIRED if not environment.get(name)]
    if missing:
        raise OrdersError(f"missing in environment: {', '.join(missing)}")
    return Orders(
        environment={name: text for name, text in environment.items() if name != _CALLBACK},
        callback_url=environment[_CALLBACK],
        certificate=_certificate(given.get("certificate")),
        image=_image(given.get("image")),
        folders=texts_by_name("folders", given.get("folders", {})),
        folder_notes=texts_by_name("folder_notes", given.get("folder_notes", {})),
        mounts=texts("mounts", given.get("mounts", [])),
        templates=text_or_none("templates", given.get("templates")) or "",
        jupyter_path=texts("jupyter_path", given.get("jupyter_path", [])),
        tensorboard_python=text_or_none("tensorboard_python", given.get("tensorboard_python")),
        tensorboards=number("tensorboards", given.get("tensorboards", 4)),
        tensorboard_idle_minutes=number(
            "tensorboard_idle_minutes", given.get("tensorboard_idle_minutes", 60)
        ),
        warning_minutes=numbers("warning_minutes", given.get("warning_minutes", [])),
        modules_init=text_or_none("modules_init", given.get("modules_init")),
        module_paths=texts("module_paths", given.get("module_paths", [])),
        kernels={
            name: _kernel(f"kernels.{name}", kernel)
            for name, kernel in objects("kernels", given).items()
        },
        tools={
            name: _tool(f"tools.{name}", tool) for name, tool in objects("tools", given).items()
        },
        containers=container_orders("containers", given.get("containers", {})),
        look=texts_by_name("look", given.get("look", {})),
        cluster_url=text_or_none("cluster_url", given.get("cluster_url")),
        slurm_bin_dir=text_or_none("slurm_bin_dir", given.get("slurm_bin_dir")),
        umask=_umask(given.get("umask")),
        is_encrypted=true_or_false("is_encrypted", given.get("is_encrypted", False)),
    )


def _certificate(value: Any) -> Certificate | None:
    if value is None:
        return None
    pem = texts_by_name("certificate", value)
    if set(pem) != {"key", "certificate", "authorities"}:
        raise OrdersError("certificate: not an object with key, certificate, authorities")
    return Certificate(**pem)


def _umask(value: Any) -> str:
    text = text_or_none("umask", value) or ""
    if not re.fullmatch(r"([0-7]{3,4})?", text):
        raise OrdersError("umask: not an octal number")
    return text


def _image(value: Any) -> ImageOrder | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != _IMAGE_KEYS:
        raise OrdersError(f"image: not an object with {', '.join(sorted(_IMAGE_KEYS))}")
    words = {name: value[name] for name in ("title", "path", "apptainer")}
    binds = texts("image.binds", value["binds"])
    return ImageOrder(**texts_by_name("image", words), binds=binds)


def _kernel(key: str, value: Any) -> KernelOrder:
    if not isinstance(value, dict) or set(value) != _KERNEL_KEYS:
        raise OrdersError(f"{key}: not an object with {', '.join(sorted(_KERNEL_KEYS))}")
    words = {name: value[name] for name in ("display_name", "interpreter", "language")}
    return KernelOrder(
        **texts_by_name(key, words),
        modules=texts(f"{key}.modules", value["modules"]),
        environment=texts_by_name(f"{key}.environment", value["environment"]),
    )


def _tool(key: str, value: Any) -> ToolOrder:
    if not isinstance(value, dict) or set(value) != _TOOL_KEYS:
        raise OrdersError(f"{key}: not an object with {', '.join(sorted(_TOOL_KEYS))}")
    for name in ("own_network", "absolute_url"):
        true_or_false(f"{key}.{name}", value[name])
    words = texts_by_name(key, {name: value[name] for name in ("title", "listens")})
    port = value["port"]
    return ToolOrder(
        title=words["title"],
        command=texts(f"{key}.command", value["command"]),
        icon=text_or_none(f"{key}.icon", value["icon"]),
        modules=texts(f"{key}.modules", value["modules"]),
        environment=texts_by_name(f"{key}.environment", value["environment"]),
        listens=words["listens"],
        port=None if port is None else number(f"{key}.port", port),
        own_network=value["own_network"],
        absolute_url=value["absolute_url"],
        start_timeout_seconds=number(
            f"{key}.start_timeout_seconds", value["start_timeout_seconds"]
        ),
    )
