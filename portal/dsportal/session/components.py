"""Components of a session's server besides Jupyter's own: one for each concern, with its routes."""

import asyncio
import importlib
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.serverapp import ServerApp

from dsportal.session.files import folder_download, parquet, quota, quota_routes
from dsportal.session.files.mounts import Mounts
from dsportal.session.jobs import job_log
from dsportal.session.jobs import routes as jobs
from dsportal.session.jobs.service import ClusterService
from dsportal.session.jobs.slurm import SlurmPrograms
from dsportal.session.kernels.images import SessionImages
from dsportal.session.own_environments import routes as own_routes
from dsportal.session.own_environments.folders import FOLDERS_VARIABLE, folders_told
from dsportal.session.own_environments.kernels import OwnKernels
from dsportal.session.own_environments.work import OwnWork
from dsportal.session.page import (
    clock,
    extensions,
    notices,
    shutdown,
    template_copies,
    templates,
    visits,
)
from dsportal.session.page.shutdown import ShutdownNotice
from dsportal.session.sharing import routes as sharing
from dsportal.session.ssh import routes as ssh
from dsportal.session.ssh.connection import SshServer
from dsportal.session.tensorboard import routes as tensorboard
from dsportal.session.tools import pages as tool_pages
from dsportal.session.tools.run import ToolContext
from dsportal.session.tools.toolbox import Toolbox
from dsportal.session.usage import idle, sampler
from dsportal.session.usage.meter import Meter
from dsportal.session.web import bodies, proxied
from dsportal.session.web.lazy_routes import DeferredRoutes
from dsportal.session_schema import SessionInput

# Slow to import.
_BOARD_PROXY = "dsportal.session.tensorboard.proxy"


@dataclass(frozen=True)
class SessionContext:
    """Folders and input of a session."""

    home: Path
    runtime_folder: Path
    """Only the user can enter it: sockets, connection files."""
    told: SessionInput
    page: Mapping[str, str] = field(default_factory=dict)
    """What JupyterLab's page is told besides."""
    kernel_configuration: Path | None = None
    """What ipykernel is to read."""


class Components:
    """Components of the server, created just before it listens."""

    def __init__(self, place: SessionContext, server: ServerApp) -> None:
        self._place = place
        self._web_app, self._base_url = server.web_app, server.base_url
        self.clock = clock.SessionClock(warning_minutes=place.told.warning_minutes)
        self.shutdown_notice = ShutdownNotice(server.event_logger)
        self.mounts = Mounts(place.told.mounts)
        self.images = SessionImages(
            place.told.containers, place.home, self.mounts, folders=self._shown_in_images()
        )
        own_folders = folders_told(os.environ.get(FOLDERS_VARIABLE, ""))
        self.own_kernels = OwnKernels(own_folders, self.mounts, os.environ)
        self._own_work = OwnWork(dict(os.environ))
        self._visits = visits.Visits(os.environ.get("JUPYTERHUB_USER", ""))
        bodies.watch(server.identity_provider, self._visits.note)
        meter = Meter()
        self.use_watch = sampler.UseWatch(meter)
        self.idle_watch = idle.IdleWatch(lambda: idle.kernels_of(server.kernel_manager), meter)
        self._toolbox = Toolbox(place.told.tools, self._tool_context())
        self._tensorboards: tensorboard.TensorBoards | None = None
        told = place.told
        if told.tensorboard_python:
            self._tensorboards = tensorboard.tensorboards(
                told.tensorboard_python,
                told.tensorboards,
                told.tensorboard_idle_minutes,
                place.home,
                place.runtime_folder,
                server.base_url,
            )
        self._deferred = (
            *(
                DeferredRoutes(
                    (part.addresses,),
                    (part.module, *part.imports),
                    partial(extensions.load, server, part),
                )
                for part in extensions.server_parts(told.extensions)
            ),
            DeferredRoutes(
                (tensorboard.BOARDS, *tool_pages.ROUTES),
                (_BOARD_PROXY, *proxied.MODULES),
                self._add_proxied_routes,
            ),
        )
        self._running: tuple[asyncio.Task[None], ...] = ()

    def add_routes(self) -> None:
        """Give the server all routes; what is slow to import has placeholders first."""
        placeholders = (each.placeholders(self._base_url) for each in self._deferred)
        for routes in self._routes(self._base_url), *placeholders:
            self._web_app.add_handlers(".*", routes)  # type: ignore[no-untyped-call]

    async def run(self) -> None:
        """Begin to watch, and load what is slow. The server listens already."""
        self._running = (
            asyncio.create_task(self.use_watch.run()),
            asyncio.create_task(self.idle_watch.run()),
            asyncio.create_task(self.mounts.watch()),
            asyncio.create_task(self.images.look()),
            asyncio.create_task(self.own_kernels.watch()),
        )
        for each in self._deferred:
            await each.load()

    async def stop(self) -> None:
        """Stop what was started."""
        await self._own_work.stop()
        if self._tensorboards is not None:
            await self._tensorboards.boards.stop_all()

    def _routes(self, base_url: str) -> list[Any]:
        place = self._place
        catalogue = templates.Catalogue(place.home, place.told.templates)
        storage = quota.Storage(place.home, place.told.folders, mounts=self.mounts)
        told = notices.Notices(self.mounts, storage, place.home, place.told.folders)
        programs = SlurmPrograms(place.told.slurm_bin_dir)
        shared = sharing.Sharing(place.told.shares_folder, _user(), place.told.look)
        found = jobs.Jobs(ClusterService(place.told.cluster_url), programs)
        return [
            *clock.routes(base_url, self.clock),
            *shutdown.routes(base_url, self.shutdown_notice),
            *idle.routes(base_url, self.idle_watch),
            *templates.routes(base_url, catalogue),
            *template_copies.routes(base_url, catalogue),
            *folder_download.routes(base_url),
            *parquet.routes(base_url),
            *tool_pages.routes(base_url, self._toolbox),
            *jobs.routes(base_url, found),
            *job_log.routes(base_url, job_log.Logs(found)),
            *notices.routes(base_url, told),
            *own_routes.routes(
                base_url, self._own_work, self.own_kernels, storage, place.told.kernels
            ),
            *quota_routes.routes(base_url, storage),
            *sampler.routes(base_url, self.use_watch),
            *sharing.routes(base_url, shared),
            *visits.routes(base_url, self._visits),
            *(tensorboard.routes(base_url, self._tensorboards) if self._tensorboards else ()),
            *(ssh.routes(base_url, self._ssh_server()) if place.told.ssh else ()),
        ]

    def _add_proxied_routes(self) -> None:
        tool_pages.add_routes(self._web_app, self._toolbox, self.idle_watch.keep)
        if self._tensorboards is not None:
            importlib.import_module(_BOARD_PROXY).add_routes(self._web_app, self._tensorboards)

    def _shown_in_images(self) -> tuple[str, ...]:
        place = self._place
        # Kernels' sockets are below the second.
        own = (os.environ.get("TMPDIR", "/tmp"), str(place.runtime_folder))  # noqa: S108
        return (*own, *place.told.mounts, *place.told.folders.values())

    def _ssh_server(self) -> SshServer:
        return SshServer(self._place.runtime_folder, self._place.home, os.environ)

    def _tool_context(self) -> ToolContext:
        return ToolContext(
            home=self._place.home,
            folder=self._place.runtime_folder,
            base_url=self._base_url,
            modules_init=self._place.told.modules_init,
            environment=dict(os.environ),
        )


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name
