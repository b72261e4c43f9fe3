"""Who is asked before the logout."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader
from jupyterhub.handlers import default_handlers
from jupyterhub.handlers.login import LogoutHandler
from tornado.web import HTTPError

from dsportal.hub.pages import logout
from dsportal.hub.pages.logout import AskingLogoutHandler, held_gpus, sessions_of
from dsportal.look import WEB


def user_with(*gpus: int | None) -> Any:
    """Return a user with sessions; ``None`` is one that is not there any more."""
    made = [SimpleNamespace(active=one is not None, held_gpus=one, pending=None) for one in gpus]
    spawners = dict(enumerate(made))
    return SimpleNamespace(name="ada", spawners=spawners, orm_spawners=spawners)


@pytest.mark.parametrize(
    ("gpus", "count", "held"), [((), 0, 0), ((None,), 0, 0), ((0,), 1, 0), ((2, None, 1), 2, 3)]
)
def test_what_would_stay_reserved(gpus: tuple[int | None, ...], count: int, held: int) -> None:
    sessions = sessions_of(user_with(*gpus))
    assert (len(sessions), held_gpus(sessions)) == (count, held)


@pytest.mark.parametrize(
    ("sessions", "words"),
    [
        (1, ("need your session?", "If you keep it, 3 GPUs stay", "Stop it and log out")),
        (2, ("need your 2 sessions?", "If you keep them, 3 GPUs", "Stop all of them and log out")),
    ],
)
def test_who_has_several_sessions_reads_that_all_would_end(
    sessions: int, words: tuple[str, ...]
) -> None:
    page = Environment(loader=FileSystemLoader(WEB), autoescape=True).get_template("leave.html")
    given = page.new_context({"sessions": sessions, "gpus": 3, "base_url": "/hub/"})
    text = "".join(page.blocks["main"](given))
    assert [one for one in words if one not in text] == []


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []

    async def log_out(_: object) -> None:
        done.append("logged out")

    async def stop(_: object, user: Any) -> None:
        done.append(f"stopped {user.name}")

    monkeypatch.setattr(LogoutHandler, "get", log_out)
    monkeypatch.setattr(LogoutHandler, "_shutdown_servers", stop)
    return done


def handler(user: Any, keep: str, done: list[str]) -> Any:
    async def render(name: str, **told: object) -> str:
        return f"{name} {told['sessions']} {told['gpus']}"

    found: Any = AskingLogoutHandler.__new__(AskingLogoutHandler)
    found._jupyterhub_user = user
    found.get_argument = lambda name, default: keep
    found.render_template = render
    found.finish = done.append
    found.application = SimpleNamespace(settings={"slow_stop_timeout": 5})
    return found


@pytest.mark.parametrize(
    ("user", "keep", "outcome"),
    [
        (user_with(2), "", "leave.html 1 2"),
        (user_with(2, 4), "", "leave.html 2 6"),
        (user_with(2), "1", "logged out"),
        (user_with(None), "", "logged out"),
        (None, "", "logged out"),
    ],
)
def test_who_has_a_session_is_asked_once(
    user: Any, keep: str, outcome: str, done: list[str]
) -> None:
    asyncio.run(handler(user, keep, done).get())
    assert done == [outcome]


def test_the_form_stops_first(done: list[str]) -> None:
    post: Any = AskingLogoutHandler.post
    asyncio.run(post.__wrapped__(handler(user_with(2), "", done)))
    assert done == ["stopped ada", "logged out"]


def test_the_form_stops_what_waits_for_its_gpus(done: list[str]) -> None:
    async def start(spawner: Any) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
            done.append("cancelled")
            spawner.pending = None
            raise

    async def leave() -> None:
        user = user_with(2)
        (spawner,) = user.spawners.values()
        spawner.pending = "spawn"
        spawner._spawn_future = asyncio.create_task(start(spawner))
        await asyncio.sleep(0)
        post: Any = AskingLogoutHandler.post
        await post.__wrapped__(handler(user, "", done))

    asyncio.run(leave())
    assert done == ["cancelled", "stopped ada", "logged out"]


def test_a_start_that_the_hubs_end_interrupted_is_asked_about_and_stopped(done: list[str]) -> None:
    user = user_with(2)
    (spawner,) = user.spawners.values()
    spawner.active, spawner.is_interrupted = False, True

    async def give_up() -> None:
        done.append("given up")
        spawner.is_interrupted = False

    spawner.give_up = give_up
    asyncio.run(handler(user, "", done).get())
    post: Any = AskingLogoutHandler.post
    asyncio.run(post.__wrapped__(handler(user, "", done)))
    assert done == ["leave.html 1 2", "given up", "stopped ada", "logged out"]


def test_who_has_a_start_that_does_not_end_is_not_logged_out(done: list[str]) -> None:
    user = user_with(2)
    (spawner,) = user.spawners.values()
    spawner.pending, spawner._spawn_future = "spawn", None
    leaving = handler(user, "", done)
    leaving.application.settings["slow_stop_timeout"] = 0.1
    post: Any = AskingLogoutHandler.post
    with pytest.raises(HTTPError) as refused:
        asyncio.run(post.__wrapped__(leaving))
    assert (refused.value.status_code, done) == (503, [])


def test_it_takes_the_place_of_jupyterhubs() -> None:
    before = list(default_handlers)
    try:
        logout.install()
        kinds = [one[1] for one in default_handlers]
        assert LogoutHandler not in kinds
        assert AskingLogoutHandler in kinds
    finally:
        default_handlers[:] = before
