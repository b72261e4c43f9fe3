"""The server of a session: JupyterLab, with the settings that a shared cluster needs."""

import asyncio
import gc
import importlib
import logging
import os
import socket
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from traitlets.config import Config

from portal.session.slow_imports import postponed, without_node

with postponed():
    from jupyter_server.serverapp import ServerApp
    from jupyter_server.utils import JupyterServerAuthWarning

    with without_node():
        import jupyterlab.labapp  # noqa: F401 - the server's settings name the package
    from jupyterlab.handlers.announcements import NeverCheckForUpdate

from portal.session import (
    clock,
    farewell,
    idle,
    joblog,
    jobs,
    module_kernels,
    proxied,
    quota,
    templates,
    tensorboard,
    tool_pages,
    use_watch,
)
from portal.session.callback import HubRefusedError, report_port
from portal.session.deferred import DeferredRoutes
from portal.session.farewell import Farewell
from portal.session.files import HomeCheckpoints, LinkedFileHandler
from portal.session.hub_login import is_login_of_the_hub
from portal.session.jobs_service import ClusterService
from portal.session.jobs_slurm import SlurmPrograms
from portal.session.kernels import (
    MEMORY_WATCH,
    MemoryWatch,
    SessionKernelConnection,
    SessionKernels,
)
from portal.session.lab_settings import set_broken_files_aside
from portal.session.memory import JobMemory
from portal.session.meter import Meter
from portal.session.orders import KernelOrder, ToolOrder
from portal.session.tool_run import ToolPlace
from portal.session.tools import Toolbox

log = logging.getLogger(__name__)

_BOARD_PROXY = "portal.session.tensorboard_proxy"


@dataclass(frozen=True)
class Place:
    """Where a session runs."""

    home: Path
    runtime_folder: Path
    """Only the user can enter it: sockets, connection files."""
    callback_url: str
    """Where the hub wants to hear of the port."""
    jupyter_path: tuple[str, ...]
    tensorboard: tensorboard.Plan | None
    warning_minutes: tuple[int, ...] = ()
    modules_init: str | None = None
    kernels: Mapping[str, KernelOrder] = field(default_factory=dict)
    tools: Mapping[str, ToolOrder] = field(default_factory=dict)
    templates: str = ""
    """The link in the home that leads to them."""
    page: Mapping[str, str] = field(default_factory=dict)
    """What JupyterLab's page is told besides."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Links in the home, and where they lead."""
    cluster_url: str | None = None
    """Where the service of the cluster's view listens."""
    slurm_bin_dir: str | None = None


def serve(place: Place, listener: socket.socket) -> int:
    """Run the server until it is told to stop; gives the exit code of the process."""
    # It tells of handlers that do not ask for the login; our settings close them.
    warnings.simplefilter("ignore", JupyterServerAuthWarning)
    server = SessionServer.instance(config=settings(place))
    server.place = place
    server.listener = listener
    server.initialize(argv=[], find_extensions=False)
    if not is_login_of_the_hub(server.identity_provider):
        log.critical("The hub's login is missing: this server does not start")
        return 1
    server.start()
    return server.exit_code


