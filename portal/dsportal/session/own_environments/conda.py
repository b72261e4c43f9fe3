"""Environments that conda, mamba or micromamba makes, where a site or its user has one of them."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from dsportal.session.own_environments import words
from dsportal.session.own_environments.records import OwnEnvironmentError

PROGRAM_VARIABLE = "PORTAL_CONDA"
"""In a session, and in what is started from it: the site's program, if it has one."""
_PROGRAMS = ("micromamba", "mamba", "conda")


def program(environment: Mapping[str, str]) -> str:
    """Find the site's program, or one on the PATH; raises `OwnEnvironmentError`."""
    if told := environment.get(PROGRAM_VARIABLE):
        return told
    for name in _PROGRAMS:
        if found := shutil.which(name, path=environment.get("PATH", "")):
            return found
    raise OwnEnvironmentError(words.NO_CONDA)


def create_argv(
    program: str, prefix: Path, packages: Sequence[str], requirements: Sequence[str]
) -> list[str]:
    """Return the command that makes one; all three programs take these options."""
    files = [f"--file={file}" for file in requirements]
    return [program, "create", "--yes", f"--prefix={prefix}", *files, *packages]
