import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from dsportal.session.kernels.manager import (
    MEMORY_WATCH,
    MemoryWatch,
    SessionKernelConnection,
    SessionKernels,
)
from dsportal.session.kernels.module_kernels import spec as module_spec
from dsportal.session.usage.memory import JobMemory, MemoryFolders
from dsportal.session_schema import Kernel

IPYKERNEL = ("python", "-m", "ipykernel_launcher", "-f", "{connection_file}")


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """Give a memory group (v1) of 96 GB in which one process was killed before the start."""
    (tmp_path / "memory.limit_in_bytes").write_text(str(96 * 2**30))
    (tmp_path / "memory.oom_control").write_text("oom_kill 1\n")
    return tmp_path


@pytest.fixture
def watch(group: Path) -> MemoryWatch:
    return MemoryWatch(JobMemory(MemoryFolders(1, (group,))))


def kill_one(group: Path, count: int) -> None:
    (group / "memory.oom_control").write_text(f"oom_kill {count}\n")


def test_an_end_without_a_kill_is_not_for_memory(watch: MemoryWatch) -> None:
    assert not watch.stopped_for_memory("a", 1.0)


def test_an_end_after_a_kill_is_for_memory(watch: MemoryWatch, group: Path) -> None:
    kill_one(group, 2)
    assert watch.stopped_for_memory("a", 1.0)


def test_one_kill_explains_one_kernel(watch: MemoryWatch, group: Path) -> None:
    kill_one(group, 2)
    assert watch.stopped_for_memory("a", 1.0)
    assert not watch.stopped_for_memory("b", 1.1)
    assert not watch.stopped_for_memory("a", 60.0)


def test_two_windows_on_one_kernel_are_both_told(watch: MemoryWatch, group: Path) -> None:
    kill_one(group, 2)
    assert watch.stopped_for_memory("a", 1.0)
    assert watch.stopped_for_memory("a", 1.1)


def test_the_message_names_the_limit_and_the_next_step(watch: MemoryWatch) -> None:
    assert "more than its 96 GiB of memory" in watch.message()
    assert "more GPUs" in watch.message()


def test_an_unknown_limit_is_left_out() -> None:
    message = MemoryWatch(JobMemory(MemoryFolders(2, ()))).message()
    assert "more than its memory" in message


