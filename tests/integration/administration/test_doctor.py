"""`portal doctor` beside real parts: as they should be, and broken one at a time."""

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dsportal.doctor import expected, plan
from dsportal.doctor.checks import (
    directory,
    files,
    host_names,
    images,
    kernels,
    machine,
    slurm,
    web,
)
from dsportal.doctor.expected import (
    Expected,
    ExpectedBackup,
    ExpectedCertificate,
    ExpectedDirectory,
    ExpectedHub,
    ExpectedImage,
    ExpectedKernel,
    Mount,
    PrivateFile,
    Sudo,
)
from dsportal.doctor.finding import Finding, State
from dsportal.doctor.rounds import Check, run
from tests import faults, names
from tests import images as built
from tests.instance import SETTINGS, USERS, Instance
from tests.integration.authentication import slapd
from tests.integration.authentication.certificates import make_certificates
from tests.integration.authentication.slapd import PASSWORD, READER_DN, Slapd
from tests.network.sockets import free_port

FOLDER = SETTINGS.parent / "doctor.d"
# What the test instance has that cannot work: see its inventory. And it has one host name for all.
BROKEN = {"kernel broken", "module no-such-tool/1.0", "host names"}
# There after the test of it only.
COMES_LATER = "image tools"


@pytest.fixture(scope="module")
def here(portal: Instance) -> Expected:
    """What the deployment wrote down for this host."""
    return expected.load(FOLDER)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with slapd.running(tmp_path_factory.mktemp("slapd")) as running:
        yield running


@pytest.fixture
def reader(tmp_path: Path) -> Callable[..., ExpectedDirectory]:
    def asks(people: Slapd, password: str = PASSWORD, **more: object) -> ExpectedDirectory:
        secret = tmp_path / "password"
        secret.write_text(f"{password}\n")
        given = {"ca_file": people.ca_file, "bind_dn": READER_DN} | more
        return ExpectedDirectory((people.url,), bind_password_file=str(secret), **given)  # type: ignore[arg-type]

    return asks


def doctor(
    portal: Instance, *arguments: str, user: str = "root"
) -> subprocess.CompletedProcess[str]:
    command = ["/usr/sbin/runuser", "-u", user, "--", f"/usr/local/sbin/{portal.mark}", "doctor"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd="/"
    )


def in_time(ask: Callable[[], Finding], seconds: float = 0.5) -> Finding:
    """Ask as a round does."""
    (line,) = run([Check("one", ask, "look there", seconds)], is_root=True)
    return line.finding


def test_the_deployed_host_is_as_it_should_be_but_for_what_was_broken_on_purpose(
    portal: Instance,
) -> None:
    done = doctor(portal, "--json")
    lines = {line.pop("check"): line for line in json.loads(done.stdout)}
    lines.pop(COMES_LATER)
    wrong = {check: line for check, line in lines.items() if line["state"] != "ok"}
    assert wrong.keys() == BROKEN, json.dumps(wrong, indent=1)
    assert done.returncode == 1
    for part in ("hub", "database", "proxy", "sudo", "services", "munge", "slurmctld", "disk /"):
        assert part in lines


def test_a_user_is_told_what_only_root_may_ask(portal: Instance) -> None:
    done = doctor(portal, user=USERS[0])
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert lines["left out  database"] == "only root may ask"
    assert lines["ok        slurmctld"] == "answers"
    assert "as root, all are asked" in done.stderr


def test_a_mount_that_hangs_is_told_and_holds_up_nothing(tmp_path: Path) -> None:
    with hanging(tmp_path):
        mount, other = plan.checks_of(
            Expected(mounts=(Mount(str(tmp_path), "fuse"),), disks=("/",))
        )
        hung, disk = run([replace(mount, seconds=0.5), other], is_root=True)
    assert hung.finding.found == "no answer in 0.5 s"
    assert f"umount -l {tmp_path}" in hung.finding.next_step
    assert disk.finding.state is not State.FAILED


@contextmanager
def hanging(folder: Path) -> Iterator[None]:
    """Mount a file system whose server never answers."""
    system = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    try:
        assert system.mount(b"hung", bytes(folder), b"fuse", 0, options) == 0, ctypes.get_errno()
        yield
    finally:
        os.close(device)
        assert system.umount2(bytes(folder), 2) == 0


