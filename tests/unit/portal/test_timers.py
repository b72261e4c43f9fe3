"""Timers of the hub, its culler and sessions, while somebody sets the clock."""

import asyncio
import time

import pytest
from tornado.ioloop import IOLoop, PeriodicCallback

from dsportal.timers import use_monotonic_clock


def test_a_timer_goes_on_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, right = [3600.0], time.time
    monkeypatch.setattr(time, "time", lambda: right() + ahead[0])
    monkeypatch.setattr(IOLoop, "time", IOLoop.time)
    use_monotonic_clock()

    async def main() -> None:
        called = asyncio.Event()
        timer = PeriodicCallback(called.set, 10)
        timer.start()
        for ahead[0] in (3600.0, 0.0, 0.0):
            called.clear()
            await asyncio.wait_for(called.wait(), timeout=5)
        timer.stop()

    asyncio.run(main())
