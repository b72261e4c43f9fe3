"""What is kept of a session, and when it is written."""

import pytest

from jupyterhub_gpu_slurm.session.record import SessionRecord
from jupyterhub_gpu_slurm.session.state import SessionState

ID = "a" * 32


class Database:
    """Holds what was written last, and which tokens have ended."""

    def __init__(self) -> None:
        self.record = SessionRecord(self.write, self.revoke)
        self.written: SessionState | None = None
        self.revoked: list[int] = []

    def write(self) -> None:
        self.written = self.record.state

    def revoke(self, number: int) -> None:
        # The session that has the token is still known.
        assert self.record.state.token_id == number
        self.revoked.append(number)


@pytest.fixture
def database() -> Database:
    return Database()


def test_what_is_saved_is_written_with_what_was_noted_before(database: Database) -> None:
    database.record.note(gpus=2)
    assert database.written is None
    database.record.save(id=ID)
    assert database.written == database.record.state == SessionState(ID, gpus=2)


@pytest.mark.parametrize(("is_ready", "is_interrupted"), [(True, False), (False, True)])
def test_a_start_whose_end_was_not_kept_was_interrupted(
    database: Database, is_ready: bool, is_interrupted: bool
) -> None:
    kept = SessionState(ID, is_ready=is_ready)
    database.record.read(kept.to_json())
    assert database.record.state == kept
    assert database.record.is_interrupted is is_interrupted


def test_without_a_session_nothing_was_interrupted(database: Database) -> None:
    database.record.read({})
    assert (database.record.state, database.record.is_interrupted) == (SessionState(), False)


def test_a_session_that_is_forgotten_has_no_token_any_more(database: Database) -> None:
    database.record.note(id=ID, token_id=7)
    database.record.forget()
    assert (database.record.state, database.revoked) == (SessionState(), [7])


def test_where_no_token_is_known_none_is_revoked(database: Database) -> None:
    database.record.forget()
    assert database.revoked == []
