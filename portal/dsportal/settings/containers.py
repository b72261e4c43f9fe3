"""Settings of images in which kernels, sessions and jobs run, with Apptainer."""

from typing import Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from dsportal.images.errors import ImageError
from dsportal.images.reference import parse
from dsportal.settings.table import Table, setting
from dsportal.values import FolderName, MarkTables, Name, OptionalPath, Paths, Text


class ImageSettings(Table):
    """An image that the site offers to everybody."""

    path: OptionalPath = setting(
        "", "The image on the compute nodes: a SIF file, or a folder with a root file system."
    )
    address: Text = setting(
        "",
        "The image's name in a registry, instead of `path`, such as "
        "`nvcr.io/nvidia/pytorch:24.05-py3`. `portal image pull` downloads it into the cache.",
    )
    title: Name = setting(..., "The image's name in the form, and in the names of its kernels.")
    description: Text = setting("", "What it is for, in one sentence.")
    kernels: bool = setting(True, "Whether sessions offer the kernels in it.")
    session: bool = setting(
        False,
        "Whether the form offers it for a whole session. Such a session runs only what is in the "
        "image, which must have jupyterhub-singleuser.",
    )

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if bool(self.path) == bool(self.address):
            raise PydanticCustomError("rule", "needs either path or address")
        if self.address:
            try:
                parse(self.address)
            except ImageError as error:
                raise PydanticCustomError("rule", "{words}", {"words": str(error)}) from error
        return self


class ContainerSettings(Table):
    """Container images for kernels, sessions and jobs, run with Apptainer."""

    apptainer: OptionalPath = setting(
        "", "The `apptainer` program on the compute nodes; empty for no containers."
    )
    images: MarkTables[ImageSettings] = setting(
        {},
        "The image NAME; a name has 1 to 32 lower-case letters, digits and hyphens.",
    )
    cache: OptionalPath = setting(
        "",
        "The folder that `portal image pull` fills for everybody, as the compute nodes see it; "
        "needed for images with an `address`.",
    )
    own_images: FolderName | Literal[""] = setting(
        "images",
        "The folder in a user's home whose images become kernels in that user's sessions; empty "
        "if users may not have images of their own.",
    )
    binds: Paths = setting(
        (),
        "Paths on the compute nodes that are visible in images, besides the home, `/tmp`, "
        "`session.folders` and `session.mounts`.",
    )

    @model_validator(mode="after")
    def _images_need_the_program(self) -> Self:
        if self.images and not self.apptainer:
            raise PydanticCustomError("rule", "images needs containers.apptainer")
        if not self.cache and any(image.address for image in self.images.values()):
            raise PydanticCustomError("rule", "an image with an address needs containers.cache")
        return self

    def file_of(self, image: ImageSettings) -> str:
        """Return where an image is on the compute nodes."""
        return image.path or f"{self.cache}/{parse(image.address).link}"
