#!/usr/bin/env python
"""Serve a model of one's own: a page to choose and try it, and an HTTP API for programs.

    python model_server.py --unix-socket ~/.model.sock ~/logs [--model FOLDER]

It listens on a Unix socket that only its user can open. In a session the launcher's card *Model
server* starts it, and the session shows it below its own address, behind the user's login.

GET / is the page, GET state says which model is loaded, POST load loads another. Language models
answer v1/completions and v1/chat/completions (OpenAI's API; with "stream" in parts, while they are
written), networks for images v1/classify.
"""

import argparse
import asyncio
import ctypes
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import model_folders
from model_folders import ModelFolderError
from model_handlers import (
    FILES,
    MOST_BYTES,
    ClassifyHandler,
    LoadHandler,
    ModelErrorHandler,
    ModelPageHandler,
    ModelsHandler,
    StateHandler,
)
from served_model import ServedModel
from tornado import httpserver, netutil, web
from writing_handlers import ChatHandler, CompletionsHandler


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
