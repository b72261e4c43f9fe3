"""The model server from a notebook: the session's, or one that the notebook starts itself."""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import model_folders

TOOL = "model-server"  # its name in the session's settings
SERVER = Path(__file__).with_name("model_server.py")
START_SECONDS = 120.0
ANSWER_SECONDS = 300.0
LOOK_SECONDS = 0.2


class ModelServerError(Exception):
    """The server did not do what it was asked for; the message is its own."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class ModelClient:
    """A server that is reached at a Unix socket; threads may share it."""

    def __init__(self, path: Path) -> None:
        """Nothing is asked yet."""
        self.path = path

    def ask(self, path: str, body: Any = None) -> Any:
        """Return the answer to a GET, or to a POST of bytes or of what becomes JSON."""
        connection = _UnixConnection(self.path)
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request("GET" if body is None else "POST", path, content)
            answer = connection.getresponse()
            said = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status >= 400:
            raise ModelServerError(said["error"]["message"])
        return said

    def state(self) -> dict[str, Any]:
        """Return which model is loaded, and how many requests and batches there were."""
        return dict(self.ask("/state"))

    def wait_until_loaded(self) -> dict[str, Any]:
        """Return the state once a model is there; raises `ModelServerError` if it cannot be."""
        while (state := self.state())["state"] == "loading":
            time.sleep(LOOK_SECONDS)
        if state["state"] != "ready":
            raise ModelServerError(state["error"] or "no model is loaded")
        return state

    def classify(self, image: bytes) -> list[dict[str, Any]]:
        """Return the likeliest classes of an image, as a file's bytes."""
        return list(self.ask("/v1/classify", image)["classes"])

    def complete(self, prompt: str, **sampling: Any) -> str:
        """Return what a language model writes behind a prompt."""
        answer = self.ask("/v1/completions", {"prompt": prompt, **sampling})
        return str(answer["choices"][0]["text"])


class OwnServer:
    """A server that this notebook started; it ends with `stop`, or with the notebook's kernel."""

    def __init__(self, model: Path) -> None:
        """Start it, and wait until the model is loaded."""
        # Short enough for a socket's path, and nobody else can enter it.
        self._folder = tempfile.TemporaryDirectory(prefix="model-server-", dir="/tmp")
        path = Path(self._folder.name) / "socket"
        argv = [sys.executable, str(SERVER), "--unix-socket", str(path), "--model", str(model)]
        # A file, as nobody reads a pipe: the server would wait for that once it is full.
        self._log = Path(self._folder.name) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*argv, "--with-parent"], stdout=log, stderr=subprocess.STDOUT
            )
        self.client = ModelClient(path)
        try:
            self._wait_until_it_listens()
            self.client.wait_until_loaded()
        except BaseException:
            self.stop()
            raise

    def _wait_until_it_listens(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                said = self._log.read_text(errors="replace")
                raise ModelServerError(f"the server has ended: {said.strip()[-500:]}")
            try:
                self.client.state()
                return
            except OSError:
                time.sleep(LOOK_SECONDS)
        raise ModelServerError(f"the server does not answer after {START_SECONDS:g} s")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def opened(model: Path) -> ModelClient:
    """Return a server of a model: the session's if it serves this very one, or one of our own."""
    return _of_session(model) or _own_server(model).client


def close() -> None:
    """End the servers that this notebook has started."""
    while _own:
        _own.popitem()[1].stop()


def _of_session(model: Path) -> ModelClient | None:
    client = ModelClient(Path(os.environ.get("JUPYTER_RUNTIME_DIR", "/")) / f"tool-{TOOL}.sock")
    return client if _is_served(client, model) else None


def _is_served(client: ModelClient, model: Path) -> bool:
    """Say whether a server has the model as it is now: it may have been trained since."""
    try:
        state = client.state()
    except OSError:
        return False
    served = state["model"]
    if state["state"] != "ready" or served["path"] != str(model):
        return False
    try:
        return bool(served.get("modified") == model_folders.described(model).modified)
    except model_folders.ModelFolderError:  # it is being written
        return False


def _own_server(model: Path) -> OwnServer:
    if model not in _own or not _is_served(_own[model].client, model):
        close()
        _own[model] = OwnServer(model)
    return _own[model]


_own: dict[Path, OwnServer] = {}
"""At most one, found again when the cell is run once more."""
