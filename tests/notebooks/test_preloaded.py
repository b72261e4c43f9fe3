"""A program in a preloaded interpreter is a process as any other."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks.preloaded import preloaded
from tests.waiting import until

TELL = """
import os, sys
sys.stdout.write(sys.stdin.read())
print(__name__, sys.argv, os.getcwd(), os.environ["TOLD"], __builtins__)
print(globals().get("__file__"), sys.path, sys.flags.dont_write_bytecode)
print("wrong", file=sys.stderr)
sys.exit(7)
"""
WAIT = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))
Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(100)
"""

OWN_FILES = """
import gc, os
own = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
gc.collect()
for descriptor in own:
    os.fstat(descriptor)
"""


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Path]:
    with preloaded(Path(sys.executable), ["sqlite3"]) as program:
        yield program


def told(python: Path, *words: object, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [str(python), "-B", *map(str, words)],
        input="given",
        cwd=cwd,
        env={**os.environ, "TOLD": "so"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_nothing_of_the_server_closes_a_programs_files(tmp_path: Path) -> None:
    """What it held and had closed was closed once more, when it was found to be garbage."""
    (tmp_path / "collect_nothing.py").write_text("import gc; gc.disable()")
    variables = {"PYTHONPATH": str(tmp_path)}
    with preloaded(Path(sys.executable), ["collect_nothing"], **variables) as python:
        assert told(python, "-c", OWN_FILES, cwd=tmp_path) == (0, "", "")


@pytest.mark.parametrize("is_file", [True, False])
def test_a_program_finds_what_it_finds_in_a_fresh_interpreter(
    interpreter: Path, tmp_path: Path, is_file: bool
) -> None:
    (tmp_path / "tell.py").write_text(TELL)
    words = ("tell.py", "-B", "two words") if is_file else ("-c", TELL, "-B", "two words")
    found = told(interpreter, *words, cwd=tmp_path)
    assert found == told(Path(sys.executable), *words, cwd=tmp_path)
    assert found[0] == 7


def test_only_the_imports_are_done(interpreter: Path, tmp_path: Path) -> None:
    look = "import sys; print('sqlite3' in sys.modules, 'email.mime.audio' in sys.modules)"
    for _ in range(2):
        found = told(interpreter, "-c", f"{look}; import email.mime.audio", cwd=tmp_path)
        assert found == (0, "True False\n", "")


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGUSR1, 5), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_ends_the_program(
    interpreter: Path, tmp_path: Path, number: int, status: int
) -> None:
    file = tmp_path / "pid"
    with subprocess.Popen([str(interpreter), "-c", WAIT, str(file)]) as running:
        until(lambda: file.exists() and file.read_text(), seconds=20, what="it runs")
        running.send_signal(number)
        assert running.wait(20) == status
    until(lambda: not Path("/proc", file.read_text()).exists(), seconds=20, what="it has ended")


def test_one_that_is_killed_at_once_leaves_the_others_alone(
    interpreter: Path, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as hasty:
        hasty.connect(str(interpreter.with_name("socket")))
    for _ in range(10):
        with subprocess.Popen([str(interpreter), "-c", "pass"]) as running:
            running.kill()
    assert told(interpreter, "-c", "print(1)", cwd=tmp_path) == (0, "1\n", "")


def test_programs_end_with_their_interpreter(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with preloaded(Path(sys.executable), []) as interpreter:
        running = subprocess.Popen([str(interpreter), "-c", WAIT, str(file)])
        until(lambda: file.exists() and file.read_text(), seconds=20, what="it runs")
    until(lambda: not Path("/proc", file.read_text()).exists(), seconds=20, what="it has ended")
    assert running.wait(20) != 0


def test_a_module_that_is_not_there_is_told() -> None:
    with (
        pytest.raises(AssertionError, match="nowhere cannot be imported"),
        preloaded(Path(sys.executable), ["nowhere"]),
    ):
        pass
