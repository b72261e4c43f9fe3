"""A session whose owner has changed it: it serves pages of theirs, and keeps what comes to it."""

import json
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import faults
from tests.instance import Instance

_KEPT = "what-came.jsonl"
# What is in the place of the session's interpreter: the real server, and more.
_PROGRAM = """\
#!PYTHON -I
import os, pwd, runpy, sys

owner = pwd.getpwuid(os.getuid())
sys.argv = [sys.argv[0]]
if owner.pw_name == OWNER:
    import functools, json, pathlib
    from tornado import web

    kept = pathlib.Path(owner.pw_dir, KEPT)
    kept.unlink(missing_ok=True)
    below = f"/user/{owner.pw_name}/hostile/"
    find = web.Application.find_handler

    def keep(**what):
        with kept.open("a") as file:
            file.write(json.dumps(what) + "\\n")

    class Page(web.RequestHandler):
        def get(self, name):
            self.set_header("Service-Worker-Allowed", "/")
            if name.endswith(".js"):
                self.set_header("Content-Type", "text/javascript")
                self.finish("onfetch = e => e.respondWith(new Response('taken over'));"
                    "onactivate = e => e.waitUntil(clients.claim());")
            else:
                self.finish("<!doctype html><title>hostile</title><button>Open</button>")

    # When the server runs: before, it would change how that speaks to the hub.
    @functools.cache
    def keep_tokens():
        from jupyterhub.services.auth import HubOAuth
        get_token = HubOAuth._token_for_code

        async def _token_for_code(self, *given, **more):
            token = await get_token(self, *given, **more)
            keep(token=token)
            return token

        HubOAuth._token_for_code = _token_for_code

    def find_handler(application, request, **more):
        keep_tokens()
        keep(headers=sorted(request.headers.get_all()), path=request.path)
        if request.path.startswith(below):
            name = request.path[len(below):].encode()
            return application.get_handler_delegate(request, Page, path_args=[name])
        return find(application, request, **more)

    web.Application.find_handler = find_handler
runpy.run_module("dsportal.session", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class HostileSession:
    """What the owner of such a session has of it."""

    instance: Instance
    owner: str

    @property
    def page(self) -> str:
        """The address of the owner's own page."""
        return f"{self.instance.host_of(self.owner)}/user/{self.owner}/hostile/page"

    @property
    def worker(self) -> str:
        """The path of the owner's service worker."""
        return f"/user/{self.owner}/hostile/worker.js"

    def kept(self) -> list[dict[str, Any]]:
        """Return what came so far: requests with their headers, and tokens for codes."""
        file = Path(pwd.getpwnam(self.owner).pw_dir, _KEPT)
        return [json.loads(line) for line in file.read_text().splitlines()]


@contextmanager
def hostile(instance: Instance, owner: str, more: str = "") -> Iterator[HostileSession]:
    """Let the sessions of one user be such; those of others are as ever."""
    text = _PROGRAM.replace("PYTHON", instance.settings["session"]["python"])
    text = text.replace("OWNER", repr(owner)).replace("KEPT", repr(_KEPT))
    with faults.session_program(instance, text, more):
        yield HostileSession(instance, owner)
    Path(pwd.getpwnam(owner).pw_dir, _KEPT).unlink(missing_ok=True)
