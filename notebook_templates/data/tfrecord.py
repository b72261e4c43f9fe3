"""TFRecord files of tf.train.Example, with ImageNet's fields, without TensorFlow.

A record is: length (8 bytes), its checksum (4), data, its checksum (4), little endian; the checksum
is CRC-32C, rotated and moved by a constant (tensorflow/core/lib/io/record_writer.h). An Example is
protocol buffers' encoding of a map from names to lists (tensorflow/core/example/feature.proto).
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from jpegs import JpegImage

SUFFIXES = ("",)  # ImageNet's files have none: train-00000-of-01024
BYTES_LIST, INT64_LIST = 1, 3  # field numbers in Feature
LENGTH_DELIMITED = 2


class TfrecordError(Exception):
    """A record whose bytes are not those that were written."""


def write(path: Path, pictures: Iterator[JpegImage]) -> int:
    """Write one shard; return the number of records."""
    count = 0
    with path.open("wb") as file:
        for picture in pictures:
            data = example(picture)
            length = struct.pack("<Q", len(data))
            file.writelines((length, checksum(length), data, checksum(data)))
            count += 1
    return count


def read(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield label and JPEG data of each record; raise TfrecordError where a checksum is wrong."""
    with path.open("rb") as file:
        while head := file.read(12):
            if len(head) < 12 or checksum(head[:8]) != head[8:]:
                raise TfrecordError(f"{path}: a record's length is damaged")
            (length,) = struct.unpack("<Q", head[:8])
            data = file.read(length)
            if len(data) < length or checksum(data) != file.read(4):
                raise TfrecordError(f"{path}: a record's data is damaged")
            yield picture_of(data)


def checksum(data: bytes) -> bytes:
    """Return the masked CRC-32C, as it stands in the file."""
    # Here, because a training that reads no such files can do without the package.
    import google_crc32c

    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def example(picture: JpegImage) -> bytes:
    """Encode a picture as a tf.train.Example."""
    texts = {
        "image/class/synset": os.fsencode(picture.class_name),
        "image/class/text": os.fsencode(picture.class_name),
        "image/colorspace": b"RGB",
        "image/encoded": picture.encoded,
        "image/filename": os.fsencode(Path(picture.path).name),
        "image/format": b"JPEG",
    }
    numbers = {
        "image/channels": 3,
        "image/class/label": picture.label,
        "image/height": picture.height,
        "image/width": picture.width,
    }
    features = {name: field(BYTES_LIST, field(1, text)) for name, text in texts.items()}
    features |= {
        name: field(INT64_LIST, field(1, varint(number))) for name, number in numbers.items()
    }
    entries = (
        field(1, field(1, name.encode()) + field(2, features[name])) for name in sorted(features)
    )
    return field(1, b"".join(entries))


def field(number: int, data: bytes) -> bytes:
    """Encode one field that carries its length."""
    return varint(number << 3 | LENGTH_DELIMITED) + varint(len(data)) + data


def varint(number: int) -> bytes:
    """Encode a number that is not negative, seven bits a byte, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def picture_of(data: bytes) -> tuple[int, bytes]:
    """Return label and JPEG data of an Example that was written here."""
    lists = {}
    for _, features in fields(memoryview(data)):
        for _, entry in fields(features):
            parts = dict(fields(entry))
            lists[bytes(parts[1])] = dict(fields(parts[2]))
    label = dict(fields(lists[b"image/class/label"][INT64_LIST]))[1]
    encoded = dict(fields(lists[b"image/encoded"][BYTES_LIST]))[1]
    return number_at(label, 0)[0], bytes(encoded)


def fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and data of each field that carries its length."""
    at = 0
    while at < len(data):
        tag, at = number_at(data, at)
        length, at = number_at(data, at)
        yield tag >> 3, data[at : at + length]
        at += length


def number_at(data: memoryview, at: int) -> tuple[int, int]:
    """Decode the number at a place; return it and the place behind it."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
