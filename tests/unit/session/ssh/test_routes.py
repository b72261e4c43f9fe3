"""Who closes first, the client or the server."""

import asyncio
from typing import Any

import pytest

from dsportal.session.ssh.routes import SshHandler


class Connection:
    """A server of SSH that has ended, and whose folder takes a moment to be removed."""

    is_removed = False

    async def run(self, _send: Any) -> None:
        """Nothing is left to send."""

    async def close(self) -> None:
        await asyncio.sleep(0.05)
        self.is_removed = True


def test_the_clients_answer_to_a_close_interrupts_no_removal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act() -> None:
        handler, connection = SshHandler.__new__(SshHandler), Connection()
        handler.is_ending = False
        # As tornado does once the client has answered.
        answered = asyncio.get_running_loop().call_soon
        monkeypatch.setattr(handler, "close", lambda: answered(handler.on_close))
        handler.sending = asyncio.create_task(handler._send(connection))  # type: ignore[arg-type]
        await handler.sending
        assert connection.is_removed

    asyncio.run(act())
