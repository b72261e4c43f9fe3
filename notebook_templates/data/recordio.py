"""MXNet's RecordIO, .rec with its index .idx, without MXNet.

A part is: magic number (4 bytes), flag (3 bits) and length (29 bits), data, zeros up to a multiple
of four. Where the data has the magic number at a multiple of four, it is left out and the record
is split there: flag 0 is a whole record, 1 its first part, 2 a middle one, 3 the last
(dmlc-core/include/dmlc/recordio.h). The data begins with MXNet's header: flag, label, two numbers
(mxnet.recordio.IRHeader).
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from jpegs import JpegImage

SUFFIXES = (".rec", ".idx")
MAGIC = struct.pack("<I", 0xCED7230A)
HEADER = struct.Struct("<IfQQ")
LENGTH_BITS = 29
WHOLE, FIRST, MIDDLE, LAST = range(4)


class RecordError(Exception):
    """A record whose bytes are not those that were written."""


def index_of(path: Path) -> Path:
    """Return the name of a shard's index; a temporary shard's too."""
    return path.with_name(path.name.replace(*SUFFIXES))


def write(path: Path, pictures: Iterator[JpegImage]) -> int:
    """Write one shard and its index; return the number of records."""
    count = 0
    with path.open("wb") as file, index_of(path).open("w") as index:
        for picture in pictures:
            index.write(f"{count}\t{file.tell()}\n")
            data = HEADER.pack(0, picture.label, count, 0) + picture.encoded
            file.writelines(parts(data))
            count += 1
    return count


def read(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield label and JPEG data of each record; raise RecordError where a record is damaged."""
    record = b""
    with path.open("rb") as file:
        while head := file.read(8):
            if len(head) < 8 or head[:4] != MAGIC:
                raise RecordError(f"{path}: a record's head is damaged")
            (word,) = struct.unpack("<I", head[4:])
            flag, length = word >> LENGTH_BITS, word & (1 << LENGTH_BITS) - 1
            data = file.read(length + -length % 4)
            if len(data) < length:
                raise RecordError(f"{path}: the last record is cut short")
            record += (MAGIC if flag in (MIDDLE, LAST) else b"") + data[:length]
            if flag in (WHOLE, LAST):
                yield label_of(path, record), record[HEADER.size :]
                record = b""
    if record:
        raise RecordError(f"{path}: the last record is cut short")


def label_of(path: Path, record: bytes) -> int:
    """Return the label in a record's header; raise RecordError where there is none."""
    try:
        return int(HEADER.unpack_from(record)[1])
    except (struct.error, ValueError, OverflowError) as error:
        raise RecordError(f"{path}: a record's header is damaged") from error


def parts(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of one record, split where the data has the magic number."""
    cuts = aligned(data)
    starts = [0, *(cut + 4 for cut in cuts)]
    ends = [*cuts, len(data)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        flag = WHOLE if not cuts else FIRST if not number else LAST if end == ends[-1] else MIDDLE
        length = end - start
        yield MAGIC + struct.pack("<I", flag << LENGTH_BITS | length)
        yield data[start:end] + bytes(-length % 4)


def aligned(data: bytes) -> list[int]:
    """Return where the magic number stands at a multiple of four."""
    found, at = [], data.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            found.append(at)
        at = data.find(MAGIC, at + 1)
    return found
