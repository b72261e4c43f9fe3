"""Tools that tests need, made once: a folder, and the programs that fill it."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import bootstrap

_STAMP = "made-of"


def once(root: Path, made_of: bytes, make: Callable[[Path], None]) -> None:
    """Make ``root`` unless it is there, whole and of the same content.

    ``make`` gets a folder to work in, and leaves what is wanted in its ``root``.
    """
    digest = hashlib.sha256(made_of).hexdigest()
    stamp = root / _STAMP
    if stamp.exists() and stamp.read_text() == digest:
        return
    building = root.with_name(f".{root.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    make(building)
    (building / "root" / _STAMP).write_text(digest)
    shutil.rmtree(root, ignore_errors=True)
    (building / "root").rename(root)
    shutil.rmtree(building)


def call(
    argv: Sequence[str], *, seconds: float, folder: Path | None = None, **variables: str
) -> None:
    """Run one in the deployment's environment and these variables; raises `RuntimeError`."""
    done = subprocess.run(
        argv,
        cwd=folder,
        env=bootstrap.child_environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        timeout=seconds,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}")


def lent() -> dict[str, str]:
    """Return the variables that show another machine what of this one's is lent to it."""
    kept = {name: value for name, value in os.environ.items() if re.search("_CERTS?", name)}
    return {**kept, "PIP_FIND_LINKS": " ".join(map(str, wheel_folders()))}


def wheel_folders() -> list[Path]:
    """Return where this machine's pip finds wheels besides its index."""
    return [Path(place) for place in bootstrap.pip_find_links() if Path(place).is_dir()]


def within(
    root: Path,
    argv: Sequence[str],
    *,
    bound: Iterable[str | Path] = (),
    lent: Iterable[str | Path] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Say how to run a program of another root, which stays as it is, in this machine's network.

    ``bound`` are folders of this machine that it writes, as ``HERE`` or ``HERE:THERE``; ``lent``
    are such that it only reads.
    """
    return [
        *("/usr/bin/systemd-nspawn", "--quiet", f"--directory={root}", "--volatile=overlay"),
        *("--register=no", "--keep-unit", "--as-pid2", "--console=pipe"),
        "--resolv-conf=copy-host",
        *(f"--bind={each}" for each in bound),
        *(f"--bind-ro={each}" for each in lent),
        *(f"--setenv={name}={value}" for name, value in variables.items()),
        *("--", *argv),
    ]
