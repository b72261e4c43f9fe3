"""The header of an image in a file: SIF, as sylabs/sif describes it in doc.go."""

import struct

MARK = b"SIF_MAGIC\0"
HEADER = struct.Struct("<32s10s3s3s16s8q")
"""What starts it, `MARK`, version, architecture, number; then eight whole numbers.

Of those the fourth to sixth are: how many descriptors there are, where they begin, how long they
are; the last two, where the data begins and how long it is. Little-endian, nothing between fields.
"""
