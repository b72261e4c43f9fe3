"""The environments of the kernels, as the deployment made them."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks import pictures as made_up
from tests.notebooks import preloaded as interpreters
from tests.notebooks.running import SPARING, Run, framework_python, is_named


@pytest.fixture(scope="module", autouse=True)
def sparing() -> Iterator[None]:
    """Have each program take little of the processors, those of a module's fixtures too."""
    with pytest.MonkeyPatch.context() as variables:
        for name, value in SPARING.items():
            variables.setenv(name, value)
        yield


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the GPUs of a machine that has some, from a test that is about processors."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")


@pytest.fixture(scope="session")
def python_of() -> Callable[[str], Path]:
    """Find a framework's interpreter."""
    return framework_python


@pytest.fixture(scope="module")
def preloaded(python_of: Callable[[str], Path]) -> Iterator[Callable[..., Path]]:
    """Find what runs programs as a framework's interpreter does, which has imported modules."""
    with ExitStack() as servers:

        @cache
        def program(framework: str, *modules: str) -> Path:
            if is_named(framework):
                return python_of(framework)
            imported = modules or interpreters.MODULES[framework]
            variables = interpreters.VARIABLES[framework]
            return servers.enter_context(
                interpreters.preloaded(python_of(framework), imported, **variables)
            )

        yield program


@pytest.fixture(scope="session")
def nas(python_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A NAS with the stand-in for MNIST."""
    folder = tmp_path_factory.mktemp("isilon")
    make = ROOT / "notebook_templates" / "data" / "make_mnist_stand_in.py"
    argv = [str(python_of("tensorflow")), str(make), str(folder / "datasets" / "mnist")]
    subprocess.run(argv, check=True, timeout=120, env={**os.environ, **SPARING})
    return folder


@pytest.fixture(scope="session")
def tensorflow_python(python_of: Callable[[str], Path]) -> Path:
    return python_of("tensorflow")


@pytest.fixture(scope="session")
def prepare(python_of: Callable[[str], Path]) -> Run:
    """Run `prepare.py` with arguments."""
    program = ROOT / "notebook_templates" / "data" / "prepare.py"
    argv = [str(python_of("pytorch")), "-B", str(program)]

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        whole = [*argv, *map(str, arguments)]
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.fixture(scope="session")
def pictures(python_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with noise, a picture that is cut in the middle, and a text with a picture's name."""
    folder = tmp_path_factory.mktemp("pictures") / "train"
    made_up.make(folder, python_of("pytorch"))
    return folder
