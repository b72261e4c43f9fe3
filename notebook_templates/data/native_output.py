"""What libraries' native code writes to standard error: a notebook shows all of it in red."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

TENSORFLOW_NOTICES = (
    "All log messages before absl::InitializeLog() is called",
    "oneDNN custom operations are on",
)
"""What TensorFlow 2.21 says of itself on processors with VNNI, whatever TF_CPP_MIN_LOG_LEVEL says:
it is written while its library is loaded, before that variable is read."""


@contextmanager
def without_lines(*notices: str) -> Iterator[None]:
    """Hold back standard error (file descriptor 2); write at the end what has none of `notices`."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            for line in held:
                if not any(notice.encode() in line for notice in notices):
                    os.write(2, line)
