"""Signatures of notebooks, which say whose outputs may run scripts: read without writing.

Jupyter notes at each look when it was, and makes a key where there is none, so that a full home, or
one that is read only, would let no notebook be opened (nbformat 5.11).
"""

import logging
import os
import sqlite3
from base64 import encodebytes
from contextlib import suppress
from pathlib import Path
from typing import Any

from nbformat.sign import NotebookNotary, SQLiteSignatureStore
from traitlets import default

log = logging.getLogger(__name__)

_KEY_BYTES = 1024


class Signatures(SQLiteSignatureStore):
    """Jupyter's database of notebook signatures."""

    def check_signature(self, digest: str, algorithm: str) -> bool:
        """Say whether a signature is there; where that cannot be read, it is not."""
        try:
            row = self.db.execute(
                "SELECT 1 FROM nbsignatures WHERE algorithm = ? AND signature = ?",
                (algorithm, digest),
            ).fetchone()
        except sqlite3.Error as error:
            log.warning("The signatures of notebooks cannot be read: %s", error)
            return False
        return row is not None

    def store_signature(self, digest: str, algorithm: str) -> None:
        """Keep a signature; a notebook is saved where that fails, and not trusted later."""
        try:
            super().store_signature(digest, algorithm)  # type: ignore[no-untyped-call]
        except sqlite3.Error as error:
            log.warning("A notebook's signature cannot be written: %s", error)
            with suppress(sqlite3.Error):
                self.db.rollback()


class Notary(NotebookNotary):
    """Signs with the user's key, or with one of this session where that cannot be kept."""

    @default("store_factory")
    def _our_store(self) -> Any:
        return lambda: Signatures(self.db_file)  # type: ignore[no-untyped-call]

    @default("secret")
    def _signing_key(self) -> bytes:
        file = Path(self.secret_file)
        with suppress(OSError):
            # An empty one is what a full home left of an earlier attempt.
            if key := file.read_bytes():
                return key
        key = encodebytes(os.urandom(_KEY_BYTES))
        try:
            _write(file, key)
        except OSError as error:
            log.warning("The key that signs notebooks cannot be kept: %s", error)
        return key


def _write(file: Path, key: bytes) -> None:
    """Write it as a whole or not at all, for the user's eyes only."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as opened:
            opened.write(key)
        fresh.replace(file)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
