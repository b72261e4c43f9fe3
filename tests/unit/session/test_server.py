"""What a session's server begins once the hub knows it."""

import asyncio
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsportal.session import server


def test_what_is_wrong_with_the_homes_settings_keeps_nothing_else_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def report_port(*_: object) -> None:
        """Have a hub that takes it."""

    def broken(_: Path) -> None:
        raise OSError("Stale file handle")

    async def run() -> None:
        begun.set()

    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.setattr(server, "report_port", report_port)
    monkeypatch.setattr(server, "set_broken_files_aside", broken)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    place = SimpleNamespace(home=tmp_path, told=SimpleNamespace(callback_url="http://hub"))
    listens = SimpleNamespace(add_socket=lambda _: None)
    ours: Any = SimpleNamespace(place=place, listener=None, port=1, _http_server=listens)
    components: Any = SimpleNamespace(run=run)
    with pytest.raises(OSError, match="Stale"):
        asyncio.run(server.SessionServer._open(ours, components))
    assert begun.is_set()
