#!/usr/bin/env python
"""Serve a model of one's own: a page to choose and try it, and an HTTP API for programs.

    python model_server.py --unix-socket ~/.model.sock ~/logs [--model FOLDER]

It listens on a Unix socket that only its user can open. In a session the launcher's card *Model
server* starts it, and the session shows it below its own address, behind the user's login.

GET / is the page, GET state says which model is loaded, POST load loads another. Language models
answer v1/completions and v1/chat/completions (OpenAI's API), networks for images v1/classify.
"""

import argparse
import asyncio
import ctypes
import json
import logging
import os
import signal
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import loaded_models
import model_folders
from batcher import Batcher
from completions import (
    Prompt,
    RequestError,
    Sampling,
    WrittenText,
    chat_answer,
    chat_request,
    text_answer,
    text_request,
)
from loaded_models import ClassProbability, ImageModel, TextModel
from model_folders import ModelFolder, ModelFolderError
from tornado import httpserver, netutil, web

log = logging.getLogger("model-server")
MOST_BYTES = 20 * 2**20
"""Of a request: an image, or prompts."""
BATCH = 32  # requests that are computed together, at most
WAIT_SECONDS = 0.005
FILES = Path(__file__).with_name("page")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ServedModel:
    """The one model that is served, or is being loaded."""

    def __init__(self) -> None:
        # One thread for everything that uses the device: a model is not loaded during a batch.
        self._executor = ThreadPoolExecutor(max_workers=1)
        self._loaded: TextModel | ImageModel | None = None
        self._loading: asyncio.Task[None] | None = None
        self._began = 0.0
        self._seconds: float | None = None
        self.folder: ModelFolder | None = None
        self.error = ""
        self.texts: Batcher[Sampling, Prompt, WrittenText] = self._batcher(self._written)
        self.images: Batcher[str, bytes, list[ClassProbability]] = self._batcher(self._classified)

    def _batcher(self, compute: Any) -> Any:
        return Batcher(compute, self._executor, BATCH, WAIT_SECONDS)

    @property
    def state(self) -> str:
        """``empty``, ``loading``, ``ready`` or ``failed``."""
        if self._loading is not None and not self._loading.done():
            return "loading"
        if self.error:
            return "failed"
        return "empty" if self._loaded is None else "ready"

    def load(self, folder: ModelFolder) -> None:
        """Begin to load a model in the place of the one that is there; raises `RequestError`."""
        if self.state == "loading":
            raise RequestError("a model is being loaded: wait until it is there")
        self.folder, self.error, self._seconds = folder, "", None
        self._began = time.monotonic()
        self._loading = asyncio.create_task(self._load(folder))

    async def _load(self, folder: ModelFolder) -> None:
        loop = asyncio.get_running_loop()
        self._loaded = None  # its memory is free before the other one takes some
        try:
            self._loaded = await loop.run_in_executor(self._executor, loaded_models.read, folder)
        except ModelFolderError as error:
            log.warning("A model is not loaded", exc_info=error)
            self.error = str(error)
        self._seconds = time.monotonic() - self._began

    def described(self) -> dict[str, Any]:
        """Say for the page what is served."""
        seconds = self._seconds if self._seconds is not None else time.monotonic() - self._began
        batchers = (self.texts, self.images)
        return {
            "state": self.state,
            "model": None if self.folder is None else shown(self.folder),
            "seconds": round(seconds, 1) if self.folder else None,
            "error": self.error,
            "requests": sum(one.requests for one in batchers),
            "batches": sum(one.batches for one in batchers),
        }

    def ready(self, kind: type[Any]) -> Any:
        """Return the model if it is of this kind; raises `RequestError`."""
        if self.state != "ready":
            raise RequestError("no model is loaded: choose one on the server's page")
        if not isinstance(self._loaded, kind):
            kinds = {TextModel: "write text", ImageModel: "classify images"}
            raise RequestError(f"the model that is loaded does not {kinds[kind]}")
        return self._loaded

    def _written(self, sampling: Sampling, prompts: Sequence[Prompt]) -> Any:
        return self.ready(TextModel).written(sampling, prompts)

    def _classified(self, _: str, images: Sequence[bytes]) -> Any:
        return self.ready(ImageModel).classified(images)


def shown(folder: ModelFolder) -> dict[str, Any]:
    """Return what a page tells of a model."""
    return {
        "name": folder.name,
        "path": str(folder.path),
        "place": from_home(folder.path),
        "kind": folder.kind,
        "is_adapter": folder.base is not None,
        "size_mb": round(folder.size_mb, 1),
        "written": time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.modified)),
    }


def from_home(folder: Path) -> str:
    """Write a folder's path as users do."""
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


class ModelHandler(web.RequestHandler):
    """What all answers have in common."""

    def initialize(self, served: ServedModel, roots: Sequence[Path]) -> None:
        """Take the model, and the folders with others."""
        self.served, self.roots = served, roots

    def set_default_headers(self) -> None:
        """Let a page use nothing but what is here."""
        self.set_header("Server", "model-server")
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")

    def body(self) -> Any:
        """Read the request's JSON; raises `RequestError`."""
        try:
            return json.loads(self.request.body)
        except ValueError as error:
            raise RequestError(f"the body is not JSON: {error}") from error

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is wrong as clients of OpenAI's API expect it."""
        error = kwargs.get("exc_info", (None, None))[1]
        message = str(error) if isinstance(error, RequestError | ModelFolderError) else self._reason
        self.finish({"error": {"message": message, "type": "invalid_request_error"}})

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Answer 400 where it is the request that is wrong."""
        error = kwargs.get("exc_info", (None, None))[1]
        is_refused = isinstance(error, RequestError | ModelFolderError)
        super().send_error(400 if is_refused else status_code, **kwargs)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Write a traceback for what is a fault of the server only."""
        if not isinstance(value, RequestError | ModelFolderError):
            super().log_exception(typ, value, tb)


