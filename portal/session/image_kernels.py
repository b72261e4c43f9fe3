"""Kernels in images: how one is started, and that a page hears of all of them."""

from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_server.services.kernelspecs.handlers import MainKernelSpecHandler
from jupyter_server.utils import url_path_join
from tornado import web
from traitlets import Unicode

from portal.containers.run import exec_environment
from portal.session.image_shelf import Shelf


class ImageProvisioner(LocalProvisioner):
    """Starts a kernel in an image; says why when that cannot be."""

    image = Unicode()

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Put Apptainer before the kernel's command.

        Raises `portal.containers.images.ImageError`, whose words JupyterLab shows beside the
        notebook.
        """
        prepared = await super().pre_launch(**kwargs)
        manager: Any = self.parent
        shelf: Shelf = manager.kernel_spec_manager.shelf
        # jupyter_client takes "python3" for its own interpreter.
        command = [self.kernel_spec.argv[0], *prepared["cmd"][1:]]
        prepared["cmd"] = await shelf.argv(self.image, command)
        prepared["env"] = exec_environment(prepared["env"])
        return dict(prepared)


class ImageSpecsHandler(MainKernelSpecHandler):
    """All kernels, after a look at the images: a new one is there once the page is loaded anew."""

    @web.authenticated
    async def get(self) -> None:
        """Give them."""
        manager: Any = self.kernel_spec_manager
        await manager.shelf.look()
        answered: Any = super().get()
        await answered


def routes(base_url: str) -> list[tuple[str, type[MainKernelSpecHandler]]]:
    """Give the route that takes the place of the server's own."""
    return [(url_path_join(base_url, "api/kernelspecs"), ImageSpecsHandler)]
