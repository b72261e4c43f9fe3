import pytest

from spawner.callback import port_from


def test_a_port_is_taken() -> None:
    assert port_from(b'{"port": 40123}') == 40123


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"40123",
        b"[40123]",
        b"{}",
        b'{"port": "40123"}',
        b'{"port": 40123.0}',
        b'{"port": true}',
        b'{"port": 0}',
        b'{"port": 22}',
        b'{"port": 65536}',
        b'{"port": -1}',
        b'{"port": 40123, "cmd": ["id"]}',
        b'{"cmd": ["id"]}',
        b'{"port": NaN}',
        b"\xff",
    ],
)
def test_nothing_else_is_taken(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"port|JSON|body"):
        port_from(body)
