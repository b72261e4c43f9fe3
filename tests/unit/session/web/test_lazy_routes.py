"""Requests that come before their routes' modules are imported."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jupyter_server.auth.identity import IdentityProvider
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from dsportal.session.web.lazy_routes import DeferredRoutes

MODULE = "module_of_a_lazy_route"


class Echo(RequestHandler):
    """Reads the module when it is made, as real handlers do."""

    def initialize(self) -> None:
        self.said = sys.modules[MODULE].SAID

    async def get(self) -> None:
        self.write(self.said)

    async def post(self) -> None:
        self.write(self.request.method.encode() + b" " + self.request.body)


@asynccontextmanager
async def served(
    modules: tuple[str, ...],
) -> AsyncIterator[tuple[DeferredRoutes, Callable[..., asyncio.Future[HTTPResponse]]]]:
    """Serve an application with a lazy route; give it and what asks for the route."""
    application = Application(
        identity_provider=IdentityProvider(token=""),
        cookie_secret="of this test",
        base_url="/",
        log_function=lambda _: None,
    )
    deferred = DeferredRoutes(
        (r"echo/.*",), modules, lambda: application.add_handlers(".*", [(r"/echo/.*", Echo)])
    )
    application.add_handlers(".*", deferred.placeholders("/"))
    server = HTTPServer(application)
    listener, port = bind_unused_port()
    server.add_socket(listener)

    def ask(**options: str) -> asyncio.Future[HTTPResponse]:
        url = f"http://127.0.0.1:{port}/echo/a"
        # What a page of JupyterLab sends with what it changes.
        headers = {"Cookie": "_xsrf=abc", "X-Xsrftoken": "abc"}
        return AsyncHTTPClient().fetch(
            url, raise_error=False, request_timeout=20, headers=headers, **options
        )

    yield deferred, ask
    server.stop()
    await server.close_all_connections()


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A module that is imported for as long as this is not set."""
    source = "import threading\nsys = __import__('sys')\nsys.reading.wait(20)\nSAID = 'there'\n"
    (tmp_path / f"{MODULE}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    event = threading.Event()
    monkeypatch.setattr(sys, "reading", event, raising=False)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return event


def test_a_request_waits_for_its_route_and_keeps_its_method_and_body(
    reading: threading.Event,
) -> None:
    async def scenario() -> tuple[list[bool], list[bytes]]:
        async with served((MODULE,)) as (deferred, ask):
            early = [ask(), ask(method="POST", body="words")]
            loading = asyncio.create_task(deferred.load())
            await asyncio.sleep(0.2)
            waited = [not one.done() for one in early]
            reading.set()
            await loading
            answers = [*await asyncio.gather(*early), await ask()]
            return waited, [one.body for one in answers]

    waited, bodies = asyncio.run(scenario())
    assert waited == [True, True]
    assert bodies == [b"there", b"POST words", b"there"]


def test_a_module_that_cannot_be_imported_costs_its_routes_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> int:
        async with served(("module_that_is_nowhere",)) as (deferred, ask):
            early = ask()
            await deferred.load()
            return (await early).code

    assert asyncio.run(scenario()) == 404
    assert "Not available in this session: echo/.*" in caplog.text
