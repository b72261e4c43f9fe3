"""Live use of a session, for Home: the hub asks the session, and passes on two numbers.

``GET /hub/portal/use?server=NAME`` answers the session's user with
``{"cores": N, "memory_bytes": N}``; ``null`` is not known. The session's server is its user's own,
so what it says is checked to be a number, and it is given little time and room to say it. It lets
the hub in by a token of the user's that opens this one session, for a quarter of an hour.

The session's port is given away on its node as soon as the session has ended: another user's
program there may listen on it before the hub knows. So the token is shown only to who has the
certificate of this user's sessions; without TLS in the cluster (``hub.internal_ssl``) nothing is
known.

Tried with JupyterHub 6.1.1.
"""

import json
import ssl
import time
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.utils import url_path_join
from tornado import web
from tornado.httpclient import HTTPError, HTTPRequest
from tornado.iostream import StreamBufferFullError
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from dsportal.hub import handlers
from dsportal.hub.pages import own_sessions
from jupyterhub_gpu_slurm.session.certificates import session_name

PATH = "/portal/use"
"""Below the hub's own address."""

_TOKEN_SECONDS = 900
_LASTS_SECONDS = _TOKEN_SECONDS - 60
_ANEW_SECONDS = 60
_MOST_SECONDS = 3.0
_MOST_BYTES = 4096
_NOTE = "Home: what the session uses"


@dataclass(frozen=True)
class LiveUse:
    """CPU and memory use of a session. ``None``: not known."""

    cores: float | None = None
    memory_bytes: int | None = None


def use_from(body: bytes) -> LiveUse:
    """Read what a session says; what is not a number that could be true is not known."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return LiveUse()
    if not isinstance(told, dict):
        return LiveUse()
    cores, memory = _number(told.get("cores")), _number(told.get("memory_bytes"))
    return LiveUse(cores, None if memory is None else round(memory))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 2**60 else None


class SessionTlsContext(ssl.SSLContext):
    """Trusts one user's sessions only, whatever the name of the node is."""

    name = ""

    def wrap_socket(self, *given: Any, **named: Any) -> ssl.SSLSocket:
        """Ask for the name that this user's sessions have, and nobody else's."""
        return super().wrap_socket(*given, **{**named, "server_hostname": self.name})


@dataclass(frozen=True)
class WayIn:
    """A way into one session, used until ``ends`` on the monotonic clock."""

    token: str
    tls: ssl.SSLContext
    ends: float


class LiveUseHandler(BaseHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Tells Home what a session of whoever asks uses."""

    def initialize(self, entries: dict[str, WayIn]) -> None:
        """Take the ways in that have been made, by session."""
        self.entries = entries

    @web.authenticated
    async def get(self) -> None:
        """Ask the session."""
        spawner = own_sessions.running(self.current_user, self.get_argument("server", ""))
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(asdict(await self._ask(spawner))))

    async def _ask(self, spawner: Any) -> LiveUse:
        # Another start of the session is another address.
        key = f"{spawner.user.name}/{spawner.name} {spawner.server.url}"
        entry = self._entry(key, spawner)
        if entry is None:
            return LiveUse()
        request = HTTPRequest(
            url_path_join(spawner.server.url, "portal/use/now"),
            headers={"Authorization": f"token {entry.token}"},
            request_timeout=_MOST_SECONDS,
            connect_timeout=_MOST_SECONDS,
            follow_redirects=False,
            ssl_options=entry.tls,
        )
        client = SimpleAsyncHTTPClient(
            force_instance=True, max_buffer_size=2 * _MOST_BYTES, max_body_size=_MOST_BYTES
        )
        try:
            return use_from((await client.fetch(request)).body)
        except (HTTPError, OSError, StreamBufferFullError) as error:
            self.log.debug("The session of %s does not say what it uses: %s", spawner.user, error)
            is_revoked = getattr(error, "code", None) == HTTPStatus.FORBIDDEN
            if is_revoked and entry.ends - time.monotonic() < _LASTS_SECONDS - _ANEW_SECONDS:
                # The next look makes another, once a minute at most: a session may always refuse.
                self.entries.pop(key, None)
            return LiveUse()
        finally:
            client.close()

    def _entry(self, key: str, spawner: Any) -> WayIn | None:
        now = time.monotonic()
        for old in [each for each, entry in self.entries.items() if entry.ends <= now]:
            del self.entries[old]
        if key not in self.entries:
            tls = self._tls(spawner.user.name)
            if tls is None:
                return None
            token = spawner.user.new_api_token(
                note=_NOTE,
                expires_in=_TOKEN_SECONDS,
                scopes=[f"access:servers!server={spawner.user.name}/{spawner.name}"],
            )
            self.entries[key] = WayIn(token, tls, now + _LASTS_SECONDS)
        return self.entries[key]

    def _tls(self, username: str) -> ssl.SSLContext | None:
        files = ("internal_ssl_key", "internal_ssl_cert", "internal_ssl_ca")
        key, certificate, authority = (self.settings.get(name) for name in files)
        if not key:
            return None
        context = SessionTlsContext(ssl.PROTOCOL_TLS_CLIENT)
        context.name = session_name(username)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
        return context


def install() -> None:
    """Put it into the hub."""
    handlers.add(default_handlers, PATH, LiveUseHandler, {"entries": {}})
