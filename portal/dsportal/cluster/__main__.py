"""``python -I -m dsportal.cluster``: the service's process."""

import asyncio
import logging
import os
import signal
import ssl
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.web import Application, RequestHandler

from dsportal import request_limits
from dsportal.lazy_imports import postponed

with postponed():
    from jupyterhub.services import auth as hub_login
    from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler

from dsportal.cluster import admin, handlers, page_handlers
from dsportal.cluster.handlers import FileHandler, ServiceContext
from dsportal.cluster.hub_api import ClusterHubApi
from dsportal.cluster.pages import FILES, Pages
from dsportal.cluster.sessions import Sessions
from dsportal.cluster.viewer_access import ViewerAccess
from dsportal.cluster.watch import Watch
from dsportal.hub import process as hub_process
from dsportal.hub import tls
from dsportal.log_limits import LogLimiter, cut
from dsportal.look import appearance
from dsportal.request_limits import ConnectionLimiter, RequestLimiter, Rules
from dsportal.response_headers import Unversioned
from dsportal.settings.whole import Settings
from dsportal.settings_file import file_of, load
from dsportal.slurm_client import client_of
from dsportal.tls_context import reuse_contexts
from dsportal.usage.record import UsageRecord
from dsportal.usage.sources import UsageSource

log = logging.getLogger("dsportal.cluster")

_PARENT_SECONDS = 1.0
_PORT_TRIES = 20
_LONGEST_PATH = 200
# Streams among them. Who is known counts, too: with a session's token anybody can ask and not read.
_MOST_CONNECTIONS = 4096


def service_context(settings: Settings, environment: Mapping[str, str]) -> ServiceContext:
    """Make what all handlers share; the environment is what the hub gives to its services."""
    slurm = settings.slurm
    client = client_of(slurm, may_act=False)
    interval = slurm.cluster_interval_seconds
    hub = ClusterHubApi(
        environment["JUPYTERHUB_API_URL"],
        environment["JUPYTERHUB_API_TOKEN"],
        tls.client_context(settings.hub),
    )
    return ServiceContext(
        watch=Watch(client, settings.hub.name, interval),
        sessions=Sessions(hub, interval),
        viewers=ViewerAccess(),
        pages=Pages(f"{environment['JUPYTERHUB_BASE_URL']}hub/", appearance(settings.look)),
        usage=UsageSource(UsageRecord.of_hub(settings.hub.state_dir), client),
        show_names=settings.cluster.show_names,
        login_seconds=settings.cluster.login_seconds,
    )


def application(shared: ServiceContext, prefix: str, *, is_encrypted: bool) -> Application:
    """Put the handlers below the service's address."""
    given = {"context": shared}
    routes: list[Any] = [
        (prefix, page_handlers.PageHandler, given),
        (f"{prefix}events", page_handlers.PageEventsHandler, given),
        (f"{prefix}stop", page_handlers.StopFormHandler, given),
        (f"{prefix}sizing", page_handlers.SizingHandler, given),
        (f"{prefix}api/v1/cluster", handlers.ClusterHandler, given),
        (f"{prefix}api/v1/jobs", handlers.ClusterJobsHandler, given),
        (f"{prefix}api/v1/events", handlers.EventsHandler, given),
        (f"{prefix}api/v1/sessions", admin.SessionsHandler, given),
        (f"{prefix}api/v1/sessions/([^/]+)/([^/]*)", admin.StopSessionHandler, given),
        (rf"{prefix}api/v1/usage(\.csv)?", admin.UsageHandler, given),
        (rf"{prefix}api/openapi\.json", handlers.OpenApiHandler, given),
        (f"{prefix}oauth_callback", HubOAuthCallbackHandler),
    ]
    routes += [(f"{prefix}{name}", FileHandler, {"file": file}) for name, file in FILES.items()]
    # A secret of this process: a restart only means another redirect through the hub.
    return Application(
        routes,
        transforms=[Unversioned],
        cookie_secret=os.urandom(32),
        log_function=_log_request,
        xsrf_cookie_kwargs={"secure": is_encrypted, "samesite": "Lax"},
    )


def rules(auth: HubOAuth, app: Application) -> Rules:
    """Say whose requests may have a body, and how long one may be."""

    async def knows(request: HTTPServerRequest) -> bool:
        return await request_limits.is_login(auth, app, request)

    return Rules(knows, lambda request: request_limits.SMALL_BODY)


def server(app: Application, auth: HubOAuth, context: ssl.SSLContext | None) -> HTTPServer:
    """Make what listens, with limits for strangers and for those who are known."""
    limiter = RequestLimiter(app, rules(auth, app))
    return HTTPServer(
        ConnectionLimiter(limiter, _MOST_CONNECTIONS, _MOST_CONNECTIONS),
        ssl_options=context,
        **request_limits.SERVER_ARGUMENTS,
    )


def _log_request(handler: RequestHandler) -> None:
    status = handler.get_status()
    if status >= 500:
        log.warning("%s was answered with %d", cut(handler.request.path, _LONGEST_PATH), status)


async def serve(settings: Settings) -> None:
    """Answer, as long as the hub that started this process is there."""
    prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"]
    reuse_contexts(hub_login)
    auth = HubOAuth.instance(cache_max_age=int(settings.cluster.login_seconds))
    request_limits.bound_cache(auth)
    app = application(
        service_context(settings, os.environ), prefix, is_encrypted=settings.hub.is_encrypted
    )
    context = tls.context(settings.hub, ssl.Purpose.CLIENT_AUTH)
    url = urlsplit(settings.cluster.url)
    await _listen(server(app, auth, context), url.port or 80, url.hostname or "127.0.0.1")
    ended = asyncio.Event()
    # The hub ends its services with the first, systemd and others with the second.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    while hub_process.is_there() and not ended.is_set():
        try:
            async with asyncio.timeout(_PARENT_SECONDS):
                await ended.wait()
        except TimeoutError:
            continue


async def _listen(server: HTTPServer, port: int, address: str) -> None:
    """Take the port, which the service of a hub that was killed may still have for a moment."""
    for left in reversed(range(_PORT_TRIES)):
        try:
            server.listen(port, address)
            return
        except OSError as error:
            if not left:
                sys.exit(f"cluster.url: {address}:{port} cannot be listened on: {error.strerror}")
            await asyncio.sleep(_PARENT_SECONDS / 4)


def main() -> int:
    """Read the settings, and serve."""
    logging.basicConfig(
        level=logging.INFO, format="[%(levelname).1s %(asctime)s cluster] %(message)s"
    )
    LogLimiter(request_limits.is_stranger).keep(logging.root.handlers)
    # JupyterHub's part notes each cookie that it sets.
    logging.getLogger("tornado.application").setLevel(logging.ERROR)
    asyncio.run(serve(load(file_of(os.environ))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
