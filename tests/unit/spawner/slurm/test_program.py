"""A program that is run with limits: it is ended, and nothing of it stays open."""

import asyncio
import os
import subprocess

import pytest

from jupyterhub_gpu_slurm.slurm import program


def test_whoever_gives_up_while_a_program_of_roots_starts_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As sudo is, which the hub cannot signal: it runs on, with its pipes closed."""
    started: list[subprocess.Popen[bytes]] = []

    def refused(process: subprocess.Popen[bytes], number: int = 0) -> None:
        started.append(process)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(subprocess.Popen, "kill", refused)
    monkeypatch.setattr(subprocess.Popen, "send_signal", refused)

    async def give_up(turns: int) -> None:
        running = asyncio.ensure_future(program.run(["/bin/sleep", "20"], {}, 10, 1000))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    async def open_files() -> int:
        before = len(os.listdir("/proc/self/fd"))
        for turns in (1, 2, 3, 1, 2, 3):
            await give_up(turns)
        await asyncio.sleep(1.5)
        return len(os.listdir("/proc/self/fd")) - before

    found = asyncio.run(open_files())
    for process in started:
        os.kill(process.pid, 9)
        process.wait()
    assert started
    # How asyncio hears of a program's end may be open still: one for each that runs.
    assert found <= len(started)
