"""What of our JupyterLab extension needs no browser, under node's own test runner."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import lab_extension
import wheels

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]


def test_the_extensions_own_tests_pass() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/lab_extension.py"), "test"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


def test_it_is_built_again_when_a_source_has_changed(tmp_path: Path) -> None:
    clone, out = tmp_path / "clone", tmp_path / "out"
    for part in ("deploy", wheels.LAB):
        unwanted = shutil.ignore_patterns("node_modules", "ansible", "__pycache__")
        shutil.copytree(ROOT / part, clone / part, ignore=unwanted)
    described = out / "labextensions" / lab_extension.NAME / "package.json"

    def entry() -> str | None:
        try:
            build: dict[str, str] = json.loads(described.read_text())["jupyterlab"]["_build"]
        except (FileNotFoundError, KeyError, ValueError):
            return None
        return build["load"]

    with (tmp_path / "log").open("w+") as log:
        argv: list[str | Path] = [sys.executable, clone / "deploy/lab_extension.py", "watch", out]
        built_in = tmp_path / "tmp"
        built_in.mkdir()
        watching = subprocess.Popen(
            argv,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(built_in)},
        )
        try:
            until(lambda: entry() is not None, seconds=60, what="it is built")
            first = entry()
            with (clone / wheels.LAB / "src/index.ts").open("a") as code:
                code.write("\nconsole.log('changed');\n")
            until(lambda: entry() not in (first, None), seconds=60, what="it is built again")
        finally:
            os.killpg(watching.pid, signal.SIGTERM)
            watching.wait(10)
        assert not list(built_in.glob("portal-lab-*"))
