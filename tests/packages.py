"""Packages that are made here, so that pip needs no registry."""

import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str = "1.0") -> Path:
    """Make a package of one line."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"version = '{version}'\n")
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    return file
