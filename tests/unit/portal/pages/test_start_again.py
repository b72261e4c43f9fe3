"""A session that starts again as it was, and what a page must have from the hub for it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.handlers import default_handlers

from dsportal.hub.pages import start_again
from dsportal.hub.pages.start_again import (
    VALID_FOR,
    StartAgainHandler,
    choices,
    is_valid,
    start_token,
)
from dsportal.usage.record import PastSession, UsageRecord
from dsportal.usage.recorder import Recorder
from jupyterhub_gpu_slurm.session.observation import Ending
from tests.unit.portal.pages.past import NEWS

SECRET = b"s" * 32
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
OVER = PastSession(12, 2, "sxm2", "node001", NOON, NOON + timedelta(hours=1), Ending.TIME_LIMIT)


def test_the_same_again_is_what_was_held() -> None:
    assert choices(OVER) == {"gpus": "2", "partition": "sxm2"}
    assert choices(replace(OVER, partition=None)) == {"gpus": "2"}


def test_the_same_again_is_what_was_chosen_where_that_is_known() -> None:
    chosen = {"gpus": 2, "hours": 1.5, "gpu_type": "v100", "image": "torch"}
    assert choices(replace(OVER, options=chosen)) == {
        "gpus": "2",
        "hours": "1.5",
        "gpu_type": "v100",
        "image": "torch",
    }


@pytest.mark.parametrize(
    ("secret", "user", "job_id", "later", "is_good"),
    [
        (SECRET, "ada", 12, timedelta(0), True),
        (SECRET, "ada", 12, VALID_FOR - timedelta(seconds=1), True),
        (SECRET, "ada", 12, VALID_FOR + timedelta(seconds=2), False),
        (SECRET, "eve", 12, timedelta(0), False),
        (SECRET, "ada", 13, timedelta(0), False),
        (b"t" * 32, "ada", 12, timedelta(0), False),
    ],
)
def test_a_token_is_one_users_for_one_session_and_some_minutes(
    secret: bytes, user: str, job_id: int, later: timedelta, is_good: bool
) -> None:
    token = start_token(SECRET, "ada", 12, NOON.timestamp)
    assert is_valid(token, secret, user, job_id, (NOON + later).timestamp) is is_good


@pytest.mark.parametrize("token", ["", "ada", "2|1:0|10:1790000000|18:portal-start-again|0:|00"])
def test_what_the_hub_has_not_signed_is_no_token(token: str) -> None:
    assert not is_valid(token, SECRET, "ada", 12)


def ask(record: UsageRecord, **arguments: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Ask as ada for her session 12; return where she was sent, and what a page was made of."""
    sent_to: list[str] = []
    shown: list[dict[str, Any]] = []

    async def render(name: str, **told: Any) -> str:
        shown.append({"page": name, **told})
        return ""

    handler: Any = SimpleNamespace(
        current_user=SimpleNamespace(name="ada", escaped_name="ada"),
        get_argument=lambda name, default: arguments.get(name, default),
        hub=SimpleNamespace(base_url="/hub/"),
        recorder=Recorder(record, timedelta(days=90)),
        settings={"cookie_secret": SECRET},
        redirect=sent_to.append,
        set_header=lambda *_: None,
        render_template=render,
        finish=lambda _: None,
    )
    get: Any = StartAgainHandler.get
    asyncio.run(get.__wrapped__(handler, "12"))
    return sent_to, shown


@pytest.fixture
def record(tmp_path: Path) -> UsageRecord:
    record = UsageRecord.of_hub(str(tmp_path))
    record.write([NEWS])
    return record


def test_the_form_that_starts_it_has_its_choices_and_leads_back(record: UsageRecord) -> None:
    token = start_token(SECRET, "ada", 12)
    sent_to, shown = ask(record, token=token, server="two", next="/user/ada/two/lab")
    assert sent_to == []
    assert shown == [
        {
            "page": "start_again.html",
            "address": "/hub/spawn/ada/two?next=%2Fuser%2Fada%2Ftwo%2Flab",
            "choices": {"gpus": "2", "partition": "sxm2"},
        }
    ]


@pytest.mark.parametrize("token", ["", "forged", start_token(SECRET, "eve", 12)])
def test_a_link_without_the_hubs_token_leads_to_the_form(record: UsageRecord, token: str) -> None:
    assert ask(record, token=token) == (["/hub/spawn/ada"], [])


def test_a_session_that_nobody_recorded_is_chosen_anew(tmp_path: Path) -> None:
    token = start_token(SECRET, "ada", 12)
    assert ask(UsageRecord.of_hub(str(tmp_path)), token=token) == (["/hub/spawn/ada"], [])


def test_the_hub_answers_once_however_often_it_is_put_in() -> None:
    before = list(default_handlers)
    try:
        for folder in ("/a", "/b"):
            start_again.install(Recorder(UsageRecord.of_hub(folder), timedelta(days=90)))
        assert [one[1] for one in default_handlers].count(StartAgainHandler) == 1
    finally:
        default_handlers[:] = before
