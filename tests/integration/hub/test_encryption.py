"""HTTPS for browsers, and TLS with certificates of both sides between hub, proxy and sessions."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import faults
from tests.instance import SETTINGS, USERS, Instance
from tests.network.tls import answer, unchecking
from tests.visitor import Visitor, session_of
from tests.waiting import until

FILES = "import os; print(*(os.environ['JUPYTERHUB_SSL_' + n] for n in {names!r}), sep='\\n')"
NAMES = ("KEYFILE", "CERTFILE", "CLIENT_CA")


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[0]) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def stranger(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[1]) as visitor:
        yield visitor


def files_of(user: Visitor) -> list[Path]:
    return [Path(line) for line in user.run(FILES.format(names=NAMES)).split()]


# --- between browsers and the proxy ---


def test_only_the_hubs_account_can_reach_the_portals_key() -> None:
    folder = SETTINGS.parent / "tls"
    # A key that is being copied has its file's usual mode for a moment.
    assert folder.stat().st_mode & 0o777 == 0o750
    key = folder / "portal.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert folder.group() == key.owner() == key.group() != "root"


def test_http_on_the_same_port_is_sent_to_https(portal: Instance) -> None:
    plain = portal.url.replace("https", "http")
    found = httpx.get(f"{plain}/hub/login?next=%2Fhub%2Fhome")
    assert found.status_code == 307
    assert found.headers["location"] == f"{portal.url}/hub/login?next=%2Fhub%2Fhome"


def test_a_password_sent_to_http_is_not_handed_on(portal: Instance) -> None:
    plain = portal.url.replace("https", "http")
    sent = httpx.post(f"{plain}/hub/login", data={"username": "a", "password": "b"})
    assert sent.status_code == 400
    assert "location" not in sent.headers


def test_the_port_beside_it_redirects_too(portal: Instance) -> None:
    port = int(portal.url.rsplit(":", 1)[1]) + 3
    found = httpx.get(f"http://127.0.0.1:{port}/hub/login")
    assert found.headers["location"] == f"{portal.url}/hub/login"


@pytest.mark.parametrize("path", ["/hub/login", "/services/cluster/", "/user/nobody/", "/%"])
def test_every_answer_says_https_only(portal: Instance, path: str) -> None:
    found = httpx.get(f"{portal.url}{path}")
    assert found.headers["strict-transport-security"] == "max-age=31536000"


def test_a_sessions_pages_say_it_too(portal: Instance, user: Visitor) -> None:
    assert "strict-transport-security" in user.session("GET", "/api/status").headers


@pytest.mark.parametrize(
    ("version", "is_spoken"),
    [
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_versions_of_tls_are_not_spoken(
    portal: Instance, version: ssl.TLSVersion, is_spoken: bool
) -> None:
    context = unchecking()
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    port = int(portal.url.rsplit(":", 1)[1])
    assert bool(answer(port, context, "/hub/login")) is is_spoken


def test_all_cookies_are_for_https_only(portal: Instance, user: Visitor) -> None:
    user.http.get(f"/user/{user.name}/lab")
    user.http.get("/services/cluster/").raise_for_status()
    jar = list(user.http.cookies.jar)
    assert {cookie.path for cookie in jar} >= {"/hub/", "/services/cluster/", f"/user/{user.name}/"}
    assert [cookie.name for cookie in jar if not cookie.secure] == []


def test_garbage_does_not_end_the_proxy(portal: Instance) -> None:
    port = int(portal.url.rsplit(":", 1)[1])
    pid = faults.pid_of("proxy")
    for sent in (b"\x16\x03", b"\x00" * 100, b"GET", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(sent)
            # What is left unread makes the system send a reset, the rudest of ends.
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert httpx.get(f"{portal.url}/hub/login").status_code == 200
    assert faults.pid_of("proxy") == pid


def test_a_renewed_certificate_is_taken_up_and_open_pages_stay(
    portal: Instance, user: Visitor, tmp_path: Path
) -> None:
    folder = SETTINGS.parent / "tls"
    for name in ("portal.crt", "portal.key"):
        shutil.copy2(folder / name, tmp_path)
    kernel = user.open_kernel()
    with user.socket(f"/api/kernels/{kernel}/channels") as page:
        before = serial(portal)
        try:
            renew(folder)
            until(lambda: serial(portal) != before, seconds=30, what="the new one is shown")
        finally:
            for name in ("portal.crt", "portal.key"):
                (folder / name).write_bytes((tmp_path / name).read_bytes())
        until(lambda: serial(portal) == before, seconds=30, what="the old one is back")
        page.ping(10)
    user.session("DELETE", f"/api/kernels/{kernel}")


def renew(folder: Path) -> None:
    """Write a new pair as certbot's hook does, into the files that are there."""
    made = folder.parent / "test-tls"
    argv = ["openssl", "req", "-x509", "-CA", "authority.crt", "-CAkey", "authority.key"]
    argv += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3"]
    argv += ["-subj", "/CN=renewed", "-addext", "subjectAltName=IP:127.0.0.1"]
    argv += ["-keyout", f"{folder}/portal.key", "-out", f"{folder}/portal.crt"]
    subprocess.run(argv, cwd=made, check=True, capture_output=True, timeout=30)


