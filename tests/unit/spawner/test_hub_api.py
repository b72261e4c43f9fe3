"""What sessions say to the hub: what is taken, and from whom."""

import asyncio
import inspect
import json
import logging
from types import SimpleNamespace
from typing import Any

import batchspawner.api
import pytest
from jupyterhub.apihandlers import default_handlers
from tornado.web import HTTPError

from jupyterhub_gpu_slurm import hub_api
from jupyterhub_gpu_slurm.errors import CommandTimedOut, OverLimit
from jupyterhub_gpu_slurm.hub_api import (
    ActivityHandler,
    AvailabilityHandler,
    ExtensionHandler,
    ForecastHandler,
    PortHandler,
    UnusedHandler,
    number_from,
    spawner_of_token,
)

PORTS = (1024, 65535)


def test_a_number_is_taken() -> None:
    assert number_from(b'{"port": 40123}', "port", PORTS) == 40123


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
        b'{"minutes": 40123}',
        b'{"port": 99999999999999999999}',
        b'{"port": NaN}',
        b"\xff",
    ],
)
def test_nothing_else_is_taken(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"port|JSON|body"):
        number_from(body, "port", PORTS)


def test_true_is_no_number_where_one_would_do() -> None:
    with pytest.raises(ValueError, match="a whole number from 1 to 60"):
        number_from(b'{"minutes": true}', "minutes", (1, 60))


@pytest.mark.parametrize("port", PORTS)
def test_the_first_and_the_last_number(port: int) -> None:
    assert number_from(b'{"port": %d}' % port, "port", PORTS) == port
    outside = port - 1 if port == 1024 else port + 1
    with pytest.raises(ValueError, match="from 1024 to 65535"):
        number_from(b'{"port": %d}' % outside, "port", PORTS)


