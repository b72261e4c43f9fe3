"""Run a notebook in a kernel's own environment, and give what it printed."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def printed_by(notebook: Path, python: Path, home: Path, parameters: Mapping[str, str]) -> str:
    """Run all cells with papermill in the Python kernel; return the standard output of all."""
    specs = home / "share" / "jupyter" / "kernels" / "pytorch"
    specs.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "under test", "language": "python"}
    (specs / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    done = home / "done.ipynb"
    papermill = [sys.executable, "-m", "papermill", "--no-progress-bar", "--kernel", "pytorch"]
    papermill += ["--cwd", str(notebook.parent), str(notebook), str(done)]
    for name, value in parameters.items():
        papermill += ["--parameters", name, value]
    ended = subprocess.run(
        papermill,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "JUPYTER_DATA_DIR": str(home / "share" / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    cells = json.loads(done.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(o["text"]) for o in outputs if o.get("name") == "stdout")
