import socket
import ssl
from typing import Any

import pytest

from dsportal.hub.pages.live_use import LiveUse, SessionTlsContext, use_from


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


def test_a_sessions_own_name_is_asked_for_whatever_the_node_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        ssl.SSLContext, "wrap_socket", lambda *_, **named: asked.append(named["server_hostname"])
    )
    context = SessionTlsContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = "ada.session.internal"
    assert context.check_hostname
    with socket.socket() as plain:
        context.wrap_socket(plain, server_hostname="node001", do_handshake_on_connect=False)
    assert asked == ["ada.session.internal"]
