"""A whole session in an image: the jupyterhub-singleuser that is in it, in the place of our server.

What the portal adds to JupyterLab is not there. This process stays outside: it tells the hub the
port once the server in the image answers, and ends with it.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from portal.containers.run import exec_argv, exec_environment, has_nvidia_devices
from portal.containers.server import PROGRAM
from portal.session.callback import HubRefusedError, open_socket, report_port
from portal.session.environment import with_port
from portal.session.mounts import PATIENCE_SECONDS
from portal.session.orders import ImageOrder
from portal.session.threads import in_thread

log = logging.getLogger(__name__)

# What the program must be told: by the hub, and where this session's own folder is.
_TOLD = ("JUPYTERHUB_", "JUPYTER_RUNTIME_DIR")
_LOOK_SECONDS = 0.2


def serve(order: ImageOrder, home: Path, folders: Sequence[str], callback_url: str) -> int:
    """Run the image's server until it ends, or the job does; gives the exit code.

    ``folders``: what it is to see besides the home and `/tmp`; those that are missing are left out.
    """
    return asyncio.run(_serve(order, home, folders, callback_url))


async def _serve(order: ImageOrder, home: Path, folders: Sequence[str], callback_url: str) -> int:
    port = _free_port()
    argv = exec_argv(
        order.apptainer,
        order.path,
        [PROGRAM],
        home=str(home),
        binds=await _there(folders),
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
    try:
        await report_port(callback_url, os.environ["JUPYTERHUB_API_TOKEN"], port)
    except HubRefusedError as error:
        log.critical("The session ends: %s", error)
        server.terminate()
    return await server.wait()


def _free_port() -> int:
    # Free for a moment only: another may take it first. With TLS the hub would notice, as only this
    # session's certificate is believed, and the server in the image ends when it cannot listen.
    with open_socket() as listener:
        return int(listener.getsockname()[1])


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
