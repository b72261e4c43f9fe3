"""In a process of its own, since file descriptor 2 is the process's."""

import subprocess
import sys

from tests.instance import ROOT

CODE = """
import os, sys
import native_output
os.write(2, b"before\\n")
try:
    with native_output.without_lines("a notice", "another"):
        os.write(2, b"I0000 a notice: x\\nan error\\n")
        print("python's", file=sys.stderr)
        os.write(2, b"another one\\nthe end")
        raise ImportError
except ImportError:
    os.write(2, b"\\nafter")
"""


def test_only_the_notices_are_left_out_also_of_what_fails() -> None:
    folder = ROOT / "notebook_templates/data"
    done = subprocess.run(
        [sys.executable, "-B", "-c", CODE], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines() == ["before", "an error", "python's", "the end", "after"]
