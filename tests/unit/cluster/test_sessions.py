import asyncio
from dataclasses import dataclass

import pytest

from dsportal.cluster.hub_api import ListedSession
from dsportal.cluster.sessions import SessionList, Sessions
from dsportal.cluster.words import SESSIONS_OLD
from tests.unit.cluster.snapshots import snapshot


@dataclass
class FakeHub:
    """Stands in for the hub where its answer must be one that nobody had thought of."""

    error: Exception
    asked: int = 0

    async def sessions(self) -> list[ListedSession]:
        self.asked += 1
        raise self.error


@pytest.mark.parametrize("error", [OSError(), KeyError("servers"), ValueError("no JSON")], ids=repr)
def test_whatever_the_hub_says_the_page_is_there_and_asks_again(error: Exception) -> None:
    hub = FakeHub(error)

    async def look() -> list[SessionList]:
        sessions = Sessions(hub, interval=0)  # type: ignore[arg-type]  # a stand-in
        return [await sessions.listing(snapshot()) for _ in range(2)]

    for told in asyncio.run(look()):
        assert told.rows == []
        assert told.trouble == SESSIONS_OLD
    assert hub.asked == 2
