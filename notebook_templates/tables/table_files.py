"""Tables in files: CSV, and Parquet where the environment has a package that reads it."""

import hashlib
import lzma
import zlib
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
COMPRESSED = {".gz", ".bz2", ".xz", ".zip", ".zst"}
PARQUET = {".parquet", ".pq"}


class TabularDataError(ValueError):
    """A table does not have what is asked of it; the message names the column and the rule."""


def read(file: Path, as_text: Iterable[str] = ()) -> pd.DataFrame:
    """Read a table; the columns ``as_text`` stay as they are written: ``007`` is not 7.

    Empty fields, and what pandas takes for missing (``NA``, ``nan``, ``None``), are missing. Raises
    `TabularDataError` for a file that is not there or not a table.
    """
    endings = [ending.lower() for ending in file.suffixes]
    kind = endings[-2] if len(endings) > 1 and endings[-1] in COMPRESSED else file.suffix.lower()
    if not file.is_file():
        raise TabularDataError(f"{file}: there is no such file")
    try:
        if kind in PARQUET:
            return pd.read_parquet(file)
        if kind in SEPARATORS:
            types = dict.fromkeys(as_text, "str")
            return pd.read_csv(file, sep=SEPARATORS[kind], dtype=types, low_memory=False)
    except ImportError as error:
        raise TabularDataError(
            f"{file}: to read Parquet takes the package pyarrow, which this environment does not "
            "have: save the table as CSV"
        ) from error
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise TabularDataError(f"{file}: {error}") from error
    raise TabularDataError(
        f"{file} ends with {kind or 'nothing'}; it must be .csv, .tsv or .parquet"
    )


def digest(file: Path) -> str:
    """Return a file's SHA-256, by which a changed table is told.

    Raises `TabularDataError` where it cannot be read.
    """
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise TabularDataError(f"{file}: there is no such file") from error
    except OSError as error:
        raise TabularDataError(f"{file} cannot be read: {error.strerror}") from error