@pytest.mark.parametrize("ends", ["on_kernel_restarted", "on_restart_failed"])
def test_the_cell_that_took_too_much_memory_is_told_before_anything_else(
    watch: MemoryWatch, group: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    said: list[Any] = []
    jupyters = ZMQChannelsWebsocketConnection
    monkeypatch.setattr(jupyters, "handle_outgoing_message", lambda *_: None)
    monkeypatch.setattr(jupyters, ends, lambda _: said.append("restarted"))
    monkeypatch.setattr(jupyters, "write_stderr", lambda _, *words: said.append(words))
    monkeypatch.setattr(SessionKernelConnection, "kernel_id", "a")
    handler = SimpleNamespace(settings={MEMORY_WATCH: watch})
    monkeypatch.setattr(SessionKernelConnection, "websocket_handler", handler)
    connection: Any = SessionKernelConnection()
    kernel = connection.session = Session(key=b"")
    cell = kernel.msg("execute_request")["header"]
    for kind in ("execute_input", "stream"):
        parts = kernel.serialize(kernel.msg(kind, parent={"header": cell}))
        connection.handle_outgoing_message("iopub", parts)
    getattr(connection, ends)()
    assert said == ["restarted"]
    kill_one(group, 2)
    getattr(connection, ends)()
    _, (words, parent), restarted = said
    assert "more than its 96 GiB of memory" in words
    assert (parent["msg_id"], restarted) == (cell["msg_id"], "restarted")


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an environment with its own Python kernel and one of the settings' kernels."""
    prefix = tmp_path / "environment"
    for folder, name, argv in (
        (prefix / "share/jupyter", "python3", ["python", "-m", "ipykernel_launcher"]),
        (tmp_path / "shared", "tensorflow", ["/opt/tf/bin/python", "-m", "ipykernel_launcher"]),
    ):
        spec = folder / "kernels" / name
        spec.mkdir(parents=True)
        (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": f"{name} x"}))
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(
        "dsportal.session.kernels.manager.jupyter_path",
        lambda kind: [str(tmp_path / "shared" / kind), str(prefix / "share/jupyter" / kind)],
    )
    return prefix


def test_python_3_is_this_interpreter(prefix: Path) -> None:
    spec = SessionKernels().get_kernel_spec("python3")
    assert spec.argv[:2] == [sys.executable, "-c"]
    assert spec.display_name == "Python 3"


def test_other_kernels_are_as_their_files_say(prefix: Path) -> None:
    specs = SessionKernels().get_all_specs()
    assert sorted(specs) == ["python3", "tensorflow"]
    assert specs["tensorflow"]["spec"]["argv"][0] == "/opt/tf/bin/python"


def test_a_python3_of_somebody_else_is_theirs(prefix: Path, tmp_path: Path) -> None:
    own = tmp_path / "shared/kernels/python3"
    own.mkdir()
    (own / "kernel.json").write_text(json.dumps({"argv": ["/mine"], "display_name": "Mine"}))
    assert SessionKernels().get_kernel_spec("python3").display_name == "Mine"


def test_every_ipykernel_is_told_of_our_configuration(prefix: Path) -> None:
    kernels = SessionKernels(
        configuration="/c.py",
        offered={"pytorch": {"argv": [*IPYKERNEL], "display_name": "x", "language": "python"}},
    )
    told = {name: spec["spec"]["argv"] for name, spec in kernels.get_all_specs().items()}
    assert sorted(told) == ["python3", "pytorch", "tensorflow"]
    assert {argv[-1] for argv in told.values()} == {"--config=/c.py"}
    # The offered one stays as it was: it is asked for again and again.
    python, *_, file = kernels.get_kernel_spec("pytorch").argv[:-1]
    assert (python, file) == ("python", "{connection_file}")
    assert kernels.offered["pytorch"]["argv"] == [*IPYKERNEL]


def test_a_debugger_is_offered_where_it_opens_no_port(prefix: Path) -> None:
    own_file = [*IPYKERNEL, "--config=/home/me/own.py"]
    xeus = ["xpython", "-f", "{connection_file}"]
    given = {"with": [*IPYKERNEL], "own-file": own_file, "xpython": xeus}
    offered = {
        name: {
            "argv": argv,
            "display_name": name,
            "language": "python",
            "metadata": {"debugger": True, "kept": 1},
        }
        for name, argv in given.items()
    }
    kernels = SessionKernels(configuration="/c.py", offered=offered)
    metadata = {name: kernels.get_kernel_spec(name).metadata for name in offered}
    assert metadata == {
        "with": {"debugger": True, "kept": 1},
        "own-file": {"debugger": False, "kept": 1},
        "xpython": {"debugger": False, "kept": 1},
    }
    assert offered["xpython"]["metadata"] == {"debugger": True, "kept": 1}


def test_a_kernel_runs_nothing_of_the_notebooks_folder_by_itself(tmp_path: Path) -> None:
    for name in ("ipykernel_launcher", "psutil"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\nraise ImportError\n")
    own = module_spec(Kernel("P", sys.executable, "python"), None)
    kernels = SessionKernels(offered={"p": own}, configuration="/c.py")
    argv = kernels.get_kernel_spec("p").argv
    before = argv[: argv.index("-f")]
    run = partial(subprocess.run, cwd=tmp_path, check=False, timeout=60, capture_output=True)
    assert run([*before, "--version"]).returncode == 0
    assert not (tmp_path / "ran").exists()


def test_r_restores_nothing_of_the_notebooks_folder(prefix: Path) -> None:
    # As `IRkernel::installspec()` writes it.
    argv = ["/opt/R/bin/R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"]
    spec = {"argv": argv, "display_name": "R", "language": "R"}
    kernels = SessionKernels(offered={"ir": spec})
    assert "--no-restore-data" in kernels.get_kernel_spec("ir").argv
    assert spec["argv"] == argv
