"""Make the folder TARGET a root-owned copy of SOURCE that everybody may read: SOURCE TARGET.

The copy is a folder of its own beside TARGET, which is a link to it, so that readers see the old
or the new tree and never half of one. Prints the copy's path when it is new.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

UNWANTED = {"__pycache__", ".ipynb_checkpoints"}


def files(source: Path) -> list[Path]:
    """Return the tree's files, relative to it, in order."""
    found = (path.relative_to(source) for path in source.rglob("*") if path.is_file())
    return sorted(path for path in found if not UNWANTED & set(path.parts))


def digest(source: Path, names: list[Path]) -> str:
    """Return the hash of names, contents and who may execute."""
    total = hashlib.sha256()
    for name in names:
        path = source / name
        total.update(f"{name}\0{os.access(path, os.X_OK)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]


def copy(source: Path, names: list[Path], target: Path) -> None:
    """Copy the files, readable by all and writable by none but root."""
    for name in names:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, place)
        place.chmod(0o755 if os.access(source / name, os.X_OK) else 0o644)


def main() -> None:
    """Copy under another name, rename, and let the link follow."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    os.umask(0o022)
    names = files(source)
    wanted = target.with_name(f"{target.name}-{digest(source, names)}")
    if target.is_symlink() and target.resolve() == wanted and wanted.is_dir():
        return
    if not wanted.is_dir():
        building = target.with_name(f".{wanted.name}.building")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        copy(source, names, building)
        building.rename(wanted)
    link = target.with_name(f".{target.name}.link")
    link.unlink(missing_ok=True)
    link.symlink_to(wanted.name)
    link.replace(target)
    print(wanted)


main()
