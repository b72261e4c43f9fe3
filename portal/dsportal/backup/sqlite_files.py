"""Names of SQLite's files in the hub's state: databases, and what lies beside one."""

import os
from pathlib import Path

_END = ".sqlite"
BESIDE = ("-wal", "-shm", "-journal")
"""Ends of the names of files that SQLite keeps beside a database, and puts into it when it is
opened: they belong to the database as it was, and to no copy (sqlite.org/tempfiles.html)."""
PATTERNS = (f"*{_END}", *(f"*{_END}{tail}" for tail in BESIDE))


def below(folder: Path) -> list[Path]:
    """List the databases at every depth, as `PATTERNS` leave them out of a tree at every depth."""
    found = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.suffix == _END)
