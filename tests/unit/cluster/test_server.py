"""What the service's connections can cost, also those of callers whom the hub knows."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.web import Application, RequestHandler

from dsportal import request_limits
from dsportal.cluster import __main__ as service
from tests.unit.loops import in_a_loop
from tests.unit.test_request_limits import Wire, served

ASKED = b"GET /slow HTTP/1.1\r\nHost: x\r\nAuthorization: token x\r\n\r\n"


class Slow(RequestHandler):
    """Answers somebody who is known, and does not come to an end, as for who does not read it."""

    def initialize(self, may_end: asyncio.Event) -> None:
        self._may_end = may_end

    async def get(self) -> None:
        request_limits.welcome()
        await self.flush()
        await self._may_end.wait()


async def is_open(wire: Wire) -> bool:
    try:
        async with asyncio.timeout(0.05):
            return await wire.reader.read(1) != b""
    except TimeoutError:
        return True
    except ConnectionResetError:
        return False


@in_a_loop
async def test_the_connections_of_known_callers_give_way_to_newer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "_MOST_CONNECTIONS", 8)
    auth: Any = SimpleNamespace()
    may_end = asyncio.Event()
    app = Application([("/slow", Slow, {"may_end": may_end})])
    async with served(lambda _: service.server(app, auth, None)) as house:
        wires = []
        for _ in range(20):
            wires.append((await house.connect()).send(ASKED))
            assert (await wires[-1].answer())[0] == 200
        found = [await is_open(wire) for wire in wires]
        assert sum(found) <= 8
        assert found[-1]
        may_end.set()
