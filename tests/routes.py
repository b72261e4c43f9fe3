"""All addresses that the hub and a session answer at: asked of the programs, not kept as a list."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_SHOWN = """
import json, sys
from tornado.web import RequestHandler

def show(handlers):
    print("ROUTES " + json.dumps([
        (pattern, handler.__name__, [one for one in sys.argv[1].split() if
         getattr(handler, one.lower()) is not getattr(RequestHandler, one.lower())])
        for pattern, handler in handlers
    ]), flush=True)
"""

# Runs with the hub's own Python and settings: the lists that the hub makes its application from.
_OF_THE_HUB = """
from traitlets.config import Config
from dsportal.hub.configuration import configure_from_file
from jupyterhub_gpu_slurm.registration import join_hub
from jupyterhub import apihandlers, handlers
configure_from_file(Config())
join_hub()
both = handlers.default_handlers + apihandlers.default_handlers
show([(f"/hub{one[0]}", one[1]) for one in both])
"""

# Runs with a session's own Python, as a session does until it listens; nothing is sent anywhere.
_OF_A_SESSION = """
import os, socket, tempfile
from pathlib import Path

name, folder = sys.argv[2], Path(tempfile.mkdtemp())
os.environ.update({
    "HOME": str(folder), "JUPYTERHUB_USER": name, "JUPYTERHUB_API_TOKEN": "none",
    "JUPYTERHUB_CLIENT_ID": f"jupyterhub-user-{name}", "JUPYTERHUB_HOST": "",
    "JUPYTERHUB_API_URL": "http://127.0.0.1:1/hub/api", "JUPYTERHUB_BASE_URL": "/",
    "JUPYTERHUB_OAUTH_CALLBACK_URL": f"/user/{name}/oauth_callback",
    "JUPYTERHUB_SERVICE_PREFIX": f"/user/{name}/", "JUPYTERHUB_SERVER_NAME": "",
    "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:1/",
})
from dsportal.session import server
from dsportal.session.components import SessionContext
from dsportal.session_schema import SessionInput

given = {"PORTAL_PORT_CALLBACK_URL": "http://127.0.0.1:1/"}
told = SessionInput(given, tensorboard_python=sys.executable, templates="templates")
place = SessionContext(folder, folder, told)
one = server.SessionServer.instance(config=server.settings(place))
one.place, one.listener = place, socket.socket()
one.listener.bind(("127.0.0.1", 0))
one.initialize(argv=[], find_extensions=False)

def rules(router):
    for rule in router.rules:
        if hasattr(rule.target, "rules"):
            yield from rules(rule.target)
        elif isinstance(rule.target, type) and hasattr(rule.matcher, "regex"):
            yield rule.matcher.regex.pattern, rule.target

show(dict.fromkeys(rules(one.web_app.default_router)))
os._exit(0)
"""


@dataclass(frozen=True)
class Route:
    """A pattern of addresses, who answers there, and to which methods."""

    pattern: str
    handler: str
    methods: tuple[str, ...]


def of_the_hub(python: Path, environment: dict[str, str]) -> list[Route]:
    """Ask a hub's installation."""
    return _asked([str(python), "-c", _SHOWN + _OF_THE_HUB, " ".join(METHODS)], environment)


def of_a_session(python: Path, user: str) -> list[Route]:
    """Ask a session's installation, for a user's session."""
    return _asked([str(python), "-c", _SHOWN + _OF_A_SESSION, " ".join(METHODS), user], {})


def _asked(argv: list[str], environment: dict[str, str]) -> list[Route]:
    done = subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    found = [line[7:] for line in done.stdout.splitlines() if line.startswith("ROUTES ")]
    assert found, done.stderr
    return [Route(pattern, name, tuple(methods)) for pattern, name, methods in json.loads(found[0])]


def address(pattern: str, *values: str) -> str:
    """Make an address that a pattern matches; each group takes the first value that fits it.

    >>> address(r"/hub/api/users/([^/]+)/tokens/(a[0-9]+)$", "ada", "a1")
    '/hub/api/users/ada/tokens/a1'
    """
    made, rest = "", pattern.removesuffix("$")
    while rest:
        if rest.startswith("("):
            group, rest = _group(rest)
            optional = rest.startswith(("?", "*"))
            rest = rest[1:] if optional else rest
            made += next((one for one in values if re.fullmatch(group, one)), "")
            continue
        part = re.match(r"(\[[^]]*\]|\\?.)(\{(\d+)\}|[*+?])?", rest)
        assert part is not None
        made += _plain(part[1], part[2] or "", part[3])
        rest = rest[part.end() :]
    assert re.fullmatch(pattern, made), (pattern, made)
    return made


def _plain(atom: str, repeat: str, count: str | None) -> str:
    anything = atom == "." and repeat in ("*", "+")
    one = "0" if atom.startswith("[") else "x" if anything else atom.removeprefix("\\")
    return one * int(count) if count else "" if repeat == "?" else one


def _group(text: str) -> tuple[str, str]:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return text[: at + 1], text[at + 1 :]
    raise AssertionError(text)
