"""Making and removing environments, one at a time."""

import asyncio
import os
import signal

import pytest

from dsportal.session.own_environments import work


def test_what_an_installation_leaves_behind_does_not_keep_the_next_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid)"
    monkeypatch.setattr(work, "_COMMAND", ("-c", code))

    async def use() -> str:
        task = await work.OwnWork({}).remove("x")
        async with asyncio.timeout(30):
            while task.state == "running":  # noqa: ASYNC110  # as its page asks
                await asyncio.sleep(0.05)
        # With it the pipe ends, which asyncio notices in a moment.
        os.kill(int(task.said), signal.SIGKILL)
        await asyncio.sleep(0.2)
        return task.state

    assert asyncio.run(use()) == "done"


def test_a_letter_that_two_readings_share_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_COMMAND", ("-X", "utf8", "-c", "print('x' * 4095 + 'é')"))

    async def use() -> str:
        task = await work.OwnWork({}).remove("x")
        async with asyncio.timeout(30):
            while task.state == "running":  # noqa: ASYNC110  # as its page asks
                await asyncio.sleep(0.05)
        return task.said

    assert asyncio.run(use()).endswith("xé\n")
