"""What a session does again and again."""

import asyncio
import logging

import pytest

from dsportal.session.periodic import repeat


def test_work_that_fails_is_done_again_after_the_pause(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = iter([OSError("too many open files"), None, SystemExit("done thrice")])
    pauses: list[float] = []

    async def work() -> None:
        if (outcome := next(outcomes)) is not None:
            raise outcome

    def pause() -> float:
        pauses.append(0)
        return 0

    with pytest.raises(SystemExit, match="done thrice"):
        asyncio.run(repeat(work, pause, logging.getLogger("dsportal"), "It could not be done"))
    assert len(pauses) == 2
    assert [record.getMessage() for record in caplog.records] == ["It could not be done"]
    assert "too many open files" in caplog.text
