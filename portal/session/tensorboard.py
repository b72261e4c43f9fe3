"""TensorBoard behind the session's login: a card in the launcher, a tab of its own."""

from pathlib import Path
from typing import Any

NAME = "tensorboard"
ROUTES = (NAME + r"(?:/.*)?",)
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
