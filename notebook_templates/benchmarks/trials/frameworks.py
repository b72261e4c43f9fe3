"""The frameworks whose trainings are compared: what each can train here, and where its Python is.

A framework is in an environment of its own, which is a kernel, and a module in terminals and jobs:
what trains with it is a process of that Python.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from architectures.models import BUILT_WITH
from measurement import steps
from measurement.steps import StepError
from trials.protocol import ProtocolError

_SECONDS_TO_LOOK = 120
# A module system tells its error in several lines, after what `steps` says of the shell.
_BEGINNING = re.compile(r"^\S+ ended with -?\d+: ")
_MOST_LETTERS = 200


@dataclass(frozen=True)
class Framework:
    """A framework, and the program of this folder that trains with it."""

    name: str
    """Of its package, and as a rule of its module."""
    title: str
    program: Path
    precisions: tuple[str, ...]


def _program(name: str) -> Path:
    return Path(__file__).resolve().with_name(name)


PYTORCH = Framework(
    "pytorch", "PyTorch", _program("train_speed.py"), ("fp32", "tf32", "bf16", "fp16")
)
FRAMEWORKS = {
    one.name: one
    for one in (
        PYTORCH,
        Framework(
            "tensorflow",
            "TensorFlow",
            _program("train_speed_tensorflow.py"),
            ("fp32", "tf32", "bf16", "fp16"),
        ),
        Framework("mxnet", "MXNet", _program("train_speed_mxnet.py"), ("fp32", "fp16")),
    )
}
"""By their names."""

GONE = {
    "Caffe2": "merged into PyTorch in 2018",
    "CNTK": "2.7 of 2019 is its last release",
    "Theano": "development ended in 2017 with 1.0; Aesara and PyTensor continue it",
    "Torch7": "not maintained since 2018",
}
"""Frameworks of the papers' time that cannot be measured any more, and since when."""


def with_other(name: str) -> str:
    """Say which framework trained, after what was trained; of PyTorch nothing.

    >>> with_other("mxnet"), with_other("pytorch")
    (' with MXNet', '')
    """
    return "" if name == PYTORCH.name else f" with {FRAMEWORKS[name].title}"


def software(row: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """Name a training's framework and its version; ``versions``: what the whole result says.

    Results from before there was a choice name neither, and are PyTorch's.

    >>> software({"framework": "mxnet", "version": "1.9.1"}, {}), software({}, {"torch": "2.13.0"})
    ('MXNet 1.9.1', 'PyTorch 2.13.0')
    """
    title = FRAMEWORKS[row.get("framework", PYTORCH.name)].title
    return f"{title} {row.get('version', versions.get('torch', ''))}".strip()


# The module system's function is there in every bash of a session and of its jobs.
_LOAD = 'module load $1 || exit; shift; exec python "$@"'


def parse_kernels(words: str) -> dict[str, str]:
    """Read where kernels are: ``NAME=MODULES`` or ``NAME=PYTHON``, between commas.

    >>> parse_kernels("tensorflow=shared tensorflow/2.21,mxnet=/opt/mxnet/bin/python")
    {'tensorflow': 'shared tensorflow/2.21', 'mxnet': '/opt/mxnet/bin/python'}

    Raises `ProtocolError`.
    """
    found = {}
    for pair in filter(None, words.split(",")):
        name, _, location = pair.partition("=")
        if name not in FRAMEWORKS or name == PYTORCH.name:
            others = ", ".join(name for name in FRAMEWORKS if name != PYTORCH.name)
            raise ProtocolError(f"--kernels {pair}: {name!r} is not one of {others}")
        if not re.fullmatch(r"[A-Za-z0-9_./+~ -]+", location):
            raise ProtocolError(f"--kernels {pair}: name modules, or the path of a Python")
        found[name] = location
    return found


def python(framework: Framework, kernels: Mapping[str, str]) -> list[str]:
    """Return what comes before a program's path for it to run in a framework's Python.

    >>> python(FRAMEWORKS["mxnet"], {"mxnet": "/opt/mxnet/bin/python"})
    ['/opt/mxnet/bin/python']
    """
    if framework is PYTORCH:
        return [sys.executable]
    location = kernels.get(framework.name, framework.name)
    if location.startswith(("/", "~")):
        return [str(Path(location).expanduser())]
    return ["/bin/bash", "-c", _LOAD, "bash", location]


def missing(framework: Framework, kernels: Mapping[str, str]) -> str | None:
    """Say why a framework cannot be measured on this machine; ``None``: it has its kernel."""
    if framework is PYTORCH:
        return None
    look = f"import importlib.util; print(importlib.util.find_spec({framework.name!r}) is not None)"
    location = kernels.get(framework.name, framework.name)
    try:
        said = steps.run([*python(framework, kernels), "-c", look], _SECONDS_TO_LOOK)
    except StepError as error:
        words = " ".join(_BEGINNING.sub("", str(error)).split())[:_MOST_LETTERS]
        return f"there is no kernel of {framework.title} here: {words}"
    if said.split()[-1:] != ["True"]:
        return f"there is no kernel of {framework.title} here: {location} does not have its package"
    return None


def obstacle(framework: Framework, s: argparse.Namespace, model: str, precision: str) -> str | None:
    """Say why a framework does not train this here, wherever its kernel is; ``None``: it does."""
    if model not in BUILT_WITH[framework.name]:
        return f"{framework.title}'s model zoo has no {model}"
    if precision not in framework.precisions:
        return f"{framework.title} is measured with {' and '.join(framework.precisions)}"
    if framework is PYTORCH:
        return None
    for option, usual in (("data", "synthetic"), ("compile", "no"), ("image", "")):
        if getattr(s, option) != usual:
            return f"{option} is {getattr(s, option)!r}, which is for PyTorch alone"
    return None


def last_words(error: StepError) -> str:
    """Return the end of what a program said that failed: its error, as a rule."""
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:_MOST_LETTERS]
