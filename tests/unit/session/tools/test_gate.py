"""Whom the gate of a tool takes for the tool."""

import asyncio
import os

import pytest

from dsportal.session.tools import gate

MINE = os.getuid()


@pytest.mark.parametrize(
    ("owners", "is_taken"), [({MINE}, True), ({MINE, MINE + 1}, False), (set(), False)]
)
def test_a_port_on_which_others_listen_too_is_not_the_tools(
    monkeypatch: pytest.MonkeyPatch, owners: set[int], is_taken: bool
) -> None:
    async def connected() -> bool:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setattr(gate, "owners_of_port", lambda asked: owners if asked == port else None)
        try:
            found = await gate._connected(port)
        finally:
            server.close()
        if found is not None:
            found[1].close()
        return found is not None

    assert asyncio.run(connected()) is is_taken
