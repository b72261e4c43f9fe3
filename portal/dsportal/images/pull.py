"""Pulling an image: from its name in a registry to a file that Apptainer runs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dsportal.images import programs
from dsportal.images.errors import ImageError
from dsportal.images.image_folder import ImageFolder, ImageRecord
from dsportal.images.key import Key
from dsportal.images.progress import PullProgress
from dsportal.images.reference import Reference
from dsportal.images.registry import Found, Registry
from dsportal.images.site import Site
from dsportal.images.size import bytes_in, free_bytes

Say = Callable[[str], None]
_BUILD_HOURS = 6.0
_WAIT_MINUTES = 120.0
_GB = 10**9
# A ninth of the time of mksquashfs's own choice, gzip, for a smaller file (docs/explanation/
# containers.md). Without the limit it takes a quarter of the node's memory, not of the job's.
_PACKING = "-comp zstd -Xcompression-level 6 -mem 256M"


@dataclass(frozen=True)
class Pull:
    """A pull of images into a folder, with its size limit."""

    site: Site
    image_folder: ImageFolder
    say: Say
    limit_gb: int = 0
    """What the folder may hold; 0 for all that fits."""

    def image(self, reference: Reference, key: Key | None) -> ImageRecord:
        """Bring an image unless it is there; return its record. Raises `ImageError`."""
        registry = Registry(self.site, reference, key)
        found = registry.find()
        self.say(f"{reference} is {found.digest}, {_gb(found.size)} GB to download")
        file = reference.file_name(found.digest)
        try:
            with self.image_folder.only_one(found.digest, minutes=_WAIT_MINUTES, wait=self._waits):
                there = self.image_folder.find(found.digest, file)
                return there or self._bring(registry, found, file)
        except OSError as error:
            raise ImageError(f"{self.image_folder.folder}: {error.strerror}") from error

    def _waits(self) -> None:
        self.say("Somebody else is pulling this image; waiting for that ...")

    def _bring(self, registry: Registry, found: Found, file: str) -> ImageRecord:
        workplace = self.image_folder.workplace(found.digest)
        layout = workplace / "layout"
        self._refuse_without_room(found, layout)
        progress = PullProgress(found.size, self.say)
        registry.fetch(found, layout, progress.at)
        self.say("Download complete. Building the image file ...")
        made = self._built(layout, workplace / "image.sif")
        record = ImageRecord(
            file=file,
            reference=str(registry.reference),
            digest=found.digest,
            size=made.stat().st_size,
            pulled_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self.image_folder.put(made, record)
        return record

    def _refuse_without_room(self, found: Found, layout: Path) -> None:
        """Refuse what is sure to fail: layers and file are about as large as each other."""
        needed = 2 * found.size - bytes_in(layout)
        free = free_bytes(self.image_folder.folder)
        if free < needed:
            raise ImageError(
                f"{self.image_folder.folder} has {_gb(free)} GB free, and this image needs "
                f"{_gb(needed)} GB. Make room, or ask an administrator to"
            )
        used = self.image_folder.used()
        if self.limit_gb and used + needed > self.limit_gb * _GB:
            raise ImageError(
                f"{self.image_folder.folder} may hold {self.limit_gb} GB, has {_gb(used)} and "
                f"needs {_gb(needed)} more. Ask an administrator to remove images, or use --own"
            )

    def _built(self, layout: Path, made: Path) -> Path:
        folder = made.parent
        places = {name: str(folder) for name in ("HOME", "TMPDIR", "APPTAINER_TMPDIR")}
        argv = [self.site.apptainer, "build", "--force", "--disable-cache"]
        argv += [f"--mksquashfs-args={_PACKING}", str(made)]
        try:
            programs.run(
                [*argv, f"oci:{layout}"], hours=_BUILD_HOURS, environment=places, folder=folder
            )
        except programs.Failed as error:
            if "no space left" in str(error).lower() or "quota" in str(error).lower():
                raise ImageError(
                    f"{folder} is full: no room to make the file. Make room and run the command "
                    "again: what has arrived is kept"
                ) from error
            last = (str(error).strip().splitlines() or ["no reason given"])[-1]
            raise ImageError(f"The image cannot be made. Apptainer says: {last}") from error
        return made


def _gb(size: int) -> str:
    return f"{size / _GB:.{1 if size >= _GB else 3}f}"
