"""The server of a session: JupyterLab, with the settings that a shared cluster needs."""

import asyncio
import gc
import logging
import os
import socket
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from traitlets.config import Config

from dsportal import request_limits
from dsportal.lazy_imports import postponed
from dsportal.log_limits import LogLimiter
from dsportal.response_headers import Unversioned
from dsportal.session.upstream.labapp import without_node

with postponed():
    from jupyter_server.serverapp import ServerApp
    from jupyter_server.utils import JupyterServerAuthWarning

    with without_node():
        import jupyterlab.labapp  # noqa: F401 - the server's settings name the package
    from jupyterlab.handlers.announcements import NeverCheckForUpdate

from dsportal.session import internal_tls
from dsportal.session.callback import HubRefusedError, report_port
from dsportal.session.components import Components, SessionContext
from dsportal.session.files import exports, working_folders
from dsportal.session.files.contents import SessionContents
from dsportal.session.files.lab_settings import set_broken_files_aside
from dsportal.session.files.static import HomeCheckpoints, LinkedFileHandler
from dsportal.session.kernels import image_kernels, module_kernels
from dsportal.session.kernels.manager import (
    MEMORY_WATCH,
    MemoryWatch,
    SessionKernelConnection,
    SessionKernels,
)
from dsportal.session.page import extensions, lab_defaults
from dsportal.session.page.shutdown import ShutdownNotice
from dsportal.session.threads import in_thread
from dsportal.session.upstream.hub_login import is_login_of_the_hub
from dsportal.session.upstream.jupyter_server import mend
from dsportal.session.usage.memory import JobMemory
from dsportal.session.web import bodies
from dsportal.timers import use_monotonic_clock

log = logging.getLogger(__name__)


def serve(place: SessionContext, listener: socket.socket) -> int:
    """Run the server until it is told to stop; gives the exit code of the process."""
    # It tells of handlers that do not ask for the login; our settings close them.
    warnings.simplefilter("ignore", JupyterServerAuthWarning)
    mend()
    use_monotonic_clock()
    server = SessionServer.instance(config=settings(place))
    server.place = place
    server.listener = listener
    server.initialize(argv=[], find_extensions=False)
    if not is_login_of_the_hub(server.identity_provider):
        log.critical("The hub's login is missing: this server does not start")
        return 1
    login: Any = server.identity_provider
    request_limits.bound_cache(login.hub_auth)
    LogLimiter(request_limits.is_stranger).keep([*logging.root.handlers, *server.log.handlers])
    server.start()
    return server.exit_code


def settings(place: SessionContext) -> Config:
    """Say what differs from Jupyter's defaults."""
    shared = [str(Path(path) / "labextensions") for path in place.told.jupyter_path]
    return Config(
        {
            "ServerApp": {
                "root_dir": str(place.home),
                "jpserver_extensions": {
                    "jupyterlab": True,
                    "jupyter_server_terminals": True,
                    "dsportal.session.upstream.hub_login": True,
                },
                # A handler that forgets to ask for the login is closed, not open.
                "allow_unauthenticated_access": False,
                # Without this, an extension that does not load is a warning.
                "reraise_server_extension_failures": True,
                "contents_manager_class": SessionContents,
                "kernel_manager_class": working_folders.PlacedKernels,
                "kernel_spec_manager_class": SessionKernels,
                "kernel_websocket_connection_class": SessionKernelConnection,
                # Its default is over the limit that Jupyter sets itself, which it then warns of.
                "websocket_ping_timeout": 30_000,
                "tornado_settings": {
                    "headers": {"Referrer-Policy": "same-origin"},
                    MEMORY_WATCH: MemoryWatch(JobMemory.of_this_process()),
                    "page_config_data": {
                        **place.page,
                        **extensions.page_settings(place.told.extensions, place.home),
                        # A session's JupyterLab is not its user's to build. Asked with each page
                        # whether it should be, it would run yarn for 0.25 s.
                        "buildAvailable": False,
                    },
                    "xsrf_cookie_kwargs": {"secure": place.told.is_encrypted, "samesite": "Lax"},
                },
            },
            "SessionKernels": {
                "configuration": str(place.kernel_configuration or ""),
                "pictures": str(place.runtime_folder / "kernel-pictures"),
                "offered": {
                    name: module_kernels.spec(order, place.told.modules_init)
                    for name, order in place.told.kernels.items()
                },
            },
            # A TCP port of localhost is open to everybody on the node.
            "KernelManager": {"transport": "ipc"},
            "FileContentsManager": {
                "checkpoints_class": HomeCheckpoints,
                "files_handler_class": LinkedFileHandler,
                "files_handler_params": {
                    "path": str(place.home),
                    "allowed_symlink_directory": "/",
                },
            },
            "LanguageServerManager": extensions.language_servers(),
            **exports.exporters(),
            # By default nbconvert looks for templates, which are programs, in the home first.
            "TemplateExporter": {"extra_template_basedirs": []},
            "LabApp": {
                "app_settings_dir": str(
                    lab_defaults.write(
                        place.runtime_folder,
                        place.told.extensions,
                        place.told.follows_system_theme,
                    )
                ),
                # Not those of the home: what a user has installed must not break the page.
                "labextensions_path": [*shared, f"{sys.prefix}/share/jupyter/labextensions"],
                # Nothing of the outer network is asked for.
                "extension_manager": "readonly",
                "news_url": None,
                "check_for_updates_class": NeverCheckForUpdate,
            },
        }
    )