def test_a_mount_is_found_with_its_options_and_missed_when_it_is_gone(tmp_path: Path) -> None:
    with tmpfs(tmp_path, "size=1m,mode=0700"):
        found = machine.mount(Mount(str(tmp_path), "tmpfs", "doctor", "size=1024k,mode=700"))
        assert found.state is State.OK, found
        assert "lacks noexec" in machine.mount(Mount(str(tmp_path), options="noexec")).found
    assert machine.mount(Mount(str(tmp_path))).found == "not mounted"


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with tmpfs(tmp_path, "size=1m"):
        (tmp_path / "big").write_bytes(bytes(1024 * 1024))
        full = machine.disk(str(tmp_path))
        (tmp_path / "big").unlink()
        empty = machine.disk(str(tmp_path))
    assert (full.state, empty.state) == (State.FAILED, State.OK)
    assert "0.0 GiB free (0%)" in full.found


@contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[None]:
    argv = ["/usr/bin/mount", "-t", "tmpfs", "-o", options, "doctor", str(folder)]
    subprocess.run(argv, check=True)
    try:
        yield
    finally:
        subprocess.run(["/usr/bin/umount", str(folder)], check=True)


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
def test_a_directory_lets_its_reader_in_and_its_certificate_ends_soon(
    people: Slapd, reader: Callable[..., ExpectedDirectory], scheme: str
) -> None:
    url = people.tls_url if scheme == "ldaps" else people.url
    found = directory.server(url, reader(people, start_tls=scheme == "ldap"))
    assert (found.state, found.found) == (State.WARNING, "valid for 1 more day")


def test_a_reader_whose_password_is_wrong_is_told(
    people: Slapd, reader: Callable[..., ExpectedDirectory]
) -> None:
    found = directory.server(people.tls_url, reader(people, password="wrong"))
    assert found.state is State.FAILED
    assert found.found == f"does not accept name and password: {READER_DN}"


def test_a_certificate_of_another_authority_is_told(
    people: Slapd, reader: Callable[..., ExpectedDirectory], tmp_path: Path
) -> None:
    make_certificates(tmp_path / "other")
    other = str(tmp_path / "other" / "ca.pem")
    found = directory.server(people.url, reader(people, start_tls=True, ca_file=other))
    assert found.state is State.FAILED
    assert found.found.startswith("TLS: ")
    assert "ca_file" in found.next_step


def test_a_directory_that_is_stopped_or_silent_or_something_else_is_told(
    people: Slapd, reader: Callable[..., ExpectedDirectory], portal: Instance
) -> None:
    gone = directory.server(f"ldap://127.0.0.1:{free_port()}", reader(people))
    assert "Connection refused" in gone.found
    with people.silent():
        assert in_time(partial(directory.server, people.url, reader(people))).found.startswith("no")
    hub = portal.settings["hub"]["api_url"].replace("http", "ldap")
    assert directory.server(hub, reader(people)).state is State.FAILED


def test_a_group_that_the_name_service_does_not_know_is_told() -> None:
    assert directory.group("no-such-group").state is State.FAILED
    assert directory.group("root").state is State.OK


def test_a_slurm_that_is_silent_or_away_is_told(portal: Instance, here: Expected) -> None:
    assert here.slurm
    with faults.frozen("slurmctld"):
        silent = in_time(partial(slurm.controller, here.slurm))
    assert silent.found == "no answer in 0.5 s"
    away = slurm.controller(replace(here.slurm, conf="/no/such/slurm.conf"))
    assert away.state is State.FAILED


def test_other_settings_than_the_controllers_are_told(here: Expected, tmp_path: Path) -> None:
    assert here.slurm
    other = tmp_path / "slurm.conf"
    other.write_text(f"{Path(here.slurm.conf).read_text()}\nMaxJobCount=12345\n")
    assert slurm.settings(replace(here.slurm, conf=str(other))).state is State.FAILED


def test_a_drained_node_is_told_with_the_reason(portal: Instance, here: Expected) -> None:
    assert here.slurm
    with faults.drained(portal):
        found = slurm.node(here.slurm.nodes[0], here.slurm)
    assert found.state is State.WARNING
    # Whether a job of before still ends there is nobody's business.
    assert re.fullmatch(r"takes no new jobs: \w+\+drain \(test\)", found.found)
    assert slurm.node("no-such-node", here.slurm).state is State.FAILED


