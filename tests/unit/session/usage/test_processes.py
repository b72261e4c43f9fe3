"""The job's processes, from real ones of this machine and from texts."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from dsportal.session.usage import processes
from tests.waiting import until

JOB = "987654321"


@pytest.mark.parametrize(
    ("cgroups", "job"),
    [
        ("5:devices:/slurm_node001/uid_1000/job_12/step_batch/task_0\n1:name=systemd:/\n", "12"),
        ("0::/system.slice/node001_slurmstepd.scope/job_7/step_0/user/task_0\n", "7"),
        ("0::/system.slice/slurmstepd.scope/job_7/step_0\n", "7"),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
        ("0::/job_x\n", None),
        ("", None),
    ],
)
def test_slurms_cgroup_names_the_job(cgroups: str, job: str | None) -> None:
    assert processes.job_of(cgroups) == job


@pytest.fixture
def shell() -> Iterator[tuple[int, int]]:
    """A shell in a terminal, in the environment of a job: its number, the terminal's end."""
    pid, terminal = pty.fork()
    if pid == 0:
        # Who runs the tests may ignore it, as a shell without job control does in the background.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        environment = {"PORTAL_JOB_ID": JOB, "PATH": "/usr/bin:/bin", "PS1": "ready "}
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environment)  # noqa: S606
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    yield pid, terminal
    os.close(terminal)
    os.waitpid(pid, 0)


def test_a_shell_at_its_prompt_is_told_from_one_that_runs_a_program(
    shell: tuple[int, int],
) -> None:
    pid, keyboard = shell

    def is_at_prompt() -> bool | None:
        found = {one.key[0]: one for one in processes.of_job(JOB, os.getpid()).values()}
        terminal = found[pid].terminal
        return terminal.is_at_prompt if terminal else None

    assert is_at_prompt() is True
    os.write(keyboard, b"sleep 600\r")
    until(lambda: is_at_prompt() is False, seconds=10, what="a program is in the foreground")
    # Of a terminal's processes, one stands for it.
    found = processes.of_job(JOB, os.getpid()).values()
    assert [one.key[0] for one in found if one.terminal] == [pid]
    assert len(found) == 2

    def interrupted() -> bool:
        # Again and again: the program may not be there yet, only the shell's fork of itself.
        os.write(keyboard, b"\x03")
        return is_at_prompt() is True

    until(interrupted, seconds=10, what="the shell is back")


def test_processor_time_is_counted(shell: tuple[int, int]) -> None:
    pid, terminal = shell
    os.write(terminal, b"while :; do :; done\r")

    def seconds() -> float:
        found = processes.of_job(JOB, os.getpid()).values()
        return next(one.cpu_seconds for one in found if one.key[0] == pid)

    until(lambda: seconds() > 0.3, seconds=30, what="the shell has computed")
    os.write(terminal, b"\x03")


def test_the_server_and_its_tensorboard_are_marked_and_other_jobs_are_left_out(
    shell: tuple[int, int],
) -> None:
    program = processes._TENSORBOARD.decode()
    argv = [sys.executable, "-c", "input()", program]
    other = {"PORTAL_JOB_ID": JOB + "0"}
    # A step of another job, which srun has begun in this session; the server, begun by slurmd.
    step = {"PORTAL_JOB_ID": JOB, "SLURM_JOB_ID": JOB + "1", "SLURMD_NODENAME": "node001"}
    server = {"SLURM_JOB_ID": JOB, "SLURMD_NODENAME": "node001"}
    with (
        running({"PORTAL_JOB_ID": JOB}, argv) as tensorboard,
        running(other),
        running(step),
        running(server) as first,
    ):
        # As seen by the server that started it, and as anybody else's.
        assert portals(os.getpid()) == {shell[0]: False, first.pid: False, tensorboard.pid: True}
        assert portals(1) == {shell[0]: False, first.pid: False, tensorboard.pid: False}
    assert portals(shell[0]) == {shell[0]: True}


@contextmanager
def running(
    environment: dict[str, str], argv: Sequence[str] = ("/bin/cat",)
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program that waits, until its input ends."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment) as process:
        # For a moment after the new program has begun the kernel shows none.
        shown = Path(f"/proc/{process.pid}/environ")
        until(lambda: bool(shown.read_bytes()), seconds=10, what="its environment is shown")
        yield process
        process.communicate(b"\n")


def portals(server_pid: int) -> dict[int, bool]:
    """Return the job's processes, and whether each is the server's own."""
    found = processes.of_job(JOB, server_pid).values()
    return {process.key[0]: process.is_the_portals for process in found}


def test_what_storage_and_memory_are_asked_for_is_counted(tmp_path: Path) -> None:
    size = 8 << 20
    program = (
        f"import os; held = bytearray({4 * size})\n"
        f"with open('file', 'wb') as file: file.write(bytes({size})); os.fsync(file.fileno())\n"
        "print('written', flush=True); input()"
    )
    argv = [sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = {"PORTAL_JOB_ID": JOB}
    with subprocess.Popen(argv, env=environment, cwd=tmp_path, **pipes) as child:  # type: ignore[call-overload]
        assert child.stdout.readline() == b"written\n"
        (process,) = processes.of_job(JOB, os.getpid()).values()
        assert size <= process.written_bytes < 2 * size
        assert 4 * size <= process.resident_bytes < 20 * size
        child.communicate(b"\n")
