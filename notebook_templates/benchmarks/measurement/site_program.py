"""Programs of a site's own, which an option names: what they do only the site can, or may allow."""

import subprocess
import tempfile
from collections.abc import Sequence


class SiteProgramError(RuntimeError):
    """A site's program did not do its work; the message says which option named it, and why."""


def run(option: str, argv: Sequence[str], seconds: float) -> None:
    """Run the program that an option names to its end. Raises `SiteProgramError`."""
    # A file, not a pipe: what the program leaves running would keep a pipe open.
    with tempfile.TemporaryFile("w+") as said:
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SiteProgramError(f"{option} is {argv[0]!r}: {error}") from error
        if done.returncode != 0:
            said.seek(0)
            words = said.read().strip()[-500:]
            raise SiteProgramError(f"{option}: {argv[0]} ended with {done.returncode}: {words}")