def test_a_munge_that_hangs_or_is_dead_is_told(portal: Instance, here: Expected) -> None:
    assert here.slurm
    with faults.frozen("munged"):
        assert in_time(partial(slurm.munge, here.slurm)).found == "no answer in 0.5 s"
    dead = slurm.munge(replace(here.slurm, munge_socket="/no/such/socket"))
    assert dead.state is State.FAILED
    assert "munged" in dead.next_step


def test_a_service_that_does_not_run_is_told(portal: Instance, here: Expected) -> None:
    assert here.services
    faults.service("stop", "proxy")
    try:
        assert "proxy of" in machine.services(here.services).found
        assert here.hub
        assert "the hub behind it does not (503)" in web.hub(here.hub).found
        assert web.proxy_api(here.hub).state is State.FAILED
    finally:
        faults.service("start", "proxy")
        faults.wait_for_hub(portal)


def test_a_hub_that_does_not_know_the_token_or_is_no_hub_is_told(
    here: Expected, tmp_path: Path, portal: Instance
) -> None:
    assert here.hub
    (tmp_path / "token").write_text("x" * 64)
    wrong = web.database(replace(here.hub, metrics_token_file=str(tmp_path / "token")))
    assert "does not know its own token" in wrong.found
    cluster = str(portal.settings["cluster"]["url"])
    assert web.hub(ExpectedHub(cluster)).state is State.FAILED


def test_one_host_name_for_all_users_is_a_failure_where_there_is_https(here: Expected) -> None:
    assert here.hub
    assert here.hub.is_encrypted
    found = host_names.of_users(here.hub)
    assert found.state is State.FAILED
    assert "*.NAME" in found.next_step
    assert "portal_subdomain_host" in found.next_step
    plain = Expected(hub=replace(here.hub, is_encrypted=False))
    assert "host names" not in [check.name for check in plan.checks_of(plain)]


def test_host_names_are_asked_for_and_so_is_the_certificate_there(portal: Instance) -> None:
    port = urlsplit(portal.url).port
    with names.resolved("portal.test", "127.0.0.1"), names.resolved("other.test", "127.0.0.1"):
        well = host_names.of_users(ExpectedHub(portal.url, f"https://portal.test:{port}"))
        assert well.state is State.OK
        assert well.found.endswith(" below portal.test")
        other = host_names.of_users(ExpectedHub(portal.url, f"https://other.test:{port}"))
        assert other.state is State.FAILED
        assert "not for *.other.test: Hostname mismatch" in other.found
        silent = host_names.of_users(ExpectedHub(portal.url, f"https://portal.test:{free_port()}"))
        assert "nothing speaks HTTPS at any-user.portal.test: Connection refused" in silent.found


def test_settings_that_cannot_be_used_are_told(here: Expected, tmp_path: Path) -> None:
    assert here.hub
    wrong = tmp_path / "portal.toml"
    wrong.write_text("[hub]\nnme = 1\n")
    found = files.settings(replace(here.hub, settings_file=str(wrong)))
    assert "hub.nme: is not a known key" in found.found


def test_a_rule_or_a_launcher_that_is_not_safe_is_told(here: Expected, tmp_path: Path) -> None:
    assert here.sudo
    (tmp_path / "rule").write_text("jupyterhub ALL=(ALL NOPASSWD: ALL\n")
    assert files.sudo(replace(here.sudo, file=str(tmp_path / "rule"))).state is State.FAILED
    nobody = Sudo(here.sudo.file, "nobody", here.sudo.launcher)
    assert "does not let nobody run" in files.sudo(nobody).found


def test_a_secret_that_others_can_read_is_told(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o640)
    assert files.private(PrivateFile(str(secret), "root")).found == "mode 0640: others may read it"
    secret.chmod(0o600)
    assert files.private(PrivateFile(str(secret), "root")).state is State.OK
    assert files.private(PrivateFile(str(secret), "jupyterhub")).found == "belongs to root"
    assert files.private(PrivateFile(str(tmp_path / "gone"), "root")).state is State.FAILED


