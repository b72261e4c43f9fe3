import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from spawner.slurm.turnstile import Turns
from spawner.traits import SlurmTraits


def test_what_jupyterhub_noted_of_a_start_is_saved_before_the_start_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened: list[str] = []

    async def wait(self: Turns) -> None:
        happened.append("waits")

    monkeypatch.setattr(Turns, "wait", wait)
    database = SimpleNamespace(commit=lambda: happened.append("saved"))
    spawner: Any = SimpleNamespace(user=SimpleNamespace(db=database))
    assert asyncio.run(SlurmTraits._default_scopes_in_turn(spawner)) == []
    assert happened == ["saved", "waits"]
