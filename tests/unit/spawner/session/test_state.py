"""What of a session survives the hub."""

import json
from dataclasses import FrozenInstanceError, fields

import pytest

from jupyterhub_gpu_slurm.session.state import VERSION, SessionState

WHOLE = SessionState(
    id="a" * 32,
    options={"gpus": 2},
    port=40123,
    token_id=7,
    client_secret="a hash",
    is_ready=True,
    gpus=2,
    groups=("bio", "ml"),
    extensions=1,
    asked_at=1_800_000_000.5,
)
# As a hub of before versions wrote it.
OLD = {
    "session_id": "a" * 32,
    "session_options": {"gpus": 2},
    "session_port": 40123,
    "token_id": 7,
    "client_secret": "a hash",
    "is_ready": True,
    "held_gpus": 2,
    "session_groups": ["bio", "ml"],
    "extensions": 1,
    "asked_at": 1_800_000_000.5,
}


def test_all_of_it_goes_through_the_database() -> None:
    assert all(getattr(WHOLE, each.name) for each in fields(WHOLE))
    written = json.loads(json.dumps(WHOLE.to_json()))
    assert written == {**OLD, "version": VERSION}
    assert SessionState.from_json(written) == WHOLE


def test_a_record_without_a_version_is_read() -> None:
    assert SessionState.from_json({**OLD, "job_id": "12", "idle_seconds": 3}) == WHOLE


def test_no_session_writes_nothing() -> None:
    assert SessionState().to_json() == {}
    assert SessionState.from_json({}) == SessionState()


def test_a_session_without_gpus_holds_none_and_is_written() -> None:
    assert SessionState("a" * 32, gpus=0).to_json()["held_gpus"] == 0


def test_nobody_changes_it_in_passing() -> None:
    with pytest.raises(FrozenInstanceError):
        WHOLE.gpus = 8  # type: ignore[misc]
