"""Which frameworks train what here, where their Python is, and what is said where they do not."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from trials import frameworks, timed
from trials.frameworks import FRAMEWORKS, PYTORCH
from trials.protocol import ProtocolError

USUAL = argparse.Namespace(data="synthetic", compile="no", image="")
# Defines what a module system does, which every bash of a session reads first.
MODULES = """
module() {
    [ "$1 $2" = "load good/1" ] && PATH=%s:$PATH && return
    echo "Lmod has detected the following error:  The following module(s) are unknown: \\"$2\\"" >&2
    return 1
}
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    init = tmp_path / "init"
    init.write_text(MODULES % tmp_path)
    monkeypatch.setenv("BASH_ENV", str(init))


@pytest.mark.usefixtures("modules")
def test_a_framework_is_started_in_the_python_of_its_module(tmp_path: Path) -> None:
    argv = frameworks.python(FRAMEWORKS["mxnet"], {"mxnet": "good/1"})
    shown = [*argv, "-c", "import sys; print(sys.executable, sys.argv[1:])", "two words"]
    said = subprocess.run(shown, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.split(maxsplit=1) == [str(tmp_path / "python"), "['two words']\n"]


@pytest.mark.usefixtures("modules")
def test_a_module_that_is_not_there_is_said_in_the_module_systems_words() -> None:
    said = frameworks.missing(FRAMEWORKS["mxnet"], {"mxnet": "bad/1"})
    assert said == (
        "there is no kernel of MXNet here: Lmod has detected the following error: The following "
        'module(s) are unknown: "bad/1"'
    )


@pytest.mark.usefixtures("modules")
def test_a_python_without_the_framework_is_not_its_kernel() -> None:
    for place in ("good/1", sys.executable):
        said = frameworks.missing(FRAMEWORKS["mxnet"], {"mxnet": place})
        assert said == f"there is no kernel of MXNet here: {place} does not have its package"


def test_a_python_that_is_not_there_is_said() -> None:
    said = frameworks.missing(FRAMEWORKS["tensorflow"], {"tensorflow": "/nowhere/python"})
    assert said is not None
    assert said.startswith("there is no kernel of TensorFlow here: /nowhere/python: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("jax=jax", "'jax' is not one of tensorflow, mxnet"),
        ("pytorch=pytorch", "'pytorch' is not one of"),
        ("mxnet=", "name modules, or the path of a Python"),
        ("mxnet=mxnet; date", "name modules, or the path of a Python"),
    ],
)
def test_a_kernel_of_nothing_is_refused(words: str, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        frameworks.parse_kernels(words)


@pytest.mark.parametrize(
    ("framework", "model", "precision", "changed", "said"),
    [
        ("tensorflow", "resnet50_v1", "bf16", {}, None),
        ("mxnet", "alexnet", "fp32", {}, None),
        ("pytorch", "googlenet", "bf16", {"data": "/data", "compile": "yes"}, None),
        ("tensorflow", "googlenet", "fp32", {}, "TensorFlow's model zoo has no googlenet"),
        ("mxnet", "resnet50", "bf16", {}, "MXNet is measured with fp32 and fp16"),
        ("tensorflow", "resnet50", "fp32", {"data": "/data"}, "data is '/data', which is for"),
        ("tensorflow", "resnet50", "fp32", {"image": "a.sif"}, "image is 'a.sif', which is for"),
        ("mxnet", "resnet50", "fp32", {"compile": "yes"}, "compile is 'yes', which is for"),
    ],
)
def test_what_a_framework_does_not_train_here_has_a_reason(
    framework: str,
    model: str,
    precision: str,
    changed: dict[str, str],
    said: str | None,
) -> None:
    s = argparse.Namespace(**{**vars(USUAL), **changed})
    reason = frameworks.obstacle(FRAMEWORKS[framework], s, model, precision)
    if said is None:
        assert reason is None
    else:
        assert reason is not None
        assert reason.startswith(said)


# "GPU": what nvidia-smi would list, which this machine has not got.
@pytest.mark.parametrize(
    ("here", "used", "visible", "is_refused"),
    [
        (["GPU"], 0, {}, True),
        (["GPU"], 0, {"CUDA_VISIBLE_DEVICES": "0"}, True),
        (["GPU"], 0, {"CUDA_VISIBLE_DEVICES": ""}, False),
        (["GPU"], 1, {"CUDA_VISIBLE_DEVICES": "0"}, False),
        ([], 0, {"CUDA_VISIBLE_DEVICES": "0"}, False),
    ],
)
def test_a_framework_that_leaves_gpus_idle_is_not_measured(
    here: list[str],
    used: int,
    visible: dict[str, str],
    is_refused: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("measurement.machine.gpus", lambda: here)
    if not is_refused:
        timed.use_gpus("MXNet", used, visible)
        return
    with pytest.raises(ProtocolError, match="this MXNet does not use the GPUs that are here"):
        timed.use_gpus("MXNet", used, visible)


def test_pytorch_runs_in_the_python_that_measures() -> None:
    assert frameworks.python(PYTORCH, {}) == [sys.executable]
    assert frameworks.missing(PYTORCH, {}) is None
