"""The catalogue of a session's images, and how a kernel is run in one."""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dsportal.containers import images, run
from dsportal.containers.images import ImageFile, ImageFileError
from dsportal.session.files.mounts import Mounts, NoAnswer
from dsportal.session.kernels.image_probe import Answers, ask
from dsportal.session.kernels.image_specs import CatalogueImage
from dsportal.session_schema import Containers

log = logging.getLogger(__name__)

T = TypeVar("T")

# A page waits so long for images that nobody has looked into yet, then shows what is known.
_PATIENCE_SECONDS = 3.0
# What may be part of a kernel's name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


@dataclass
class SessionImages:
    """Looks at the images, and says how a program is run in one."""

    containers: Containers
    home: Path
    mounts: Mounts
    folders: tuple[str, ...] = ()
    """What images see besides the home and ``/tmp``, where it is there."""
    catalogue: Mapping[str, CatalogueImage] = field(default_factory=dict)
    """By their names; what was found by now."""
    _looking: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self._answers = Answers(self.home)
        # Stamps of images that did not answer, with the reason: not asked again by this session.
        self._silent: dict[str, str] = {}

    def specs(self) -> dict[str, dict[str, Any]]:
        """Return the specs of all kernels in images."""
        known = (entry.specs() for entry in self.catalogue.values())
        return {name: spec for specs in known for name, spec in specs.items()}

    async def look(self) -> None:
        """Look which images there are and what is new in them; wait for that, but not long."""
        if self.containers.apptainer is None:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(self.containers.apptainer))
        await asyncio.wait({self._looking}, timeout=_PATIENCE_SECONDS)

    async def argv(self, name: str, command: list[str]) -> list[str]:
        """Return what runs a command in an image, as the image is now. Raises `ImageFileError`."""
        entry = self.catalogue.get(name)
        if entry is None or self.containers.apptainer is None:
            raise ImageFileError(f"The image of this kernel, {name}, is not there any more.")
        try:
            await self._examined(entry)
        except ImageFileError as error:
            raise ImageFileError(entry.with_trouble(str(error)).trouble) from error
        if entry.trouble:
            raise ImageFileError(entry.trouble)
        binds = await asyncio.gather(*map(self._is_there, (*self.containers.binds, *self.folders)))
        return run.exec_argv(
            self.containers.apptainer,
            str(entry.path),
            command,
            home=str(self.home),
            binds=[folder for folder in binds if folder],
            nv=run.has_nvidia_devices(),
        )

    async def _look(self, apptainer: str) -> None:
        found = [*self._sites(), *await self._own()]
        self.catalogue = {
            entry.name: self.catalogue[entry.name]
            for entry in found
            if entry.name in self.catalogue
        }
        for entry in found:
            known = await self._looked_into(entry, apptainer)
            if known.trouble and known != self.catalogue.get(entry.name):
                log.warning("No kernel: %s", known.trouble)
            self.catalogue = {**self.catalogue, entry.name: known}

    def _sites(self) -> list[CatalogueImage]:
        listed = self.containers.images.items()
        return [
            CatalogueImage(f"image-{name}", image.title, Path(image.path)) for name, image in listed
        ]

    async def _own(self) -> list[CatalogueImage]:
        if self.containers.own_images is None:
            return []
        folder = self.home / self.containers.own_images
        try:
            found = await self._in_time(partial(images.own_images, folder), folder)
        except ImageFileError as error:
            log.warning("No kernels of own images: %s", error)
            return []
        return [
            CatalogueImage(f"own-{path.name}", path.stem, path, is_own=True)
            for path in found
            if _NAME.fullmatch(path.name)
        ]

    async def _looked_into(self, entry: CatalogueImage, apptainer: str) -> CatalogueImage:
        try:
            image = await self._examined(entry)
            answer = await self._in_time(partial(self._answers.of, image), self.home)
            if answer is None:
                answer = await self._asked(image, apptainer)
        except ImageFileError as error:
            return entry.with_trouble(str(error))
        return entry.having(answer)

    async def _asked(self, image: ImageFile, apptainer: str) -> str:
        if image.stamp in self._silent:
            raise ImageFileError(self._silent[image.stamp])
        try:
            answer = await ask(image, apptainer, os.environ)
        except ImageFileError as error:
            self._silent[image.stamp] = str(error)
            raise
        await self._in_time(partial(self._answers.keep, image, answer), self.home)
        return answer

    async def _examined(self, entry: CatalogueImage) -> ImageFile:
        look = (
            partial(images.own_image, entry.path, os.getuid())
            if entry.is_own
            else partial(images.site_image, entry.path)
        )
        return await self._in_time(look, entry.path)

    async def _is_there(self, folder: str) -> str:
        """Return a folder that images can be shown, "" for one that is missing or silent."""
        try:
            is_there = await self._in_time(partial(os.path.exists, folder), folder)
        except ImageFileError as error:
            log.warning("Not shown in images: %s", error)
            return ""
        return folder if is_there else ""

    async def _in_time(self, work: Callable[[], T], path: Path | str) -> T:
        try:
            return await self.mounts.in_time(work, str(path))
        except NoAnswer as error:
            raise ImageFileError(str(error)) from error
        except OSError as error:
            raise ImageFileError(f"{path} cannot be read: {error.strerror}.") from error
