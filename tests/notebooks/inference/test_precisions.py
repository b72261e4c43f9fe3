"""A precision is never labelled as what it was not: on a CPU, and as if there were a GPU."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT

pytestmark = pytest.mark.usefixtures("without_gpu")
TEMPLATES = ROOT / "notebook_templates"
# A GPU is not available: what asks for one is told that there is, and computes on the CPU.
CODE = """
import json, sys
from pathlib import Path
import numpy as np, torch
sys.path += [f"{sys.argv[1]}/{name}" for name in ("inference", "distributed")]
import precisions
from networks import resnet
if sys.argv[3] == "gpu":
    precisions.on_gpu = lambda: True
    precisions.by_pytorch = lambda name, *_: precisions.Precision(name, "PyTorch, cuda", len)
folder = Path(sys.argv[2])
images = np.random.default_rng(1).random((4, 3, 32, 32), dtype=np.float32)
network = resnet.build("tiny", classes=10).eval()
built = precisions.build(network, folder, precisions.Calibration(images, 2, 2), images[:2])
found = [[one.name, getattr(one, "engine", None), getattr(one, "lacking", None)] for one in built]
with torch.inference_mode():
    wanted = network.cpu()(torch.from_numpy(images)).numpy()
fixed = precisions.OnnxNetwork(folder / "prepared.onnx", precisions.CPU, is_fixed=True)
moving = precisions.OnnxNetwork(folder / "prepared.onnx", precisions.CPU, is_fixed=False)
off = [float(abs(run(images[:n]) - wanted[:n]).max()) for run in (fixed, moving) for n in (4, 2, 4)]
first = moving(images)
before = images.copy()
moving(images[::-1])  # leaves alone what was given and returned before
assert (images == before).all()
off.append(float(abs(first - wanted).max()))
off.append(float(abs(moving(images[::-1]) - wanted[::-1]).max()))
try:
    precisions.OnnxNetwork(folder / "prepared.onnx", precisions.TENSORRT, is_fixed=True).session(2)
    taken = ""
except RuntimeError as error:
    taken = str(error)
shapes = [fixed.session(n).get_inputs()[0].shape[0] for n in (2, 4)]
names = precisions.names(precisions.on_gpu())
print(json.dumps({"found": found, "off": off, "shapes": shapes, "names": names,
                  "taken": taken}))
"""


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_precision_is_what_it_is_called_or_says_what_is_missing(
    device: str, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", CODE, str(TEMPLATES), str(tmp_path), device]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    found = {name: (engine, lacking) for name, engine, lacking in told["found"]}
    assert list(found) == told["names"]
    if device == "cpu":
        assert {name: engine for name, (engine, _) in found.items()} == {
            "fp32": "ONNX Runtime, CPU",
            "bf16": "PyTorch, cpu",
            "int8": "ONNX Runtime, CPU",
        }
    else:
        # All on the same device, and none computed by something else under its name.
        assert found["fp32"] == found["fp16"] == ("PyTorch, cuda", None)
        engine, lacking = found["int8"]
        assert engine is None
        assert "TensorRT cannot be used: ONNX Runtime was built without Tensorrt" in lacking
    # No other provider computes under the name of one that is not there.
    assert "was taken in the place of TensorrtExecutionProvider" in told["taken"]
    # Bound input and output give what PyTorch gives, for each batch and each content.
    assert max(told["off"]) < 1e-4
    assert told["shapes"] == [2, 4]
