"""Working folders of kernels and terminals, which may be on a mount that does not answer.

A new process goes into its folder and reads its program before it runs, and who starts it waits for
that, with all its threads (vfork(2)). So these are looked at before, in a thread (``contents``).
"""

import os
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from jupyter_server.utils import ApiPath, url_path_join
from jupyter_server_terminals.api_handlers import TerminalRootHandler
from tornado import web

from dsportal.session.files import names
from dsportal.session.files.contents import SessionContents
from dsportal.session.files.own_folder import is_ones_own

R_FILES = {"R_PROFILE_USER": "~/.Rprofile", "R_ENVIRON_USER": "~/.Renviron"}
"""What R (`help(Startup)`) would read in the folder that it is started in, by its variables."""


class PlacedKernels(AsyncMappingKernelManager):
    """Kernels that are not begun where nothing answers, nor whose program is there."""

    async def _async_start_kernel(
        self, *, kernel_id: str | None = None, path: ApiPath | None = None, **more: Any
    ) -> str:
        for key, value in (("path", path), ("kernel_id", kernel_id)):
            names.check(key, value)
        names.check("name", more.get("kernel_name"))
        contents = self._contents
        specs: Any = self.kernel_spec_manager
        spec = specs.get_kernel_spec(more.get("kernel_name") or self.default_kernel_name)
        await contents.look_at(spec.argv[0])
        if path is not None:
            await contents.look_at(contents.place(path))
            folder: str = self.cwd_for_path(path)  # type: ignore[no-untyped-call]
            if not await contents.in_time(partial(is_ones_own, folder), folder):
                more["env"] = {**(more.get("env") or os.environ), **R_FILES}
        return await super()._async_start_kernel(kernel_id=kernel_id, path=path, **more)

    async def _async_restart_kernel(self, kernel_id: str, now: bool = False) -> None:
        kernel: Any = self.get_kernel(kernel_id)
        await self._contents.look_at(kernel.kernel_spec.argv[0])
        folder = (kernel._launch_args or {}).get("cwd")
        if folder is not None:
            await self._contents.look_at(str(folder))
        await super()._async_restart_kernel(kernel_id, now=now)  # type: ignore[no-untyped-call]

    start_kernel = _async_start_kernel  # type: ignore[assignment]
    restart_kernel = _async_restart_kernel  # type: ignore[assignment]

    @property
    def _contents(self) -> SessionContents:
        server: Any = self.parent
        contents: SessionContents = server.contents_manager
        return contents


class PlacedTerminals(TerminalRootHandler):
    """Terminals that are not begun where nothing answers."""

    @web.authenticated
    async def post(self) -> None:
        """Begin one."""
        asked = self.get_json_body() or {}
        if not asked.keys() <= {"cwd", "name"}:
            raise web.HTTPError(400, "A terminal has a cwd and a name, and nothing else.")
        for key, value in asked.items():
            names.check(key, value)
        if "cwd" in asked and asked["cwd"] is None:
            raise web.HTTPError(400, "cwd must be a folder, or be left out.")
        folder = asked.get("cwd")
        if folder is not None:
            contents: Any = self.contents_manager
            home = self.settings["server_root_dir"]
            await contents.look_at(str(PurePosixPath(home, folder)))
        # What asks for the user's leave around it makes it a coroutine.
        answered: Any = super().post()
        await answered


def routes(base_url: str) -> list[tuple[str, type[TerminalRootHandler], dict[str, str]]]:
    """Give the route that takes the place of the terminals' own, which is their extension's."""
    extension = {"name": "jupyter_server_terminals"}
    return [(url_path_join(base_url, "api/terminals"), PlacedTerminals, extension)]
