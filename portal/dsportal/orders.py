"""Settings as what the hub says to each session: `dsportal.session.config.whole` reads it."""

from dsportal.settings.containers import Containers, Image
from dsportal.settings.session import Kernel
from dsportal.settings.tools import Tool


def kernel_order(kernel: Kernel) -> dict[str, object]:
    """Give a kernel as a session takes it."""
    return {
        "display_name": kernel.display_name,
        "modules": list(kernel.modules),
        "interpreter": kernel.interpreter,
        "language": kernel.language,
        "environment": dict(kernel.environment),
    }


def tool_order(tool: Tool) -> dict[str, object]:
    """Give a web tool as a session takes it."""
    return {
        "title": tool.title,
        "icon": tool.icon,
        "command": list(tool.command),
        "modules": list(tool.modules),
        "environment": dict(tool.environment),
        "listens": tool.listens,
        "port": tool.port,
        "own_network": tool.has_own_network,
        "absolute_url": tool.absolute_url,
        "start_timeout_seconds": tool.start_timeout_seconds,
    }


def containers_order(containers: Containers) -> dict[str, object]:
    """Give what runs in images as a session takes it."""
    return {
        "apptainer": containers.apptainer,
        "images": {
            name: {"title": image.title, "path": containers.file_of(image)}
            for name, image in containers.images.items()
            if image.kernels
        },
        "own_images": containers.own_images,
        "binds": list(containers.binds),
    }


def image_order(containers: Containers, image: Image) -> dict[str, object]:
    """Give an image as a session takes it that runs in it."""
    return {
        "title": image.title,
        "path": containers.file_of(image),
        "apptainer": containers.apptainer,
        "binds": list(containers.binds),
    }