class SessionServer(ServerApp):
    """Jupyter's server, on a socket that is already there, telling the hub its port."""

    name = "session"
    no_browser_open_file = True
    place: SessionContext
    listener: socket.socket
    _components: Components | None = None
    exit_code = 0

    @property
    def config_file_paths(self) -> list[str]:
        """None: a file in ``~/.jupyter`` must neither break nor change the server."""
        return []

    def migrate_config(self) -> None:
        """Nothing to migrate from IPython 3, and nothing to write into the home for it."""

    def init_webapp(self) -> None:
        """Set the application up; what takes the place of an extension's routes is before them."""
        super().init_webapp()
        for routes in working_folders.routes(self.base_url), image_kernels.routes(self.base_url):
            self.web_app.add_handlers(".*", routes)  # type: ignore[no-untyped-call]

    def init_httpserver(self) -> None:
        """Serve on the socket that we have, and tell the hub once we do."""
        self.port = self.listener.getsockname()[1]
        self._http_server = HTTPServer(
            request_limits.RequestLimiter(self.web_app, bodies.rules(self)),
            ssl_options=internal_tls.server_context(),
            xheaders=self.trust_xheaders,
            max_body_size=self.max_body_size,
            max_buffer_size=self.max_buffer_size,
            **request_limits.SERVER_ARGUMENTS,
        )
        self.web_app.transforms.append(Unversioned)
        self._components = Components(self.place, self)
        contents: Any = self.contents_manager
        contents.mounts, contents.loop = self._components.mounts, self.io_loop
        contents.longest_bytes = self.max_body_size
        contents.memory_bytes = bodies.longest_body(sys.maxsize, JobMemory.of_this_process())
        kernels: Any = self.kernel_spec_manager
        kernels.session_images = self._components.images
        kernels.own_specs = self._components.own_kernels.specs
        self._watch_requests(self._components.idle_watch.note_request)
        self._components.add_routes()
        self.io_loop.add_callback(self._open, self._components)

    async def _cleanup(self) -> None:
        if self._components is not None:
            await self._components.stop()
        await super()._cleanup()

    def _watch_requests(self, note_request: Callable[[str, str, int], None]) -> None:
        log_request = self.web_app.settings["log_function"]

        def note(handler: Any) -> None:
            request = handler.request
            note_request(request.method, request.path, handler.get_status())
            # The log lies in its user's home: what strangers try is not written there.
            if not request_limits.is_stranger():
                log_request(handler)

        self.web_app.settings["log_function"] = note

    def _signal_stop(self, sig: Any, frame: Any) -> None:
        """Let open pages save what would be lost, then stop; stop at once when told again."""
        ours = self._components
        if ours is None or ours.shutdown_notice.is_said or not ours.clock.is_watched:
            super()._signal_stop(sig, frame)
            return
        ours.shutdown_notice.is_said = True
        self.io_loop.add_callback_from_signal(self._leave, ours.shutdown_notice)

    async def _leave(self, shutdown_notice: ShutdownNotice) -> None:
        await shutdown_notice.say()
        self.stop()

    async def _open(self, components: Components) -> None:
        self._http_server.add_socket(self.listener)
        try:
            await report_port(
                self.place.told.callback_url, os.environ["JUPYTERHUB_API_TOKEN"], self.port
            )
        except HubRefusedError as error:
            log.critical("The session ends: %s", error)
            self.exit_code = 1
            self.stop()
            return
        log.info("The hub knows this session: port %d", self.port)
        gc.freeze()
        gc.enable()
        # Neither a slow home nor what is wrong with its settings keeps the rest from beginning.
        settling = in_thread(partial(set_broken_files_aside, self.place.home))
        await asyncio.gather(settling, components.run())