def serial(portal: Instance) -> str:
    port = int(portal.url.rsplit(":", 1)[1])
    context = ssl.create_default_context()
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
    ):
        certificate: Any = encrypted.getpeercert()
        return str(certificate["serialNumber"])


# --- between hub, proxy and sessions ---


def test_a_sessions_port_is_closed_to_who_has_no_certificate(user: Visitor) -> None:
    assert answer(user.port(), unchecking(), f"/user/{user.name}/api") == b""


def test_another_session_of_the_node_cannot_connect(user: Visitor, stranger: Visitor) -> None:
    context = unchecking()
    key, certificate, _ = files_of(stranger)
    context.load_cert_chain(certificate, key)
    assert answer(user.port(), context, f"/user/{user.name}/api") == b""


def test_the_hubs_own_certificate_opens_it(portal: Instance, user: Visitor) -> None:
    folder = Path(portal.settings["hub"]["state_dir"]) / "internal-tls/hub-internal"
    context = unchecking()
    context.load_cert_chain(folder / "hub-internal.crt", folder / "hub-internal.key")
    assert answer(user.port(), context, f"/user/{user.name}/api").startswith(b"HTTP/1.1 200")


def test_a_sessions_key_is_its_users_alone(user: Visitor) -> None:
    files = files_of(user)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert {file.stat().st_uid for file in files} == {files[0].parent.stat().st_uid}
    assert files[0].parent.stat().st_mode & 0o777 == 0o700


def test_it_is_in_no_job_record_and_in_no_log(portal: Instance, user: Visitor) -> None:
    middle = files_of(user)[0].read_text().splitlines()[1]
    job_id = portal.jobs(user=user.name)[0]
    shown = portal.slurm("scontrol", "show", "job", "-d", job_id)
    shown += portal.slurm("squeue", "--format=%all")
    shown += (Path("/var/log") / SETTINGS.parent.name / "hub.log").read_text(errors="replace")
    shown += subprocess.run(
        ["/usr/bin/ps", "axewww"], capture_output=True, text=True, check=True
    ).stdout
    assert middle not in shown


def test_the_key_goes_with_the_session(portal: Instance) -> None:
    with session_of(portal, USERS[2]) as visitor:
        files = files_of(visitor)
        assert all(file.exists() for file in files)
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize("which", ["api_url", "proxy_api_url"])
def test_hub_and_proxy_take_no_instructions_without_a_certificate(
    portal: Instance, which: str
) -> None:
    port = int(str(portal.settings["hub"][which]).rsplit(":", 1)[1])
    assert answer(port, unchecking(), "/") == b""


def test_the_cluster_page_service_is_closed_too(portal: Instance) -> None:
    port = int(str(portal.settings["cluster"]["url"]).rsplit(":", 1)[1])
    assert answer(port, unchecking(), "/services/cluster/") == b""
