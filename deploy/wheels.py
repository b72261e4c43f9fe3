"""The wheels of our two distributions, the same bytes from the same sources.

Standard library only, as `bootstrap`. They are built from copies, so nothing is written into the
clone; the portal's has our extension of JupyterLab in it, built with npm's tools of its lock file.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import bootstrap

LAB = Path("portal/dsportal/lab")
"""Where the sources of the extension of JupyterLab are, in the repository or a copy of it."""
UNWANTED = ("node_modules", "labextension", "__pycache__")
"""Folders that were made in a clone."""


def build_wheels(folder: Path = bootstrap.CACHE / "wheels") -> list[Path]:
    """Build them, unless they have been built from the same sources, and return their paths.

    Python wants a wheel's name in its own form, so the folder carries the hash of the sources.
    """
    final = folder / sources_hash(bootstrap.REPOSITORY)
    with bootstrap.only_one(folder, "wheels"):
        if not final.exists():
            building = folder / ".building"
            shutil.rmtree(building, ignore_errors=True)
            build(building, "wheel")
            (building / "dist").rename(final)
            shutil.rmtree(building)
    return sorted(final.iterdir())


def sources_hash(root: Path) -> str:
    """Return the hash of all that they are built from: our sources below ROOT, and the tools."""
    sources = []
    for name in bootstrap.DISTRIBUTIONS:
        for place, folders, names in os.walk(root / name):
            folders[:] = set(folders) - set(UNWANTED)
            sources += [Path(place, name) for name in names]
    sources.sort()
    places = "\n".join(str(path.relative_to(root)) for path in sources)
    tools = [Path(__file__), bootstrap.lock_file("deploy"), bootstrap.lock_file("lab")]
    return bootstrap.content_hash([*sources, *tools], places.encode())


def build(folder: Path, *targets: str) -> list[Path]:
    """Build them from copies below FOLDER as ``wheel`` or ``sdist``, and return the files there."""
    hatchling = bootstrap.deploy_environment() / "bin/hatchling"
    for name in bootstrap.DISTRIBUTIONS:
        copy_sources(Path(name), folder / "sources")
    build_extension(folder / "sources" / LAB)
    for name in bootstrap.DISTRIBUTIONS:
        for target in targets:
            argv: list[str | Path] = [hatchling, "build", "-t", target, "-d", folder / "dist"]
            run_in(folder / "sources" / name, argv)
    return sorted((folder / "dist").iterdir())


def copy_sources(path: Path, folder: Path) -> None:
    """Copy a folder of the repository, without what was made in it."""
    unwanted = shutil.ignore_patterns(*UNWANTED)
    shutil.copytree(bootstrap.REPOSITORY / path, folder / path, ignore=unwanted)


def link_tools(lab: Path, tools: str = "lab") -> None:
    """Let node find npm's tools beside a copy of the extension's sources."""
    installed, _ = bootstrap.environment(tools, bootstrap.CACHE / "environments")
    (lab / "node_modules").symlink_to(installed / "node_modules")


def build_extension(lab: Path) -> None:
    """Build the extension beside a copy of its sources, where the portal's wheel takes it from."""
    link_tools(lab)
    run_in(lab, script_of(lab, "build"))


def script_of(lab: Path, name: str) -> list[str]:
    """Return a script of package.json as words; it needs node, and not npm itself."""
    program, *words = shlex.split(json.loads((lab / "package.json").read_text())["scripts"][name])
    return [f"/usr/bin/{program}", *words]


def run_in(folder: Path, argv: Sequence[str | Path]) -> None:
    """Run a program that builds; what it says is of interest only when it fails."""
    done = subprocess.run(
        argv,
        cwd=folder,
        # Files in a wheel bear a date: that of 2020.
        env=bootstrap.child_environment(SOURCE_DATE_EPOCH="1577836800"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise bootstrap.DeploymentError(f"{folder} could not be built:\n{done.stdout}")
