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


def reporting() -> tuple[str, str]:
    """Return the template's function that shows how far it is, and how its loop calls it."""
    cells = json.loads(TRAINING.read_text(encoding="utf-8"))["cells"]
    code = next("".join(c["source"]) for c in cells if "report_every ==" in "".join(c["source"]))
    function, loop = code.split("step <- 0\n")
    called = loop.split("epoch, step, trained, tested\n      ))\n")[1]
    return function, called.split("reporting <- ")[0].strip()


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
    client.wait_for_ready(timeout=300)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_line_is_shown_before_its_cell_has_ended(kernel: Any) -> None:
    times: list[float] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            times.append(time.monotonic())

    function, called = reporting()
    row = "data.frame(step = step, loss = 1 / step, trained = 0.5, tested = 0.5)"
    loop = f"shown <- rbind(shown, {row}); lines_shown <- c(lines_shown, 'a line\\n'); {called}"
    code = f"epochs <- 1; steps_per_epoch <- 2; {function}\n"
    code += f"for (step in 1:2) {{ {loop}\n Sys.sleep(2) }}"
    kernel.execute_interactive(code, timeout=60, output_hook=hear)
    assert time.monotonic() - times[0] > 3
