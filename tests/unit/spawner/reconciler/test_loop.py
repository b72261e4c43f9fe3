import asyncio

import pytest
from tornado.httpclient import HTTPClientError

from jupyterhub_gpu_slurm.reconciler import loop
from jupyterhub_gpu_slurm.reconciler.__main__ import tls_context
from jupyterhub_gpu_slurm.reconciler.loop import run_rounds


class Rounds:
    """A reconciler whose rounds end as told; after the last one the hub is gone."""

    def __init__(self, *ends: Exception | None) -> None:
        self._ends = iter(ends)
        self.done = 0
        self._left = len(ends)

    async def round(self) -> None:
        self.done += 1
        self._left -= 1
        end = next(self._ends)
        if end is not None:
            raise end

    def is_hub_there(self) -> bool:
        return self._left > 0


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_FIRST_ROUNDS_SECONDS", (0.001,) * 10)


def rounds_done(*ends: Exception | None) -> int:
    """Run until the hub is gone; return how many rounds there were."""
    rounds = Rounds(*ends)
    asyncio.run(run_rounds(rounds, 0.001, rounds.is_hub_there))  # type: ignore[arg-type]  # a stand-in
    return rounds.done


def test_it_ends_with_the_hub() -> None:
    assert rounds_done(None, None) == 2


def test_a_hub_that_does_not_answer_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    assert rounds_done(ConnectionRefusedError(), HTTPClientError(503), None) == 3
    assert caplog.text.count("The hub did not answer the reconciler") == 2


def test_a_hub_that_does_not_know_the_service_is_left_alone() -> None:
    assert rounds_done(HTTPClientError(403), None, None) == 1


def test_without_an_authority_of_the_hub_there_is_no_tls() -> None:
    assert tls_context({"JUPYTERHUB_API_URL": "http://127.0.0.1:8081/hub/api"}) is None
