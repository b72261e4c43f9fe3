"""How long a body of a request may be in a session."""

from typing import Any

import pytest

from dsportal.request_limits import SMALL_BODY
from dsportal.session.web.bodies import longest_body

MOST = 512 * 2**20


class Memory:
    """The memory of a session's job, as far as bodies are concerned."""

    def __init__(self, gigabytes: float | None) -> None:
        self._gigabytes = gigabytes

    def limit_gib(self) -> float | None:
        return self._gigabytes


@pytest.mark.parametrize(
    ("gigabytes", "longest"),
    [
        (None, MOST),
        (48, MOST),
        (4, MOST),
        # An eighth of the session's memory: what is read is there several times.
        (2, 256 * 2**20),
        (0.001, SMALL_BODY),
    ],
)
def test_a_body_is_no_longer_than_the_sessions_memory_can_take(
    gigabytes: float | None, longest: int
) -> None:
    memory: Any = Memory(gigabytes)
    assert longest_body(MOST, memory) == longest
