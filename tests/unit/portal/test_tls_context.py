"""Parts ask the hub over one connection, with one context, and trust the hub's authorities only."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jupyterhub_idle_culler
import pytest
from jupyterhub import app, objects, user
from jupyterhub.app import JupyterHub
from jupyterhub.httpclient import JupyterHubHTTPClient
from jupyterhub.services import auth

from dsportal import tls_context
from dsportal.hub import internal_tls, tls
from dsportal.hub.patches import shared_tls
from dsportal.settings.hub import HubSettings

HUB: tuple[Any, ...] = (app, objects, user)
SERVICES: tuple[Any, ...] = (auth, jupyterhub_idle_culler)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> HubSettings:
    """One whose certificates are made once, which takes a second: no test changes them."""
    folder = tmp_path_factory.mktemp("hub")
    made = HubSettings(state_dir=str(folder), internal_ssl=True, api_url="http://127.0.0.1:8081")
    internal_tls.prepare(made, datetime.now(UTC))
    JupyterHub.clear_instance()
    return made


@pytest.fixture
def patch() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as originals:
        for module in (*SERVICES, *HUB):
            originals.setattr(module, "make_ssl_context", module.make_ssl_context)
        tls_context.reuse_contexts(*SERVICES)
        shared_tls.install()
        yield


def files(hub: HubSettings) -> tuple[str, str, str]:
    folder = Path(hub.certificates_dir)
    certificate, key = tls.pair(folder)
    return str(key), str(certificate), str(tls.trusted(folder))


async def connections_of(hub: HubSettings, questions: int) -> int:
    """Ask a hub who somebody is; return over how many connections it was asked."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        body = json.dumps({"name": "ada"}).encode()
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    shown = tls.context(hub, ssl.Purpose.CLIENT_AUTH)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=shown)
    port = server.sockets[0].getsockname()[1]
    key, certificate, authorities = files(hub)
    asker = auth.HubAuth(
        api_url=f"https://127.0.0.1:{port}/hub/api",
        api_token="a",
        keyfile=key,
        certfile=certificate,
        client_ca=authorities,
    )
    for number in range(questions):
        model = await asker.user_for_token(f"{number}", use_cache=False, sync=False)
        assert model == {"name": "ada"}
    await JupyterHubHTTPClient.loop_instance().close()
    server.close()
    return connections


def test_jupyterhub_alone_connects_anew_for_each_question(hub: HubSettings) -> None:
    assert asyncio.run(connections_of(hub, 3)) == 3


@pytest.mark.usefixtures("patch")
def test_a_service_asks_the_hub_over_one_connection(hub: HubSettings) -> None:
    assert asyncio.run(connections_of(hub, 3)) == 1


@pytest.mark.usefixtures("patch")
@pytest.mark.parametrize("module", [*SERVICES, *HUB], ids=lambda module: module.__name__)
def test_a_context_is_made_once_and_trusts_nobody_else(module: Any, hub: HubSettings) -> None:
    key, certificate, authorities = files(hub)
    made: Any = tls.client_context(hub)
    assert module.make_ssl_context(key, certificate, cafile=authorities) is made
    assert made.verify_mode == ssl.CERT_REQUIRED
    assert made.check_hostname
    names = {dict(part[0] for part in one["subject"])["commonName"] for one in made.get_ca_certs()}
    assert "hub-ca" in names
    assert all(name.endswith("-ca") for name in names)


@pytest.mark.usefixtures("patch")
def test_what_listens_has_another_that_asks_for_a_certificate(hub: HubSettings) -> None:
    key, certificate, authorities = files(hub)
    made = app.make_ssl_context(
        key, certificate, cafile=authorities, purpose=ssl.Purpose.CLIENT_AUTH
    )
    assert made is not tls.client_context(hub)
    assert made.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.usefixtures("patch")
def test_without_tls_there_is_none() -> None:
    assert user.make_ssl_context("", "", cafile="") is None
    assert user.make_ssl_context(None, None, cafile=None) is None
