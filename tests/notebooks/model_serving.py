"""The model server's program, started with a framework's interpreter."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from model_client import ModelClient

from tests.instance import ROOT
from tests.waiting import until

SERVING = ROOT / "notebook_templates" / "serving"


@contextmanager
def serving(python: Path, models: Path) -> Iterator[ModelClient]:
    """Serve the models of a folder, none of which is loaded yet."""
    with TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder) / "socket"
        argv = [str(python), "-B", str(SERVING / "model_server.py"), f"--unix-socket={path}"]
        with subprocess.Popen([*argv, str(models)]) as process:
            client = ModelClient(path)
            until(lambda: path.exists() and answers(client), seconds=120, what="the server answers")
            assert path.stat().st_mode & 0o077 == 0
            yield client
            process.terminate()
            assert process.wait(20) == 0


def answers(client: ModelClient) -> bool:
    """Say whether a server answers."""
    try:
        return bool(client.state())
    except OSError:
        return False


def load(server: ModelClient, folder: Path) -> dict[str, Any]:
    """Load a model, and wait until it is there."""
    server.ask("/load", {"folder": str(folder)})
    return server.wait_until_loaded()