class ModelPageHandler(ModelHandler):
    """The page."""

    async def get(self) -> None:
        """Show the models that there are."""
        there = await asyncio.to_thread(model_folders.found, self.roots)
        self.render(
            str(FILES / "page.html"),
            models=[shown(one) for one in there],
            most_bytes=MOST_BYTES,
            roots=[from_home(root) for root in self.roots],
        )


class StateHandler(ModelHandler):
    """What is served."""

    def get(self) -> None:
        """Say which model is loaded, or why none is."""
        self.finish(self.served.described())


class LoadHandler(ModelHandler):
    """Another model."""

    async def post(self) -> None:
        """Begin to load the model of ``{"folder": "..."}``."""
        body = self.body()
        folder = body.get("folder") if isinstance(body, dict) else None
        if not isinstance(folder, str) or not folder:
            raise RequestError("folder must be the path of a model's folder")
        self.served.load(await asyncio.to_thread(model_folders.at, folder))
        self.set_status(202)
        self.finish(self.served.described())


class ModelsHandler(ModelHandler):
    """``/v1/models``, which clients ask for a model's name."""

    def get(self) -> None:
        """List the model that is loaded."""
        folder = self.served.folder if self.served.state == "ready" else None
        listed = [] if folder is None else [_listed(folder)]
        self.finish({"object": "list", "data": listed})


def _listed(folder: ModelFolder) -> dict[str, Any]:
    created = int(folder.modified)
    return {"id": folder.name, "object": "model", "created": created, "owned_by": "you"}


class CompletionsHandler(ModelHandler):
    """``/v1/completions``: texts are continued."""

    async def post(self) -> None:
        """Continue one text, or several together."""
        asked = text_request(self.body())
        self.served.ready(TextModel)
        name = self.served.folder.name if self.served.folder else ""
        asking = [self.served.texts.ask(asked.sampling, Prompt(one)) for one in asked.prompts]
        texts = await asyncio.gather(*asking)
        self.finish(text_answer(name, _number("cmpl"), int(time.time()), texts))


class ChatHandler(ModelHandler):
    """``/v1/chat/completions``: a conversation is continued."""

    async def post(self) -> None:
        """Give the next message."""
        asked = chat_request(self.body())
        prompt = self.served.ready(TextModel).prompt_of(asked.messages)
        name = self.served.folder.name if self.served.folder else ""
        text = await self.served.texts.ask(asked.sampling, prompt)
        self.finish(chat_answer(name, _number("chatcmpl"), int(time.time()), text))


class ClassifyHandler(ModelHandler):
    """``/v1/classify``: an image gets its likeliest classes."""

    async def post(self) -> None:
        """Classify the image that is the request's body."""
        if not self.request.body:
            raise RequestError("the body must be an image: JPEG, PNG or another that Pillow reads")
        self.served.ready(ImageModel)
        classes = await self.served.images.ask("", self.request.body)
        name = self.served.folder.name if self.served.folder else ""
        self.finish({"model": name, "classes": [asdict(one) for one in classes]})


def _number(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex}"


def application(served: ServedModel, roots: Sequence[Path]) -> web.Application:
    """Return all that the server answers to."""
    given = {"served": served, "roots": roots}
    routes: list[Any] = [
        (r"/", ModelPageHandler, given),
        (r"/state", StateHandler, given),
        (r"/load", LoadHandler, given),
        (r"/v1/models", ModelsHandler, given),
        (r"/v1/completions", CompletionsHandler, given),
        (r"/v1/chat/completions", ChatHandler, given),
        (r"/v1/classify", ClassifyHandler, given),
        (r"/(page\.(?:js|css))", web.StaticFileHandler, {"path": str(FILES)}),
    ]
    return web.Application(
        routes, default_handler_class=ModelErrorHandler, default_handler_args=given
    )


class ModelErrorHandler(ModelHandler):
    """What is not there."""

    def prepare(self) -> None:
        """Say so."""
        raise web.HTTPError(404)


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("roots", nargs="*", type=Path, help="folders below which models are looked for")
    add("--unix-socket", required=True, type=Path, help="where to listen")
    add("--model", type=Path, help="the folder of a model to load at once")
    add("--with-parent", action="store_true", help="end when the program ends that started this")
    return parser.parse_args()


async def main(s: argparse.Namespace) -> None:
    """Serve until told to end."""
    served = ServedModel()
    roots = [root.expanduser() for root in s.roots]
    server = httpserver.HTTPServer(application(served, roots), max_body_size=MOST_BYTES)
    os.umask(0o077)
    server.add_socket(netutil.bind_unix_socket(str(s.unix_socket), mode=0o600))
    if s.model is not None:
        try:
            served.load(model_folders.described(s.model.expanduser()))
        except ModelFolderError as error:
            raise SystemExit(str(error)) from error
    told = asyncio.Event()
    if s.with_parent:
        # prctl(2), PR_SET_PDEATHSIG: a kernel that is killed leaves no server behind.
        ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()
    server.stop()


if __name__ == "__main__":
    asyncio.run(main(settings()))