def test_certificates_are_read_from_their_files(tmp_path: Path) -> None:
    for name, left in (("good", timedelta(days=90)), ("ended", timedelta(days=-1))):
        (tmp_path / f"{name}.crt").write_bytes(certificate(left))
    (tmp_path / "wrong.pem").write_text("no certificate")
    good = files.certificate(ExpectedCertificate("of the portal", str(tmp_path / "good.crt")))
    assert (good.state, good.found) == (State.OK, "valid for 89 more days")
    both = files.certificate(ExpectedCertificate("of the portal", str(tmp_path / "*.crt")))
    assert both.state is State.FAILED
    assert both.found.startswith("ended on ")
    assert str(tmp_path / "ended.crt") in both.next_step
    for file in ("wrong.pem", "gone.pem"):
        assert (
            files.certificate(ExpectedCertificate("", str(tmp_path / file))).state is State.FAILED
        )


def test_a_backup_that_is_missing_or_old_is_told(tmp_path: Path) -> None:
    daily = ExpectedBackup("of the hub", str(tmp_path / "*.tar"), 26)
    assert files.backup(daily).state is State.WARNING, "the folder is new"
    two_days_ago = datetime.now(UTC).timestamp() - 48 * 3600
    os.utime(tmp_path, (two_days_ago, two_days_ago))
    assert files.backup(daily).state is State.FAILED
    assert "there is no" in files.backup(daily).found
    for name, hours in (("a.tar", 30), ("b.tar", 50)):
        (tmp_path / name).touch()
        then = datetime.now(UTC).timestamp() - hours * 3600
        os.utime(tmp_path / name, (then, then))
    assert files.backup(daily).found == "the newest of 2 is 30 hours old"
    assert files.backup(daily).state is State.FAILED
    (tmp_path / "c.tar").touch()
    assert files.backup(daily).state is State.OK


def certificate(left: timedelta) -> bytes:
    """Make one that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "doctor")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=365))
        .not_valid_after(now + left)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (ExpectedKernel("a", modules=("no-such-framework/1.0",)), "no-such-framework/1.0"),
        (ExpectedKernel("b", interpreter="/usr/bin/python3"), "No module named 'ipykernel'"),
        (ExpectedKernel("c", interpreter="/no/such/python"), "No such file"),
        (ExpectedKernel("d", interpreter="/usr/bin/python3", language="R"), "--no-echo"),
    ],
)
def test_a_kernel_that_cannot_start_is_told(
    here: Expected, kernel: ExpectedKernel, words: str
) -> None:
    found = kernels.kernel(kernel, here.modules)
    assert found.state is State.FAILED, found
    assert words in found.found
    assert f"[kernels.{kernel.name}]" in found.next_step


@pytest.fixture(scope="module")
def apptainer() -> str:
    return str(built.apptainer())


def test_an_image_that_everybody_can_run_is_well(apptainer: str) -> None:
    found = images.image(ExpectedImage("small", str(built.small_image()), apptainer))
    assert (found.state, found.found) == (State.OK, "runs"), found


def test_an_image_that_users_may_not_read_is_told(tmp_path: Path, apptainer: str) -> None:
    image = tmp_path / "small.sif"
    shutil.copy(built.small_image(), image)
    image.chmod(0o600)
    found = images.image(ExpectedImage("small", str(image), apptainer))
    assert found.state is State.FAILED
    assert "permission denied" in found.found
    assert "[containers.images.small]" in found.next_step


def test_an_image_that_is_lost_is_told(apptainer: str) -> None:
    found = images.image(ExpectedImage("lost", "/no/such.sif", apptainer))
    assert found.state is State.FAILED
    assert "no such file" in found.found


def test_a_host_is_found_by_its_name_and_back() -> None:
    assert machine.host_name("localhost").state is State.OK
    assert machine.host_name("no-such-host.invalid").state is State.FAILED
    # TEST-NET-1: nobody's, so without a name.
    assert machine.host_name("192.0.2.77").found == "192.0.2.77 has no name"


def test_the_clock_is_compared_with_the_hubs(portal: Instance) -> None:
    assert machine.clock_beside_hub(portal.url).found == "agrees with the hub's"
    assert machine.kernel_clock().state in {State.OK, State.WARNING}
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert machine.clock_beside_hub(url).state is State.FAILED
