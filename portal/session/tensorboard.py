"""TensorBoard behind the session's login: a card in the launcher, a tab of its own.

jupyter-server-proxy supervises and proxies it. Of that package only the named server
is used; its routes to any port (``/proxy/PORT``) are never set up, because on a node
shared by several users a port of localhost is everybody's.
"""

from pathlib import Path
from typing import Any

NAME = "tensorboard"
ROUTES = (NAME + r"(?:/.*)?", r"server-proxy/.*")
"""Below the server's base URL, as regular expressions."""

_START_SECONDS = 60.0


def server_process(python: str, folder: Path, home: Path) -> dict[str, Any]:
    """Describe TensorBoard to jupyter-server-proxy.

    ``python`` is the interpreter of TensorBoard's environment, ``folder`` one that only
    the user can enter, for the socket.
    """
    program = Path(__file__).with_name("tensorboard_server.py")
    return {
        # -I: nothing of the user's is imported. Braces belong to the proxy's templates.
        "command": [
            python,
            "-I",
            _literal(program),
            "--socket={unix_socket}",
            "--path-prefix={base_url}" + NAME,
            f"--logdir={_literal(home / 'logs')}",
        ],
        "unix_socket": str(folder / f"{NAME}.sock"),
        "timeout": _START_SECONDS,
        "absolute_url": True,
        "new_browser_tab": True,
        "launcher_entry": {
            "title": "TensorBoard",
            "icon_path": str(Path(__file__).with_name("tensorboard.svg")),
            # JupyterLab's launcher draws pictures only in its sections for kernels.
            "category": "Notebook",
        },
    }


def _literal(path: Path) -> str:
    return str(path).replace("{", "{{").replace("}", "}}")


def add_routes(web_app: Any, process: dict[str, Any]) -> None:
    """Give a running server the routes of TensorBoard and of the launcher's card."""
    from jupyter_server.utils import url_path_join
    from jupyter_server_proxy.api import IconHandler, ServersInfoHandler
    from jupyter_server_proxy.config import ServerProcess, make_handlers

    base_url = web_app.settings["base_url"]
    server = ServerProcess(name=NAME, **process)
    icons = {NAME: server.launcher_entry.icon_path}
    web_app.add_handlers(
        ".*",
        [
            *make_handlers(base_url, [server]),
            (
                url_path_join(base_url, "server-proxy/servers-info"),
                ServersInfoHandler,
                {"server_processes": [server]},
            ),
            (url_path_join(base_url, "server-proxy/icon/(.*)"), IconHandler, {"icons": icons}),
        ],
    )
