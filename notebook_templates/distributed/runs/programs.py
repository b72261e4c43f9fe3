"""A program in this session, whose lines are printed as they come."""

import subprocess
from collections.abc import Callable, Sequence


def print_lines(argv: Sequence[str], after_each: Callable[[], object]) -> int:
    """Run a program; after each line that it wrote call ``after_each``. Return its exit code.

    What is no text, as of a library or a file's name, does not end it.
    """
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        assert running.stdout
        for line in running.stdout:
            print(line, end="")
            after_each()
    return running.returncode
