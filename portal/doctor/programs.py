"""Other programs, run for a limited time."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Answer:
    """What a program said; ``status`` is None where it did not run or did not end in time."""

    status: int | None
    said: str
    complained: str

    @property
    def last_words(self) -> str:
        """Its last line, the reason in most cases."""
        lines = (self.complained.strip() or self.said.strip()).splitlines()
        return lines[-1].strip() if lines else f"status {self.status}"


def ask(
    *argv: str, seconds: float = 8.0, stdin: str = "", environment: Mapping[str, str] | None = None
) -> Answer:
    """Run a program with little environment; never raise because of it."""
    variables = {"PATH": PATH, "LC_ALL": "C"} | dict(environment or {})
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
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"{argv[0]} did not answer in {seconds:g} s")
    except OSError as error:
        return Answer(None, "", f"{argv[0]}: {error.strerror}")
    return Answer(done.returncode, done.stdout, done.stderr)


def words_of(argv: Sequence[str]) -> str:
    """Write a command for an administrator to repeat."""
    return " ".join(argv)
