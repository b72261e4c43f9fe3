"""Which jobs the role ends because nobody runs them any more."""

import builtins
import runpy
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests import roles

PROGRAM = roles.ROLES / "slurm_node/files/lost_jobs.py"
LISTED = """\
7                   1         1-02:03:04          node001
8                   1         0:09                node001
9                   1         2:03:04             node002
"""


def test_a_job_that_started_a_while_ago_and_has_no_process_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the python3 of the host: that of EL 9 is 3.9, whose zip is never strict."""
    zipped = zip

    def older(*iterables: Iterable[object]) -> Iterator[tuple[object, ...]]:
        return zipped(*iterables, strict=False)

    def run(argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        said = LISTED if argv[0].endswith("squeue") else ""
        return subprocess.CompletedProcess(argv, 0, said, "")

    monkeypatch.setattr(sys, "argv", [str(PROGRAM), "/nowhere/slurm.conf", "node001"])
    for name in ("SLURM_CONF", "LC_ALL"):
        monkeypatch.setenv(name, "")
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", run)
        patched.setattr(time, "sleep", lambda _: None)
        patched.setattr(builtins, "zip", older)
        runpy.run_path(str(PROGRAM))
    assert capsys.readouterr().out == "ended lost job 7\n"
