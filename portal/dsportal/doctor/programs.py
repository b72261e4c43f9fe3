"""Subprocesses with a time limit."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_NOBODY = 65534


@dataclass(frozen=True)
class ProgramAnswer:
    """Output of a program; ``status`` is None where it did not run or did not end in time."""

    status: int | None
    said: str
    complained: str

    @property
    def last_words(self) -> str:
        """Its last line, the reason in most cases."""
        lines = (self.complained.strip() or self.said.strip()).splitlines()
        return lines[-1].strip() if lines else f"status {self.status}"


def ask(
    *argv: str,
    seconds: float = 8.0,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    as_nobody: bool = False,
) -> ProgramAnswer:
    """Run a program with little environment; never raise because of it."""
    variables = {"PATH": PATH, "LC_ALL": "C"} | dict(environment or {})
    nobody = _NOBODY if as_nobody and os.geteuid() == 0 else None
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env=variables,
            cwd="/",
            user=nobody,
            group=nobody,
            extra_groups=None if nobody is None else [],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProgramAnswer(None, "", f"{argv[0]} did not answer in {seconds:g} s")
    except OSError as error:
        return ProgramAnswer(None, "", f"{argv[0]}: {error.strerror}")
    return ProgramAnswer(done.returncode, done.stdout, done.stderr)