def settings(place: Place) -> Config:
    """Say what differs from Jupyter's defaults."""
    shared = [str(Path(path) / "labextensions") for path in place.jupyter_path]
    return Config(
        {
            "ServerApp": {
                "root_dir": str(place.home),
                "jpserver_extensions": {
                    "jupyterlab": True,
                    "jupyter_server_terminals": True,
                    "portal.session.hub_login": True,
                },
                # A handler that forgets to ask for the login is closed, not open.
                "allow_unauthenticated_access": False,
                # Without this, an extension that does not load is a warning.
                "reraise_server_extension_failures": True,
                "kernel_spec_manager_class": SessionKernels,
                "kernel_websocket_connection_class": SessionKernelConnection,
                # Its default is over the limit that Jupyter sets itself, which it then warns of.
                "websocket_ping_timeout": 30_000,
                "tornado_settings": {
                    MEMORY_WATCH: MemoryWatch(JobMemory.of_this_process()),
                    "page_config_data": dict(place.page),
                },
            },
            "SessionKernels": {
                "pictures": str(place.runtime_folder / "kernel-pictures"),
                "offered": {
                    name: module_kernels.spec(order, place.modules_init)
                    for name, order in place.kernels.items()
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
            "LabApp": {
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
    place: Place
    listener: socket.socket
    _clock: clock.Clock | None = None
    _farewell: Farewell | None = None
    _idle_watch: idle.IdleWatch
    _use_watch: use_watch.UseWatch
    _catalogue: templates.Catalogue
    _shelf: tensorboard.Shelf | None = None
    _toolbox: Toolbox
    exit_code = 0

    _watching: tuple[asyncio.Task[None], ...] = ()

    @property
    def config_file_paths(self) -> list[str]:
        """None: a file in ``~/.jupyter`` must neither break nor change the server."""
        return []

    def migrate_config(self) -> None:
        """Nothing to migrate from IPython 3, and nothing to write into the home for it."""

    def init_httpserver(self) -> None:
        """Serve on the socket that we have, and tell the hub once we do."""
        self.port = self.listener.getsockname()[1]
        self._http_server = HTTPServer(
            self.web_app,
            ssl_options=self.ssl_options,
            xheaders=self.trust_xheaders,
            max_body_size=self.max_body_size,
            max_buffer_size=self.max_buffer_size,
        )
        self._clock = clock.Clock(warning_minutes=self.place.warning_minutes)
        self._farewell = Farewell(self.event_logger)
        meter = Meter()
        self._use_watch = use_watch.UseWatch(meter)
        self._idle_watch = idle.IdleWatch(lambda: idle.kernels_of(self.kernel_manager), meter)
        self._watch_requests(self._idle_watch)
        self._catalogue = templates.Catalogue(self.place.home, self.place.templates)
        self._toolbox = Toolbox(self.place.tools, self._tool_place())
        self.web_app.add_handlers(  # type: ignore[no-untyped-call]
            ".*",
            [
                *clock.routes(self.base_url, self._clock),
                *farewell.routes(self.base_url, self._farewell),
                *idle.routes(self.base_url, self._idle_watch),
                *templates.routes(self.base_url, self._catalogue),
                *tool_pages.routes(self.base_url, self._toolbox),
                *self._job_routes(),
                *quota.routes(self.base_url, quota.Storage(self.place.home, self.place.folders)),
                *use_watch.routes(self.base_url, self._use_watch),
            ],
        )
        if self.place.tensorboard is not None:
            self._shelf = self._add_shelf(self.place.tensorboard)
        deferred = DeferredRoutes(
            (tensorboard.BOARDS, *tool_pages.ROUTES),
            (_BOARD_PROXY, *proxied.MODULES),
            self._add_proxied_routes,
        )
        self.web_app.add_handlers(  # type: ignore[no-untyped-call]
            ".*", deferred.placeholders(self.base_url)
        )
        self.io_loop.add_callback(self._open, deferred)

    def _job_routes(self) -> list[Any]:
        found = jobs.Jobs(
            ClusterService(self.place.cluster_url), SlurmPrograms(self.place.slurm_bin_dir)
        )
        logs = joblog.Logs(found)
        return [*jobs.routes(self.base_url, found), *joblog.routes(self.base_url, logs)]

    def _add_shelf(self, plan: tensorboard.Plan) -> tensorboard.Shelf:
        shelf = plan.shelf(self.place.home, self.place.runtime_folder, self.base_url)
        self.web_app.add_handlers(  # type: ignore[no-untyped-call]
            ".*", tensorboard.routes(self.base_url, shelf)
        )
        return shelf

    def _add_proxied_routes(self) -> None:
        tool_pages.add_routes(self.web_app, self._toolbox, self._idle_watch.keep)
        if self._shelf is not None:
            importlib.import_module(_BOARD_PROXY).add_routes(self.web_app, self._shelf)

    def _tool_place(self) -> ToolPlace:
        return ToolPlace(
            home=self.place.home,
            folder=self.place.runtime_folder,
            base_url=self.base_url,
            modules_init=self.place.modules_init,
            environment=dict(os.environ),
        )

    async def _cleanup(self) -> None:
        if self._shelf is not None:
            await self._shelf.boards.stop_all()
        await super()._cleanup()

    def _watch_requests(self, watch: idle.IdleWatch) -> None:
        log_request = self.web_app.settings["log_function"]

        def note(handler: Any) -> None:
            request = handler.request
            watch.note_request(request.method, request.path, handler.get_status())
            log_request(handler)

        self.web_app.settings["log_function"] = note

    def _signal_stop(self, sig: Any, frame: Any) -> None:
        """Let open pages save what would be lost, then stop; stop at once when told again."""
        watched = self._clock is not None and self._clock.is_watched
        if self._farewell is None or self._farewell.is_said or not watched:
            super()._signal_stop(sig, frame)
            return
        self._farewell.is_said = True
        self.io_loop.add_callback_from_signal(self._leave, self._farewell)

    async def _leave(self, farewell: Farewell) -> None:
        await farewell.say()
        self.stop()

    async def _open(self, deferred: DeferredRoutes) -> None:
        self._http_server.add_socket(self.listener)
        try:
            await report_port(
                self.place.callback_url, os.environ["JUPYTERHUB_API_TOKEN"], self.port
            )
        except HubRefusedError as error:
            log.critical("The session ends: %s", error)
            self.exit_code = 1
            self.stop()
            return
        log.info("The hub knows this session: port %d", self.port)
        self._watching = (
            asyncio.create_task(self._use_watch.run()),
            asyncio.create_task(self._idle_watch.run()),
        )
        gc.freeze()
        gc.enable()
        await asyncio.to_thread(set_broken_files_aside, self.place.home)
        await deferred.load()
