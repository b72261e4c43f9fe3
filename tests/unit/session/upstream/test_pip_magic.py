"""What a kernel does with ``%pip``, with our file of configuration as a session gives it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from IPython.core.magics.packaging import PackagingMagics

from dsportal.session.kernels.configuration import install

READ = """
import os, sys
from traitlets.config.loader import PyFileConfigLoader
os.access = lambda path, mode: path == "/nowhere"
PyFileConfigLoader(sys.argv[1]).load_config()
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.system = lambda command: print("pip runs", command)
shell.run_line_magic("pip", sys.argv[2])
"""


def said(folder: Path, line: str, **variables: str) -> str:
    file = install(folder)
    environment = {**os.environ, "PORTAL_ENVIRONMENTS": "/home/ann/environments", **variables}
    # In the place of its user's, which it takes for read-only, IPython makes a folder of its own.
    environment["TMPDIR"] = str(folder)
    argv = [sys.executable, "-c", READ, str(file), line]
    done = subprocess.run(
        argv, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_an_install_for_everybody_is_offered_as_ones_own(tmp_path: Path) -> None:
    told = said(tmp_path, "install -q einops 'kornia>0.8'", LOADEDMODULES="shared:pytorch/2.13")
    assert "pip runs" not in told
    assert "!portal env create my-pytorch --on pytorch/2.13 einops 'kornia>0.8'" in told


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("install -r ~/needs/all.txt --requirement=more.txt", "-r ~/needs/all.txt -r more.txt"),
        ("install 'einops >= 0.8'  # newer", "'einops >= 0.8'"),
        ("install --extra-index-url https://x.org/simple -f /wheels einops", "einops"),
        ("install 'einops", "einops"),
    ],
)
def test_the_command_asks_for_what_pip_was_asked_for(
    tmp_path: Path, line: str, wanted: str
) -> None:
    told = said(tmp_path, line, LOADEDMODULES="")
    assert f"!portal env create my-python {wanted}\n" in told


@pytest.mark.parametrize("line", ["list", "install --user einops", "install --target=x einops"])
def test_all_else_is_pips(tmp_path: Path, line: str) -> None:
    assert "pip runs" in said(tmp_path, line)


def test_where_there_are_no_own_environments_pip_is_as_it_is(tmp_path: Path) -> None:
    assert "pip runs" in said(tmp_path, "install einops", PORTAL_ENVIRONMENTS="")


def test_the_magic_that_is_replaced_is_still_there() -> None:
    magics: Any = PackagingMagics
    assert magics.magics["line"]["pip"] == "pip"
