"""A whole session in an image: the jupyterhub-singleuser that is in it, in the place of our server.

What the portal adds to JupyterLab is not there. This process stays outside: it tells the hub the
port once the server in the image answers, and ends with it.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dsportal.containers.run import exec_argv, exec_environment, has_nvidia_devices
from dsportal.containers.server import PROGRAM
from dsportal.session.callback import HubRefusedError, report_port
from dsportal.session.environment import with_port
from dsportal.session.files.mounts import PATIENCE_SECONDS
from dsportal.session.kernels import configuration
from dsportal.session.threads import in_thread
from dsportal.session.tools.gate import owners_of_port
from dsportal.session_schema import SessionImage

log = logging.getLogger(__name__)

# What the program must be told: by the hub, and where this session's own folder is.
_TOLD = ("JUPYTERHUB_", "JUPYTER_RUNTIME_DIR")
_LOOK_SECONDS = 0.2
# As in our own server's settings: a TCP port of localhost is open to everybody on the node.
_KERNELS_WITHOUT_PORTS = ("--KernelManager.transport=ipc",)
# For every ipykernel in the image, whichever of its environments that is in: IPython's own place.
_READ_BY_IPYKERNEL = "/etc/ipython/ipython_kernel_config.py"


@dataclass(frozen=True)
class ImageContext:
    """Folders that the image's server sees besides ``/tmp``."""

    home: Path
    runtime_folder: Path
    """Only the user can enter it: sockets, connection files."""
    folders: Sequence[str]
    """Those that are missing are left out."""


def serve(order: SessionImage, place: ImageContext, callback_url: str) -> int:
    """Run the image's server until it ends, or the job does; gives the exit code."""
    with _held_port() as port:
        return asyncio.run(_serve(order, place, callback_url, port))


async def _serve(order: SessionImage, place: ImageContext, callback_url: str, port: int) -> int:
    argv = exec_argv(
        order.apptainer,
        order.path,
        [PROGRAM, *_KERNELS_WITHOUT_PORTS],
        home=str(place.home),
        binds=await _there([*place.folders, str(place.runtime_folder)]),
        shown_at={_READ_BY_IPYKERNEL: str(configuration.install(place.runtime_folder))},
        nv=has_nvidia_devices(),
    )
    server = await asyncio.create_subprocess_exec(
        *argv, env=exec_environment(os.environ, _variables(os.environ, port))
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.terminate)
    if not await _answers(server, port):
        log.critical(
            "The image %s ended before its server answered. It must hold %s.", order.title, PROGRAM
        )
        return server.returncode or 1
    if owners_of_port(port) != {os.getuid()}:
        # Looked at when somebody listens: nobody else can listen there from then on.
        log.critical("Another user listens on this session's port %d. Start it again.", port)
        server.terminate()
        await server.wait()
        return 1
    try:
        await report_port(callback_url, os.environ["JUPYTERHUB_API_TOKEN"], port)
    except HubRefusedError as error:
        log.critical("The session ends: %s", error)
        server.terminate()
    return await server.wait()


@contextmanager
def _held_port() -> Iterator[int]:
    """Hold a free port: for the image's server alone, in as far as that can be.

    The system gives a port that is held to nobody. The server in the image can listen on it, since
    both ask for SO_REUSEADDR (socket(7)), and so could another user who guesses it: that is looked
    at later. It listens at IPv4 addresses; at IPv6's nobody is to.
    """
    with ExitStack() as held:
        listened_on = held.enter_context(socket.socket())
        listened_on.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listened_on.bind(("", 0))
        port = int(listened_on.getsockname()[1])
        with suppress(OSError):  # no IPv6 there, or taken: then it is told by its owner
            closed = held.enter_context(socket.socket(socket.AF_INET6))
            closed.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            closed.bind(("", port))
        yield port


def _variables(environment: Mapping[str, str], port: int) -> dict[str, str]:
    told = {name: text for name, text in environment.items() if name.startswith(_TOLD)}
    url = environment.get("JUPYTERHUB_SERVICE_URL", "http://0.0.0.0")
    return told | {"JUPYTERHUB_SERVICE_URL": with_port(url, port)}


async def _there(folders: Sequence[str]) -> list[str]:
    """Leave out what is missing, and mounts that do not answer."""
    looks = [in_thread(partial(os.path.isdir, folder)) for folder in folders]
    if looks:
        await asyncio.wait(looks, timeout=PATIENCE_SECONDS)
    found = zip(folders, looks, strict=True)
    return [folder for folder, look in found if look.done() and look.result()]


async def _answers(server: asyncio.subprocess.Process, port: int) -> bool:
    """Wait until somebody listens; false when the server ends before."""
    while server.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            writer.close()
            return True
    return False
