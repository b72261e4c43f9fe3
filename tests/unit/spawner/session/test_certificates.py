"""A session's certificate, as Python's ssl and the hub's authorities take it."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from dsportal.hub import internal_tls, tls
from dsportal.settings.hub import HubSettings
from jupyterhub_gpu_slurm.session.certificates import Authority, CertificateIssuer, session_name
from jupyterhub_gpu_slurm.slurm.records import Cluster, Node, Partition

NOW = datetime.now(UTC)
NODES = ["node001", "127.0.0.1"]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> HubSettings:
    settings = HubSettings(state_dir=str(tmp_path_factory.mktemp("hub")), internal_ssl=True)
    internal_tls.prepare(settings, NOW)
    return settings


@pytest.fixture(scope="module")
def authority(hub: HubSettings) -> Authority:
    folder = Path(hub.certificates_dir)
    return Authority.of_hub(folder, folder / "notebooks-ca_trust.crt")


def session_context(
    authority: Authority, folder: Path, user: str, purpose: ssl.Purpose
) -> ssl.SSLContext:
    made = authority.issue(user, NODES, timedelta(days=1), NOW)
    for name, text in made.items():
        (folder / f"{user}.{name}").write_text(text)
    context = ssl.create_default_context(purpose, cafile=str(folder / f"{user}.authorities"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / f"{user}.certificate", folder / f"{user}.key")
    return context


def greet(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """Return what a client that expects ``name`` hears of a server, nothing if it is sent away."""

    async def run() -> bytes:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"here\n")
            await writer.drain()
            writer.close()

        listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]
        async with listening:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client, server_hostname=name
            )
            try:
                return await reader.readline()
            except (ssl.SSLError, ConnectionError):
                return b""
            finally:
                writer.close()

    return asyncio.run(run())


@pytest.mark.parametrize("name", [*NODES, session_name("ada")])
def test_the_hub_may_connect_by_any_of_the_names(
    hub: HubSettings, authority: Authority, tmp_path: Path, name: str
) -> None:
    server = session_context(authority, tmp_path, "ada", ssl.Purpose.CLIENT_AUTH)
    client = tls.client_context(hub)
    assert client is not None
    assert greet(server, client, name) == b"here\n"


def test_a_session_of_another_user_does_not_pass_for_this_users(
    hub: HubSettings, authority: Authority, tmp_path: Path
) -> None:
    server = session_context(authority, tmp_path, "eve", ssl.Purpose.CLIENT_AUTH)
    client = tls.client_context(hub)
    assert client is not None
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        greet(server, client, session_name("ada"))


def test_one_session_may_not_connect_to_another(authority: Authority, tmp_path: Path) -> None:
    server = session_context(authority, tmp_path, "ada", ssl.Purpose.CLIENT_AUTH)
    client = session_context(authority, tmp_path, "eve", ssl.Purpose.SERVER_AUTH)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    assert greet(server, client, "node001") == b""


def test_a_session_is_no_authority(authority: Authority) -> None:
    made = authority.issue("ada", NODES, timedelta(days=1), NOW)
    found = x509.load_pem_x509_certificate(made["certificate"].encode())
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_it_ends(authority: Authority) -> None:
    made = authority.issue("ada", NODES, timedelta(days=1), NOW)
    found = x509.load_pem_x509_certificate(made["certificate"].encode())
    assert found.not_valid_after_utc == (NOW + timedelta(days=1)).replace(microsecond=0)


def test_it_is_for_the_nodes_of_its_partition_and_for_as_long_as_the_session_can_be(
    hub: HubSettings,
) -> None:
    folder = Path(hub.certificates_dir)
    trusted = folder / "notebooks-ca_trust.crt"
    issuer = CertificateIssuer(folder, trusted, timedelta(hours=20))
    here = Node("node001", "10.0.0.1", (), 40, 384 * 1024, is_up=True)
    elsewhere = Node("node009", "10.0.0.9", (), 40, 384 * 1024, is_up=True)
    cluster = Cluster(
        (
            Partition("sxm2", True, True, None, None, (here,)),
            Partition("dgx", True, False, None, None, (elsewhere,)),
        )
    )
    made = issuer.issue("ada", cluster, "sxm2", timedelta(hours=8))
    found = x509.load_pem_x509_certificate(made["certificate"].encode())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [f"{name.value}" for name in names] == [session_name("ada"), "node001", "10.0.0.1"]
    lasts = found.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=31) < lasts < timedelta(days=32)


def test_each_has_a_key_of_its_own(authority: Authority) -> None:
    keys = {authority.issue("ada", NODES, timedelta(days=1), NOW)["key"] for _ in range(2)}
    assert len(keys) == 2
