"""What the hub tells the page of a session that has ended."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.web import HTTPError

from dsportal.hub.pages.session_status import SessionStatusHandler, is_own_page, live_state
from dsportal.hub.pages.start_again import is_valid
from dsportal.usage.record import UsageRecord
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.errors import AccountUnavailable
from jupyterhub_gpu_slurm.session.observation import Ending
from tests.unit.portal.pages.past import ENDED, NEWS

SECRET = b"s" * 32


class StandInSpawner:
    """Stands in for a session of the hub's."""

    def __init__(
        self,
        job_id: str = "12",
        pending: str | None = None,
        ends: bool = False,
        is_leaving: bool = False,
    ) -> None:
        self.job_id, self.pending, self._ends = job_id, pending, ends
        self.job = SimpleNamespace(is_leaving=is_leaving)
        self.ready = pending is None
        self.active = True

    async def poll_and_notify(self) -> int | None:
        return 1 if self._ends else None


def user_with(*spawners: StandInSpawner, idle: timedelta | Exception | None = None) -> Any:
    async def idle_limit() -> timedelta | None:
        if isinstance(idle, Exception):
            raise idle
        return idle

    return SimpleNamespace(
        name="ada",
        base_url="/user/ada/",
        spawners=dict(enumerate(spawners)),
        spawner=SimpleNamespace(idle_limit=idle_limit),
    )


@pytest.fixture
def record(tmp_path: Path) -> UsageRecord:
    return UsageRecord.of_hub(str(tmp_path))


def told(user: Any, record: UsageRecord, job_id: int = 12) -> dict[str, object]:
    recorder = Recorder(record, timedelta(days=90))
    handler: Any = SimpleNamespace(recorder=recorder, settings={"cookie_secret": SECRET})
    answer: Any = asyncio.run(SessionStatusHandler._told(handler, user, job_id))
    return dict(json.loads(json.dumps(answer)))


def test_a_session_that_is_over_says_when_and_why(record: UsageRecord) -> None:
    record.write([NEWS])
    answer = told(user_with(), record)
    # And its page may start it again.
    assert is_valid(str(answer.pop("token")), SECRET, "ada", 12)
    assert answer == {
        "state": "ended",
        "ended": round(ENDED.timestamp()),
        "why": "its time was up",
    }


def test_an_unused_one_says_for_how_long_it_may_be(record: UsageRecord) -> None:
    record.write([replace(NEWS, ending=Ending.UNUSED)])
    assert "for 2 h" in str(told(user_with(idle=timedelta(hours=2)), record)["why"])


def test_a_silent_directory_leaves_the_time_out(record: UsageRecord) -> None:
    record.write([replace(NEWS, ending=Ending.UNUSED)])
    silent = user_with(idle=AccountUnavailable("It does not answer."))
    assert told(silent, record)["why"] == "nobody was using it"


@pytest.mark.parametrize("other", [{"user": "eve"}, {"job_id": 13}])
def test_nothing_is_told_of_anybody_elses(record: UsageRecord, other: dict[str, Any]) -> None:
    record.write([replace(NEWS, **other)])
    assert told(user_with(), record) == {"state": "unknown", "ended": None, "why": ""}


@pytest.mark.parametrize(
    ("spawner", "state"),
    [
        (StandInSpawner(), "running"),
        (StandInSpawner(ends=True), "ended"),
        (StandInSpawner(pending="stop"), "stopping"),
        (StandInSpawner(is_leaving=True), "stopping"),
        (StandInSpawner(pending="spawn"), "running"),
        (StandInSpawner(job_id="13"), "ended"),
    ],
)
def test_slurm_is_asked_whether_it_lives(spawner: StandInSpawner, state: str) -> None:
    assert asyncio.run(live_state(user_with(spawner), 12)) == state


HOST = "https://portal.test"


@pytest.mark.parametrize(
    ("origin", "referer", "is_own"),
    [
        (None, f"{HOST}/user/ada/lab/tree/a.ipynb", True),
        (None, f"{HOST}/user/eve/lab", False),
        (None, f"{HOST}/hub/home", False),
        (None, "https://evil.test/user/ada/lab", False),
        (None, None, False),
        (HOST, None, True),
        ("https://eve.portal.test", f"{HOST}/user/ada/lab", False),
        ("null", None, False),
        (None, "http://[", False),
    ],
)
def test_only_a_page_of_the_own_session_may_ask(
    origin: str | None, referer: str | None, is_own: bool
) -> None:
    assert is_own_page(origin, referer, HOST, "/user/ada/") is is_own


def test_nobody_asks_without_a_login(record: UsageRecord) -> None:
    handler: Any = SimpleNamespace(current_user=None)
    with pytest.raises(HTTPError) as refused:
        asyncio.run(SessionStatusHandler.get(handler, "12"))
    assert refused.value.status_code == 403