class Spawner:
    """Stands in for one that says what it is told to; ``taken`` is what it heard."""

    job_id = "12"
    ready = True

    def __init__(self, answer: Any = None, *, has_job: bool = True) -> None:
        self.answer = answer
        self.has_job = has_job
        self.taken: list[Any] = []
        self.log = logging.getLogger("stand-in")

    def take_port(self, port: int) -> Any:
        self.taken.append(port)
        return self.answer

    async def possible_extension(self) -> Any:
        return self._said()

    async def extend(self, minutes: int) -> Any:
        self.taken.append(minutes)
        return self._said()

    async def take_idle(self, seconds: int) -> Any:
        self.taken.append(seconds)
        return self._said()

    async def forecast(self, fields: dict[str, list[str]]) -> Any:
        self.taken.append(fields)
        return self._said()

    async def availability(self) -> Any:
        return self._said()

    def note_unused(self) -> Any:
        return self.answer

    def _said(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def asked(
    kind: type[Any], spawners: dict[str, Any], token_id: int | None = None, body: bytes = b""
) -> Any:
    """Return a request with the token of this number, as the hub hands it to its handler."""
    kept = {name: SimpleNamespace(state=state) for name, (state, _) in spawners.items()}
    found = {name: spawner for name, (_, spawner) in spawners.items()}
    user = SimpleNamespace(orm_spawners=kept, spawners=found)

    class Asked(kind):  # type: ignore[misc]
        current_user = user
        request = SimpleNamespace(body=body, query_arguments={"gpus": [b"2"]})

        def __init__(self) -> None:
            self.said: list[Any] = []

        def get_token(self) -> Any:
            return None if token_id is None else SimpleNamespace(id=token_id)

        def find_user(self, name: str) -> Any:
            return user if name == "ada" else None

        def set_status(self, status: int, reason: str | None = None) -> None:
            self.said.append(status)

        def write(self, chunk: Any) -> None:
            self.said.append(json.loads(chunk))

        def finish(self, chunk: Any = None) -> Any:
            self.said.append(json.loads(chunk))

    return Asked()


def status_of(awaitable: Any) -> int:
    with pytest.raises(HTTPError) as raised:
        asyncio.run(awaitable)
    return raised.value.status_code


def test_the_port_goes_to_the_session_whose_token_it_is() -> None:
    ours, other = Spawner(True), Spawner(True)
    sessions = {"": ({"token_id": 7}, other), "lab": ({"token_id": 8}, ours), "x": (None, other)}
    request = asked(PortHandler, sessions, 8, b'{"port": 40123}')
    asyncio.run(request.post())
    assert (ours.taken, other.taken, request.said) == ([40123], [], [204])


@pytest.mark.parametrize(
    ("token_id", "body", "awaits", "status"),
    [
        (None, b'{"port": 40123}', True, 403),
        (9, b'{"port": 40123}', True, 403),
        (8, b'{"port": 1}', True, 400),
        (8, b'{"port": 40123}', False, 409),
    ],
)
def test_what_is_not_a_port_of_a_session_that_starts(
    token_id: int | None, body: bytes, awaits: bool, status: int
) -> None:
    request = asked(PortHandler, {"": ({"token_id": 8}, Spawner(awaits))}, token_id, body)
    assert status_of(request.post()) == status
    assert request.said == []


POSSIBLE = SimpleNamespace(as_json=lambda: {"longest_minutes": 60})
REFUSED = OverLimit("No more today.")
SILENT = CommandTimedOut("Slurm does not answer.", detail="squeue")
SESSION = {"token_id": 8}


def test_a_session_asks_for_more_time_and_hears_what_it_has() -> None:
    spawner = Spawner(POSSIBLE)
    request = asked(ExtensionHandler, {"": (SESSION, spawner)}, 8, b'{"minutes": 30}')
    asyncio.run(request.get())
    asyncio.run(request.post())
    assert spawner.taken == [30]
    assert request.said == [{"longest_minutes": 60}] * 2


@pytest.mark.parametrize(
    ("spawner", "body", "status"),
    [
        (Spawner(POSSIBLE), b'{"minutes": 0}', 400),
        (Spawner(POSSIBLE), b'{"minutes": 527041}', 400),
        (Spawner(POSSIBLE, has_job=False), b'{"minutes": 30}', 409),
        (Spawner(REFUSED), b'{"minutes": 30}', 403),
        (Spawner(SILENT), b'{"minutes": 30}', 503),
    ],
)
def test_time_that_is_not_given(spawner: Spawner, body: bytes, status: int) -> None:
    assert status_of(asked(ExtensionHandler, {"": (SESSION, spawner)}, 8, body).post()) == status


def test_the_time_of_a_session_is_known_to_itself_only() -> None:
    assert status_of(asked(ExtensionHandler, {"": (SESSION, Spawner(POSSIBLE))}, 9).get()) == 403
    nothing = Spawner(POSSIBLE, has_job=False)
    assert status_of(asked(ExtensionHandler, {"": (SESSION, nothing)}, 8).get()) == 409


def test_a_session_says_that_nobody_uses_it() -> None:
    spawner = Spawner({"limit_seconds": 60})
    request = asked(ActivityHandler, {"": (SESSION, spawner)}, 8, b'{"idle_seconds": 7200}')
    asyncio.run(request.post())
    assert (spawner.taken, request.said) == ([7200], [{"limit_seconds": 60}])
    for body in (b'{"idle_seconds": -1}', b'{"idle_seconds": 316224001}'):
        assert status_of(asked(ActivityHandler, {"": (SESSION, spawner)}, 8, body).post()) == 400
    silent = asked(ActivityHandler, {"": (SESSION, Spawner(SILENT))}, 8, b'{"idle_seconds": 0}')
    assert status_of(silent.post()) == 503


def unguarded(method: Any) -> Any:
    """Return a handler's method without JupyterHub's check of scopes, which needs a hub."""
    return method.__wrapped__


def test_a_form_hears_when_its_session_would_start() -> None:
    default, lab = Spawner(POSSIBLE), Spawner(POSSIBLE)
    request = asked(ForecastHandler, {"": (None, default), "lab": (None, lab)})
    asyncio.run(unguarded(ForecastHandler.get)(request, "ada", "lab"))
    # The form of a server that is not there yet is the default one's.
    asyncio.run(unguarded(ForecastHandler.get)(request, "ada", "new"))
    assert (default.taken, lab.taken) == ([{"gpus": ["2"]}], [{"gpus": ["2"]}])
    assert request.said == [{"longest_minutes": 60}] * 2


@pytest.mark.parametrize(
    ("user", "spawner", "status"),
    [
        ("bob", Spawner(POSSIBLE), 404),
        ("ada", object(), 404),
        ("ada", Spawner(REFUSED), 400),
        ("ada", Spawner(SILENT), 503),
    ],
)
def test_a_form_that_hears_nothing(user: str, spawner: Any, status: int) -> None:
    request = asked(ForecastHandler, {"": (None, spawner)})
    assert status_of(unguarded(ForecastHandler.get)(request, user)) == status


def test_what_is_free_is_told_or_that_slurm_is_silent() -> None:
    request = asked(AvailabilityHandler, {"": (None, Spawner([]))})
    asyncio.run(unguarded(AvailabilityHandler.get)(request, "ada"))
    assert request.said == [{"partitions": []}]
    silent = asked(AvailabilityHandler, {"": (None, Spawner(SILENT))})
    assert status_of(unguarded(AvailabilityHandler.get)(silent, "ada")) == 503


def test_the_culler_hears_whether_a_session_is_over() -> None:
    over, used, starting = Spawner(True), Spawner(False), Spawner(True)
    starting.ready = False
    names = {"over": (None, over), "used": (None, used), "starting": (None, starting)}
    request = asked(UnusedHandler, names)
    for name in names:
        asyncio.run(unguarded(UnusedHandler.post)(request, "ada", name))
    assert request.said == [{"end": True}, {"end": False}, {"end": False}]
    for user, name in (("ada", "gone"), ("bob", "over")):
        assert status_of(unguarded(UnusedHandler.post)(request, user, name)) == 404


def test_a_service_and_another_kind_of_spawner_have_no_session() -> None:
    request = asked(PortHandler, {"": ({"token_id": 8}, object())}, 8)
    assert spawner_of_token(request) is None
    request.current_user = SimpleNamespace(name="a service")
    assert spawner_of_token(request) is None


def test_a_browsers_login_is_not_enough() -> None:
    stranger: Any = SimpleNamespace(get_auth_token=lambda: None)
    with pytest.raises(HTTPError) as raised:
        PortHandler.prepare(stranger)
    assert raised.value.status_code == 403


def test_the_base_classs_own_handler_is_gone_and_ours_is_there_once() -> None:
    hub_api.install()
    hub_api.install()
    kinds = [kind for _, kind, *_ in default_handlers]
    assert batchspawner.api.BatchSpawnerAPIHandler not in kinds
    assert [kinds.count(kind) for _, kind in hub_api.HANDLERS] == [1] * 6
    assert (r"/api/gpu-session/port", PortHandler) in default_handlers


@pytest.mark.parametrize(
    ("answer", "scope"),
    [
        (ForecastHandler.get, "start:servers"),
        (AvailabilityHandler.get, "start:servers"),
        (UnusedHandler.post, "delete:servers"),
    ],
)
def test_others_are_asked_for_their_rights(answer: Any, scope: str) -> None:
    # What JupyterHub's decorator needs_scope was given.
    assert inspect.getclosurevars(answer).nonlocals["scopes"] == (scope,)
