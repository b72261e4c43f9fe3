"""Where a session says its port: what is taken, and from whom."""

import asyncio
from types import SimpleNamespace
from typing import Any

import batchspawner.api
import pytest
from jupyterhub.apihandlers import default_handlers
from tornado.web import HTTPError

from jupyterhub_gpu_slurm import callback
from jupyterhub_gpu_slurm.callback import SessionPortHandler, port_from, spawner_of_token


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


@pytest.mark.parametrize("port", [1024, 65535])
def test_the_first_and_the_last_port(port: int) -> None:
    assert port_from(b'{"port": %d}' % port) == port
    outside = port - 1 if port == 1024 else port + 1
    with pytest.raises(ValueError, match="from 1024 to 65535"):
        port_from(b'{"port": %d}' % outside)


class Spawner:
    """Stands in for one that awaits a port, or does not."""

    def __init__(self, awaits: bool) -> None:
        self.awaits = awaits
        self.taken: list[int] = []

    def take_port(self, port: int) -> bool:
        self.taken.append(port)
        return self.awaits


def handler(spawners: dict[str, Any], token_id: int | None, body: bytes = b"") -> Any:
    """Stand in for a request with the token of this number."""
    kept = {name: SimpleNamespace(state=state) for name, (state, _) in spawners.items()}
    found = {name: spawner for name, (_, spawner) in spawners.items()}
    statuses: list[int] = []
    return SimpleNamespace(
        get_token=lambda: None if token_id is None else SimpleNamespace(id=token_id),
        current_user=SimpleNamespace(orm_spawners=kept, spawners=found),
        request=SimpleNamespace(body=body),
        set_status=statuses.append,
        statuses=statuses,
    )


def test_the_port_goes_to_the_session_whose_token_it_is() -> None:
    ours, other = Spawner(True), Spawner(True)
    sessions = {"": ({"token_id": 7}, other), "lab": ({"token_id": 8}, ours), "x": (None, other)}
    asked = handler(sessions, 8, b'{"port": 40123}')
    asyncio.run(SessionPortHandler.post(asked))
    assert (ours.taken, other.taken, asked.statuses) == ([40123], [], [204])


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
    asked = handler({"": ({"token_id": 8}, Spawner(awaits))}, token_id, body)
    with pytest.raises(HTTPError) as raised:
        asyncio.run(SessionPortHandler.post(asked))
    assert raised.value.status_code == status
    assert asked.statuses == []


def test_a_service_and_another_kind_of_spawner_have_no_session() -> None:
    asked = handler({"": ({"token_id": 8}, object())}, 8)
    assert spawner_of_token(asked) is None
    asked.current_user = SimpleNamespace(name="a service")
    assert spawner_of_token(asked) is None


def test_a_browsers_login_is_not_enough() -> None:
    stranger: Any = SimpleNamespace(get_auth_token=lambda: None)
    with pytest.raises(HTTPError) as raised:
        SessionPortHandler.prepare(stranger)
    assert raised.value.status_code == 403


def test_the_base_classs_own_handler_is_gone_and_ours_is_there_once() -> None:
    callback.install()
    callback.install()
    kinds = [kind for _, kind, *_ in default_handlers]
    assert batchspawner.api.BatchSpawnerAPIHandler not in kinds
    assert kinds.count(SessionPortHandler) == 1
    assert (r"/api/gpu-session/port", SessionPortHandler) in default_handlers
