"""How the answers of Slurm's programs, and of the launcher, are asked for and read."""

import asyncio
import threading
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm import queue_positions
from jupyterhub_gpu_slurm.slurm.client import SlurmClient


def client_of(folder: Path, program: str, text: str) -> SlurmClient:
    """Return a client for whom this script stands in for a program, or for the launcher."""
    (folder / program).write_text(f"#!/bin/sh\n{text}\n")
    (folder / program).chmod(0o755)
    return SlurmClient(str(folder), "/slurm.conf", (str(folder / program),), time_limit=10)


@pytest.mark.parametrize(("letters", "is_beside_the_loop"), [(100, False), (1 << 20, True)])
def test_a_long_answer_is_read_in_a_thread_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letters: int, is_beside_the_loop: bool
) -> None:
    def read(text: str) -> tuple[int, int]:
        return len(text), threading.get_ident()

    monkeypatch.setattr(queue_positions, "queue_positions", read)
    client = client_of(tmp_path, "squeue", f"printf '%{letters}s' x")
    length, reader = asyncio.run(client.queue_positions())
    assert (length, reader != threading.get_ident()) == (letters, is_beside_the_loop)


def test_an_answer_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    launched = "echo 'slurm-launcher: ready' >&2; echo '{}'"
    asked = client_of(tmp_path, "squeue", "echo garbage").queue_positions
    ordered = client_of(tmp_path, "launcher", launched).sessions
    counted = {
        "slurm_query": {"program": "squeue", "reason": "slurm_output"},
        "launcher": {"verb": "list", "reason": "slurm_output"},
    }

    def failures() -> list[float | None]:
        return [
            REGISTRY.get_sample_value(f"gpu_spawner_{name}_failures_total", labels)
            for name, labels in counted.items()
        ]

    before = failures()
    for question in (asked(), ordered("ada")):
        with pytest.raises(UnreadableOutput):
            asyncio.run(question)
    assert failures() == [number + 1 for number in before if number is not None]


def test_slurm_answers_in_english_and_in_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    client = client_of(tmp_path, "sdiag", "exec /usr/bin/env")
    told = set(asyncio.run(client.diagnostics()).split())
    assert {"TZ=UTC", "LC_ALL=C", "SLURM_CONF=/slurm.conf"} <= told
