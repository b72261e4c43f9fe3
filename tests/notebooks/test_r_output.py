"""R prints as it goes: lines of a cell that still runs are on the page already."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from tests.instance import ROOT
from tests.notebooks.running import kernel_argv

TRAINING = ROOT / "notebook_templates/r/mnist.ipynb"


def reporting() -> str:
    """Return what the training does after each line, as the template has it."""
    cells = json.loads(TRAINING.read_text(encoding="utf-8"))["cells"]
    code = next("".join(c["source"]) for c in cells if "report_every ==" in "".join(c["source"]))
    after = code.split("test_accuracy()\n      ))\n")[1]
    return after.split("right <- c()")[0].strip()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of a running R kernel."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "kernels" / "ir"
    folder.mkdir(parents=True)
    spec = {"argv": kernel_argv(None), "display_name": "R", "language": "R"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    specs = KernelSpecManager(kernel_dirs=[str(folder.parent)])
    manager = KernelManager(kernel_name="ir", kernel_spec_manager=specs)
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_line_is_shown_before_its_cell_has_ended(kernel: Any) -> None:
    times: list[float] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            times.append(time.monotonic())

    loop = f"for (i in 1:2) {{ cat('line', i, '\\n'); {reporting()}\n Sys.sleep(2) }}"
    kernel.execute_interactive(loop, timeout=60, output_hook=hear)
    assert time.monotonic() - times[0] > 3
