"""Some rows of a Parquet file as text: ``python -I -m dsportal.session.files.parquet_rows FIRST``.

A process of its own, for the time of one answer: pyarrow is large, slow to import, and written in
another language, and a file can be anything. It reads the file that is its standard input, and
prints one JSON object: what `table` returns. For what it cannot read it says why, and ends with 1.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from dsportal.session.files.bounded import bound

ROWS = 200
COLUMNS = 200
_CHARACTERS = 300
_BATCH_ROWS = 1024
_CPU_SECONDS = 60


def table(file: BinaryIO, first: int) -> dict[str, Any]:
    """Return `ROWS` rows from number ``first`` on (from 0), with their columns, as texts.

    A missing value is ``None``. Of very many columns the first `COLUMNS` are read.
    """
    opened = parquet.ParquetFile(file)
    schema = opened.schema_arrow
    fields = list(schema)[:COLUMNS]
    return {
        "columns": [{"name": field.name, "type": str(field.type)} for field in fields],
        "all_columns": len(schema),
        "first": first,
        "all_rows": opened.metadata.num_rows,
        "rows": [list(row) for part in _parts(opened, len(fields), first) for row in part],
    }


def _parts(opened: parquet.ParquetFile, columns: int, first: int) -> Iterator[Any]:
    """Give the rows of each batch that has some of those wanted."""
    groups, at = _groups(opened, first)
    names = None if columns == len(opened.schema_arrow) else opened.schema_arrow.names[:columns]
    for batch in opened.iter_batches(_BATCH_ROWS, row_groups=groups, columns=names):
        begin, end = max(first, at), min(first + ROWS, at + batch.num_rows)
        if begin < end:
            part = batch.slice(begin - at, end - begin)
            yield zip(*(map(_cut, texts(column)) for column in part.columns), strict=True)
        at += batch.num_rows
        if at >= first + ROWS:
            return


def _groups(opened: parquet.ParquetFile, first: int) -> tuple[list[int], int]:
    """Return the row groups that have the rows wanted, and the number of their first row."""
    found: list[int] = []
    begin = at = 0
    for number in range(opened.num_row_groups):
        rows = opened.metadata.row_group(number).num_rows
        if at + rows > first and at < first + ROWS:
            begin = begin if found else at
            found.append(number)
        at += rows
    return found, begin


def texts(column: pa.Array) -> list[str | None]:
    """Write the values of a column."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _is_fixed(kind):
        return [None if value is None else _length(value) for value in column.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Nothing makes sure that they are UTF-8.
        values = pc.cast(column, pa.large_binary()).to_pylist()
        return [None if value is None else value.decode(errors="replace") for value in values]
    try:
        return [value.as_py() for value in pc.cast(column, pa.string())]
    except (pa.ArrowException, ValueError):
        # Lists and records.
        return [_as_json(column, at) for at in range(len(column))]


def _as_json(column: pa.Array, at: int) -> str | None:
    try:
        value = column[at].as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        # Python has none for it, as for a nanosecond.
        return " ".join(column.slice(at, 1).to_string().split())
    return None if value is None else json.dumps(value, default=str, ensure_ascii=False)


def _length(value: bytes) -> str:
    return "1 byte" if len(value) == 1 else f"{len(value)} bytes"


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind))


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _CHARACTERS:
        return text
    return f"{text[:_CHARACTERS]}…"


def main() -> None:
    """Print what the file has."""
    bound(_CPU_SECONDS)
    # As many threads as cores, each with memory of its own, would not fit in there.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        with os.fdopen(0, "rb", closefd=False) as file:
            found = table(file, int(sys.argv[1]))
    except (pa.ArrowException, OSError, MemoryError) as error:
        sys.exit((str(error).splitlines() or ["it takes too much memory"])[0])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
