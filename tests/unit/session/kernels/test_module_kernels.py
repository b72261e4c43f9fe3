import asyncio
import importlib
import json
import shutil
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import AsyncKernelManager

from dsportal.session.kernels.manager import SessionKernels
from dsportal.session.kernels.module_kernels import PROVISIONER, ModulesProvisioner, spec
from dsportal.session.modules import ModulesError
from dsportal.session_schema import Kernel
from tests.instance import ROOT

INIT = 'module() { echo "$2" | grep -q missing && { echo "unknown: $2" >&2; return 1; }; PATH=%s; }'


@pytest.fixture
def init(tmp_path: Path) -> str:
    """Give a module system whose modules bring a program `python` and nothing else."""
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    file = tmp_path / "init"
    file.write_text(INIT % program.parent)
    return str(file)


def kernel(init: str, **changes: Any) -> Kernel:
    given = {"display_name": "PyTorch", "interpreter": "python", "language": "python"}
    return Kernel(**{**given, "modules": ("pytorch/2.13",), **changes})


def prepared(kernel: Kernel, init: str, tmp_path: Path) -> dict[str, Any]:
    async def prepare() -> dict[str, Any]:
        manager = AsyncKernelManager(
            kernel_name="pytorch",
            transport="ipc",
            connection_file=str(tmp_path / "kernel.json"),
            kernel_spec_manager=SessionKernels(offered={"pytorch": spec(kernel, init)}),
        )
        provisioner = ModulesProvisioner(
            kernel_id="1",
            kernel_spec=manager.kernel_spec,
            parent=manager,
            **spec(kernel, init)["metadata"]["kernel_provisioner"]["config"],
        )
        return await provisioner.pre_launch(env={"PATH": "/usr/bin:/bin", "KEPT": "yes"})

    return asyncio.run(prepare())


def test_the_kernel_is_the_interpreter_that_the_modules_bring(init: str, tmp_path: Path) -> None:
    ready = prepared(kernel(init, environment={"TF_CPP_MIN_LOG_LEVEL": "2"}), init, tmp_path)
    python, option, _, *words = ready["cmd"]
    assert (python, option) == (str(tmp_path / "bin/python"), "-c")
    assert words == ["-f", str(tmp_path / "kernel.json")]
    assert ready["env"]["PATH"] == str(tmp_path / "bin")
    assert ready["env"]["KEPT"] == "yes"
    assert ready["env"]["TF_CPP_MIN_LOG_LEVEL"] == "2"


def test_a_kernel_may_need_no_module(tmp_path: Path) -> None:
    kernel = Kernel(display_name="R", interpreter="/bin/true", language="R")
    ready = prepared(kernel, "", tmp_path)
    file = str(tmp_path / "kernel.json")
    program = ["/bin/true", "--slave", "--no-restore-data", "-e", "IRkernel::main()", "--args"]
    assert ready["cmd"] == [*program, file]


def test_a_program_is_looked_for_outside_of_the_servers_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[threading.Thread] = set()

    def which(program: str, path: str) -> str:
        seen.add(threading.current_thread())
        return program

    monkeypatch.setattr(shutil, "which", which)
    prepared(Kernel("R", "/mnt/nas/bin/R", "R"), "", tmp_path)
    assert threading.main_thread() not in seen


def test_a_module_that_fails_says_why(init: str, tmp_path: Path) -> None:
    with pytest.raises(ModulesError, match="unknown: missing"):
        prepared(kernel(init, modules=("missing",)), init, tmp_path)


def test_a_module_without_the_interpreter_is_told(init: str, tmp_path: Path) -> None:
    with pytest.raises(ModulesError, match=r"program R .* with pytorch/2.13 loaded"):
        prepared(kernel(init, interpreter="R", language="R"), init, tmp_path)


def test_jupyter_finds_what_starts_it_by_its_name() -> None:
    project = tomllib.loads((ROOT / "portal/pyproject.toml").read_text())["project"]
    named = project["entry-points"]["jupyter_client.kernel_provisioners"]
    module, _, name = named[PROVISIONER].partition(":")
    assert getattr(importlib.import_module(module), name) is ModulesProvisioner


def test_an_offered_kernel_is_shown_beside_the_others(init: str) -> None:
    kernels = SessionKernels(offered={"pytorch": spec(kernel(init), init)})
    shown = kernels.get_all_specs()
    assert shown["pytorch"]["spec"]["display_name"] == "PyTorch"
    assert "kernel_provisioner" in shown["pytorch"]["spec"]["metadata"]


def written(folder: Path, name: str, argv: str) -> str:
    spec = folder / "kernels" / name
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps({"argv": [argv], "display_name": argv}))
    return str(folder / "kernels")


def test_a_kernel_of_the_users_own_with_the_same_name_is_theirs(
    init: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = written(tmp_path / "home", "pytorch", "/mine")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home"))
    kernels = SessionKernels(offered={"pytorch": spec(kernel(init), init)}, kernel_dirs=[own])
    assert kernels.get_kernel_spec("pytorch").argv == ["/mine"]
    assert kernels.get_all_specs()["pytorch"]["spec"]["display_name"] == "/mine"


def test_a_kernel_of_the_machine_with_the_same_name_is_not_used(init: str, tmp_path: Path) -> None:
    machine = written(tmp_path / "usr", "pytorch", "/the/machines")
    kernels = SessionKernels(offered={"pytorch": spec(kernel(init), init)}, kernel_dirs=[machine])
    assert kernels.get_kernel_spec("pytorch").argv[0] == "python"
    assert kernels.get_all_specs()["pytorch"]["spec"]["display_name"] == "PyTorch"
