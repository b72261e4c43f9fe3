"""A stop for a start that the hub's end interrupted."""

import asyncio
from types import SimpleNamespace

import pytest
from jupyterhub.apihandlers.users import UserServerAPIHandler

from dsportal.hub.patches import interrupted_stop
from dsportal.hub.patches.api_hardening import HardenedServerHandler


class Interrupted:
    """The spawner of such a start, whose job takes so long to cancel."""

    name = ""
    active = False
    _stop_pending = False
    _stop_future: asyncio.Future[None] | None = None

    def __init__(self, seconds: float = 0, *, is_interrupted: bool = True) -> None:
        self.is_interrupted = is_interrupted
        self.given_up = 0
        self._seconds = seconds

    async def give_up(self) -> None:
        assert self._stop_pending
        await asyncio.sleep(self._seconds)
        self.given_up += 1


def stopped(monkeypatch: pytest.MonkeyPatch, spawner: Interrupted) -> list[bool]:
    """Stop it; return whether it was being stopped when JupyterHub's own code came to it."""
    seen: list[bool] = []

    async def delete(_: object, user_name: str, server_name: str = "") -> None:
        seen.append(spawner._stop_pending)

    monkeypatch.setattr(interrupted_stop, "_delete_of_jupyterhub", delete)
    user = SimpleNamespace(orm_spawners={"": None}, spawners={"": spawner})
    handler = SimpleNamespace(find_user=lambda name: user, slow_stop_timeout=0.05)
    asyncio.run(interrupted_stop.delete.__wrapped__(handler, "ada"))
    return seen


def test_it_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    spawner = Interrupted()
    assert stopped(monkeypatch, spawner) == [False]
    assert spawner.given_up == 1


def test_one_that_takes_long_is_being_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    spawner = Interrupted(60)
    assert stopped(monkeypatch, spawner) == [True]


@pytest.mark.parametrize(
    ("is_interrupted", "active"), [(False, False), (False, True), (True, True)]
)
def test_others_are_jupyterhubs_affair(
    monkeypatch: pytest.MonkeyPatch, is_interrupted: bool, active: bool
) -> None:
    spawner = Interrupted(is_interrupted=is_interrupted)
    spawner.active = active
    assert stopped(monkeypatch, spawner) == [False]
    assert spawner.given_up == 0


def test_every_stop_through_the_api_begins_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UserServerAPIHandler, "delete", UserServerAPIHandler.delete)
    interrupted_stop.install()
    assert HardenedServerHandler.delete is interrupted_stop.delete
