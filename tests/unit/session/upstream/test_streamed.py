"""Events through the proxy of a session, where the server behind it does not end well."""

import asyncio
from typing import Any

import httpx
import pytest
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from dsportal.session.upstream.streamed import streamed

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"8\r\ndata: 1\n\r\n"
)


class Proxy(web.RequestHandler):
    """Stands in for jupyter-server-proxy's handler, as far as it is used."""

    port = 0
    is_passed_on: asyncio.Event

    def proxy_request_options(self) -> dict[str, Any]:
        return {}

    def _record_activity(self) -> None:
        self.is_passed_on.set()

    async def get(self) -> None:
        await self._proxy_buffered(AsyncHTTPClient(force_instance=True))

    async def _proxy_buffered(self, client: Any) -> None:
        url = f"http://127.0.0.1:{self.port}/"
        answer = await client.fetch(HTTPRequest(url), raise_error=False)
        self.set_status(answer.code, answer.reason)
        if answer.body:
            self.write(answer.body)


async def asked(last: bytes) -> str:
    """Ask for events through the proxy, whose connection ends after one and ``last``."""
    is_passed_on = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        await asyncio.wait_for(is_passed_on.wait(), 20)
        writer.write(last)
        writer.close()

    upstream = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = upstream.sockets[0].getsockname()[1]
    handler = type("Handler", (streamed(Proxy),), {"port": port, "is_passed_on": is_passed_on})
    (listener,) = bind_sockets(0, "127.0.0.1")
    front = HTTPServer(web.Application([("/", handler)]))
    front.add_socket(listener)
    try:
        async with httpx.AsyncClient() as http:
            return (await http.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")).text
    finally:
        front.stop()
        upstream.close()


def test_events_are_passed_on_to_their_end() -> None:
    assert asyncio.run(asked(b"0\r\n\r\n")) == "data: 1\n"


def test_events_that_break_off_do_not_look_whole() -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        asyncio.run(asked(b""))
