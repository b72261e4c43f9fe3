"""WebDataset's shards: tar files in which a sample's files follow each other, with one key."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from jpegs import JpegImage

SUFFIXES = (".tar",)
TarError = tarfile.TarError


def write(path: Path, pictures: Iterator[JpegImage]) -> int:
    """Write one shard, KEY.jpg and KEY.cls for each picture; return the number of pictures."""
    count = 0
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
        for picture in pictures:
            add(shard, f"{picture.key}.jpg", picture.encoded)
            add(shard, f"{picture.key}.cls", str(picture.label).encode())
            count += 1
    return count


def add(shard: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file without owner and time, so that the same pictures make the same bytes."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    shard.addfile(entry, io.BytesIO(data))


def read(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield label and JPEG data of each picture; raise TarError where the file is damaged."""
    encoded = b""
    with tarfile.open(path, "r:") as shard:
        for entry in shard:
            file = shard.extractfile(entry)
            data = file.read() if file is not None else b""
            if entry.name.endswith(".jpg"):
                encoded = data
            else:
                yield int(data), encoded
