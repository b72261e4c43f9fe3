"""A form that is sent while its session starts, or runs."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.pages import SpawnHandler
from tornado import web

from dsportal.hub.patches import second_start
from dsportal.hub.patches.second_start import SecondStartHandler


def sent(
    monkeypatch: pytest.MonkeyPatch, status: int, *, pending: str | None = None, ready: bool = False
) -> list[str]:
    """Send the form where JupyterHub refuses it with this status; return where it leads."""

    async def refuse(_: object, **told: object) -> None:
        raise web.HTTPError(status)

    monkeypatch.setattr(SpawnHandler, "_post", refuse)
    handler: Any = SecondStartHandler.__new__(SecondStartHandler)
    user = SimpleNamespace(spawners={"": SimpleNamespace(pending=pending, ready=ready)})
    sent_to: list[str] = []
    handler.find_user = lambda name: user
    handler.redirect = sent_to.append
    handler._get_pending_url = lambda user, server: "/hub/spawn-pending/ada"
    asyncio.run(handler._post("ada", "", ""))
    return sent_to


@pytest.mark.parametrize("now", [{"pending": "spawn"}, {"pending": "stop"}, {"ready": True}])
def test_it_leads_to_the_session_that_there_is(
    monkeypatch: pytest.MonkeyPatch, now: dict[str, Any]
) -> None:
    assert sent(monkeypatch, 400, **now) == ["/hub/spawn-pending/ada"]


@pytest.mark.parametrize(
    ("status", "now"), [(404, {"pending": "spawn"}), (403, {"ready": True}), (400, {})]
)
def test_other_errors_stay_errors(
    monkeypatch: pytest.MonkeyPatch, status: int, now: dict[str, Any]
) -> None:
    with pytest.raises(web.HTTPError) as raised:
        sent(monkeypatch, status, **now)
    assert raised.value.status_code == status


@pytest.mark.parametrize(("posted", "shown"), [("", "default"), ("two", "two")])
def test_what_was_refused_comes_back_as_it_was_sent(
    monkeypatch: pytest.MonkeyPatch, posted: str, shown: str
) -> None:
    async def refuse(self: Any, user_name: str, server_name: str, display_name: str) -> None:
        await self._render_form(for_user=user, spawner_options_form="default", message="no")

    async def render(_: object, for_user: object, form: str, **told: str) -> str:
        rendered.append((form, told["message"]))
        return form

    async def form_of_two() -> str:
        return "two"

    monkeypatch.setattr(SpawnHandler, "_post", refuse)
    monkeypatch.setattr(SpawnHandler, "_render_form", render)
    user = SimpleNamespace(spawners={"two": SimpleNamespace(get_options_form=form_of_two)})
    rendered: list[tuple[str, str]] = []
    handler: Any = SecondStartHandler.__new__(SecondStartHandler)
    asyncio.run(handler._post("ada", posted, ""))
    assert rendered == [(shown, "no")]


def test_it_takes_the_place_of_jupyterhubs() -> None:
    before = list(default_handlers)
    try:
        second_start.install()
        kinds = [one[1] for one in default_handlers]
        assert SpawnHandler not in kinds
        assert SecondStartHandler in kinds
    finally:
        default_handlers[:] = before
