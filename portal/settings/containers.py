"""Images in which kernels, sessions and jobs run, with Apptainer."""

from typing import Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from portal.settings.table import Table, setting
from portal.values import AbsolutePath, FolderName, MarkTables, Name, OptionalPath, Paths, Text


class Image(Table):
    """An image that the site offers to everybody."""

    path: AbsolutePath = setting(
        ..., "The image on the compute nodes: a SIF file, or a folder with a root file system."
    )
    title: Name = setting(..., "What the form calls it, and kernels after their own name.")
    description: Text = setting("", "What it is for, in a sentence.")
    kernels: bool = setting(True, "Whether sessions offer the kernels that are in it.")
    session: bool = setting(
        False,
        "Whether the form offers it for a whole session, which runs nothing of the portal's own "
        "but what is in the image; jupyterhub-singleuser must be there.",
    )


class Containers(Table):
    """What can run in images."""

    apptainer: OptionalPath = setting(
        "", "The program apptainer on the compute nodes; empty for no containers."
    )
    images: MarkTables[Image] = setting(
        {},
        "The image NAME: 1 to 32 small letters, digits and hyphens.",
    )
    own_images: FolderName | Literal[""] = setting(
        "images",
        "The folder of a user's home whose images become kernels of that user's sessions; empty "
        "where the site allows no images of users' own.",
    )
    binds: Paths = setting(
        (),
        "What images see of the compute nodes, besides the home, `/tmp` and what "
        "`session.folders` and `session.mounts` name.",
    )

    @model_validator(mode="after")
    def _images_need_the_program(self) -> Self:
        if self.images and not self.apptainer:
            raise PydanticCustomError("rule", "images needs containers.apptainer")
        return self
