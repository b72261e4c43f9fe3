import pytest

from dsportal.hub.live_use import LiveUse, use_from


def test_what_a_session_says_is_read() -> None:
    assert use_from(b'{"cores": 1.25, "memory_bytes": 1024}') == LiveUse(1.25, 1024)
    assert use_from(b'{"cores": null, "memory_bytes": 7.0}') == LiveUse(None, 7)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<script>",
        b"[]",
        b"[" * 5000,
        b"{}",
        b'{"cores": "1", "memory_bytes": true}',
        b'{"cores": NaN, "memory_bytes": Infinity}',
        b'{"cores": -1, "memory_bytes": 1e300}',
        b'{"cores": [1], "memory_bytes": {"a": 1}}',
    ],
)
def test_what_a_hostile_session_says_is_not_passed_on(body: bytes) -> None:
    assert use_from(body) == LiveUse()
