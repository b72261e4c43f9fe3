"""What is asked of Slurm and read beside the loop that serves everybody."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterhub_gpu_slurm.slurm import parsing, queue
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

CLIENT = SlurmClient("/bin", "/slurm.conf", (), time_limit=10)


@pytest.mark.parametrize(
    ("module", "name", "ask"),
    [(parsing, "cluster", CLIENT.cluster), (queue, "jobs", CLIENT.queue)],
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
