import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from dsportal.session.callback import HubRefusedError, open_socket, report_port


class Hub:
    """A hub that answers as it is told, and keeps what it was told."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.requests: list[HTTPServerRequest] = []
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Hub"]:
        hub = self

        class Handler(RequestHandler):
            def post(self) -> None:
                hub.requests.append(self.request)
                self.set_status(hub.answers.pop(0))

        server = HTTPServer(Application([("/port", Handler)]))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/port"
        try:
            yield self
        finally:
            server.stop()
            await server.close_all_connections()


def report_to(hub: Hub) -> None:
    async def report() -> None:
        async with hub.listening():
            await report_port(hub.url, "secret", 4711, retry_seconds=(0.01, 0.01))

    asyncio.run(report())


def test_the_hub_is_told_the_port_with_the_sessions_token() -> None:
    hub = Hub(204)
    report_to(hub)
    [request] = hub.requests
    assert json.loads(request.body) == {"port": 4711}
    assert request.headers["Authorization"] == "token secret"


def test_a_hub_that_stumbles_is_asked_again() -> None:
    hub = Hub(500, 502, 204)
    report_to(hub)
    assert len(hub.requests) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_a_refusal_is_final(code: int) -> None:
    hub = Hub(code)
    with pytest.raises(HubRefusedError, match=f"refused the port: HTTP {code}"):
        report_to(hub)
    assert len(hub.requests) == 1


def test_a_hub_that_never_answers_is_given_up() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/port"
    with pytest.raises(HubRefusedError, match="did not take the port"):
        asyncio.run(report_port(url, "secret", 4711, retry_seconds=(0.01,)))


def test_the_socket_is_reachable_on_all_addresses() -> None:
    with closing(open_socket()) as listener:
        port = listener.getsockname()[1]
        # All of 127.0.0.0/8 is this host: the second stands for what a node is called by others.
        for address in ("127.0.0.1", "127.0.0.2", *(["::1"] if has_ipv6() else [])):
            socket.create_connection((address, port), timeout=5).close()


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False
