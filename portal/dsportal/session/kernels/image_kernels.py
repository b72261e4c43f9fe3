"""Kernels in images: their provisioner, and a list of kernels that has all of them."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_server.services.kernelspecs.handlers import MainKernelSpecHandler
from jupyter_server.utils import url_path_join
from tornado import web
from traitlets import Unicode

from dsportal.containers.run import exec_environment
from dsportal.session.files.working_folders import R_FILES
from dsportal.session.kernels.images import SessionImages


class ImageProvisioner(LocalProvisioner):
    """Starts a kernel in an image; says why when that cannot be."""

    image = Unicode()

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Put Apptainer before the kernel's command.

        Raises `dsportal.containers.images.ImageError`, whose words JupyterLab shows beside the
        notebook.
        """
        prepared = await super().pre_launch(**kwargs)
        manager: Any = self.parent
        session_images: SessionImages = manager.kernel_spec_manager.session_images
        # jupyter_client takes "python3" for its own interpreter.
        command = [self.kernel_spec.argv[0], *prepared["cmd"][1:]]
        prepared["cmd"] = await session_images.argv(self.image, command)
        of_r = {name: prepared["env"][name] for name in R_FILES if name in prepared["env"]}
        prepared["env"] = exec_environment(prepared["env"], of_r)
        return dict(prepared)

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel and its programs, not to the Apptainer that waits for them.

        That one would hand an interrupt on, so that the kernel had two; killed, it would leave
        behind what shows the image (``squashfuse_ll``), which it ends once the kernel has ended.
        """
        inside = await asyncio.to_thread(members, self.pid) if self.pid else []
        for pid in inside:
            with suppress(ProcessLookupError):
                os.kill(pid, signum)
        if not inside:
            await super().send_signal(signum)


def members(group: int) -> list[int]:
    """Return the processes of a group besides its first one."""
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and int(folder.name) != group and _group(folder) == group
    ]


def _group(folder: Path) -> int | None:
    try:
        text = (folder / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name, in brackets, may hold anything: proc(5).
    return int(text[text.rindex(")") + 2 :].split()[2])


class ImageSpecsHandler(MainKernelSpecHandler):
    """All kernels, after a look at the images: a new one is there once the page is loaded anew."""

    @web.authenticated
    async def get(self) -> None:
        """Give them."""
        manager: Any = self.kernel_spec_manager
        await manager.session_images.look()
        answered: Any = super().get()
        await answered


def routes(base_url: str) -> list[tuple[str, type[MainKernelSpecHandler]]]:
    """Give the route that takes the place of the server's own."""
    return [(url_path_join(base_url, "api/kernelspecs"), ImageSpecsHandler)]
