"""What is asked of Slurm and read beside the loop that serves everybody."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jupyterhub_gpu_slurm.slurm import accounting, parsing, queue, queue_positions
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

NOW = datetime.now(UTC)
CLIENT = SlurmClient("/bin", "/slurm.conf", (), time_limit=10)


@pytest.mark.parametrize(
    ("module", "name", "ask"),
    [
        (parsing, "cluster", CLIENT.cluster),
        (queue, "jobs", CLIENT.queue),
        (queue_positions, "queue_positions", CLIENT.queue_positions),
        (accounting, "read", lambda: CLIENT.accounted_jobs(NOW, NOW)),
    ],
)
def test_a_long_answer_is_read_in_a_thread_of_its_own(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, ask: Callable[[], Any]
) -> None:
    async def answer(*_: object, **__: object) -> str:
        return ""

    readers: list[int] = []

    def read(*_: object) -> str:
        readers.append(threading.get_ident())
        return "read"

    monkeypatch.setattr(SlurmClient, "_ask", answer)
    monkeypatch.setattr(module, name, read)
    assert asyncio.run(ask()) == "read"
    (reader,) = readers
    assert reader != threading.get_ident()


def test_slurm_answers_in_english_and_in_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    program = tmp_path / "sdiag"
    program.write_text("#!/bin/sh\nexec /usr/bin/env\n")
    program.chmod(0o755)
    client = SlurmClient(str(tmp_path), "/slurm.conf", (), time_limit=10)
    told = set(asyncio.run(client.diagnostics()).split())
    assert {"TZ=UTC", "LC_ALL=C", "SLURM_CONF=/slurm.conf"} <= told
