"""What of our JupyterLab extension needs no browser, under node's own test runner."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import lab_extension
import pytest

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


def test_it_is_built_again_when_a_source_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, out = tmp_path / "lab", tmp_path / "out"
    shutil.copytree(lab_extension.SOURCES, sources)
    monkeypatch.setattr(lab_extension, "SOURCES", sources)
    built = lab_extension.build_what_changed(out, 0)
    described = out / "package.json"
    first = json.loads(described.read_text())["jupyterlab"]["_build"]["load"]
    described.unlink()
    assert lab_extension.build_what_changed(out, built) == built
    assert not described.exists()

    with (sources / "src/index.ts").open("a") as code:
        code.write("\nconsole.log('changed');\n")
    assert lab_extension.build_what_changed(out, built) > built
    assert json.loads(described.read_text())["jupyterlab"]["_build"]["load"] != first
