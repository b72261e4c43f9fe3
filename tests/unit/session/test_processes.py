"""The job's processes, from real ones of this machine and from texts."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from portal.session import processes
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
        environment = {"SLURM_JOB_ID": JOB, "PATH": "/usr/bin:/bin", "PS1": "ready "}
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


def test_neither_the_server_nor_its_tensorboard_nor_other_jobs_count(
    shell: tuple[int, int],
) -> None:
    program = processes._TENSORBOARD.decode()
    argv = [sys.executable, "-c", "input()", program]
    other = {"SLURM_JOB_ID": JOB + "0"}
    with (
        subprocess.Popen(argv, stdin=subprocess.PIPE, env={"SLURM_JOB_ID": JOB}) as tensorboard,
        subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env=other) as stranger,
    ):
        # As seen by the server that started it, and as anybody else's.
        seen = {pid for pid, _ in processes.of_job(JOB, os.getpid())}
        assert seen == {shell[0]}
        assert tensorboard.pid in {pid for pid, _ in processes.of_job(JOB, 1)}
        assert stranger.pid not in {pid for pid, _ in processes.of_job(JOB, 1)}
        tensorboard.communicate(b"\n")
        stranger.communicate(b"")
    assert not processes.of_job(JOB, shell[0])
