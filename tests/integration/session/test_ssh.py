"""OpenSSH's own client into a session, by the lines and the program that the page hands out."""

import grp
import html
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.instance import USERS, Instance, trust
from tests.network.sockets import free_port
from tests.pages import how_to, lines
from tests.visitor import Visitor, session_of
from tests.waiting import until

OWNER, OTHER = USERS[0], USERS[1]
SSH, SCP, SSH_KEYGEN = "/usr/bin/ssh", "/usr/bin/scp", "/usr/bin/ssh-keygen"
MOUNT = "/usr/bin/mount"
# Says "here" to the first who connects, and prints its port.
LISTEN = (
    "import socket, threading; s = socket.create_server(('127.0.0.1', 0)); "
    "threading.Thread(target=lambda: s.accept()[0].sendall(b'here'), daemon=True).start(); "
    "print(s.getsockname()[1])"
)


@dataclass
class Laptop:
    """A computer that is not the cluster's: a home with ``.ssh`` in it."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / ".ssh"

    def install(self, visitor: Visitor, token: str) -> None:
        """Do what the page says."""
        self.folder.mkdir(mode=0o700)
        program = visitor.http.get("/hub/portal/portal_ssh.py")
        program.raise_for_status()
        (self.folder / "portal").mkdir()
        (self.folder / "portal/portal_ssh.py").write_text(program.text)
        self.put_token(token)
        page = visitor.http.get("/hub/portal/ssh").text
        (lines,) = re.findall(r"<pre[^>]*>(Host .*?)</pre>", page, re.DOTALL)
        # Here the tests' Python has websockets; and ssh takes ~ from the password database.
        config = html.unescape(lines).replace("~/.ssh/portal/bin/python", sys.executable)
        config = config.replace("~", str(self.home))
        config += f"\n    IdentityFile {self.folder}/id_ed25519\n    IdentitiesOnly yes"
        config += f"\n    UserKnownHostsFile {self.folder}/known_hosts\n    BatchMode yes\n"
        (self.folder / "config").write_text(config)
        make_key(self.folder / "id_ed25519")

    def put_token(self, token: str) -> None:
        file = self.folder / "portal/portal-token"
        file.touch(mode=0o600)
        file.write_text(token)

    @property
    def variables(self) -> dict[str, str]:
        """Its home, and what rsync starts."""
        ssh = f"{SSH} -F {self.folder}/config"
        return {**os.environ, "HOME": str(self.home), "RSYNC_RSH": ssh}

    def run(self, *argv: str | Path, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run ssh, scp or another program in this home."""
        program, *rest = argv
        config = () if Path(program).name == "rsync" else ("-F", self.folder / "config")
        return subprocess.run(
            [program, *config, *rest],
            env=self.variables,
            cwd=self.home,
            input=typed,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def make_key(file: Path) -> Path:
    subprocess.run([SSH_KEYGEN, "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    return file


def token_of(visitor: Visitor) -> str:
    """Make a token as the page's button does."""
    return visitor.token(scopes=[f"access:servers!server={visitor.name}/"], expires_in=600)


@pytest.fixture(scope="module")
def owner(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, OWNER, gpus=1) as visitor:
        yield visitor


@pytest.fixture
def usual_terminals() -> Iterator[None]:
    """Terminals of the group tty: distributions mount them so, machines for tests may not."""
    (*_, options) = [fields[3] for fields in mounts() if fields[1] == "/dev/pts"]
    group = grp.getgrnam("tty").gr_gid
    if f"gid={group}" in options.split(","):
        yield
        return
    subprocess.run([MOUNT, "-o", f"remount,gid={group},mode=620", "/dev/pts"], check=True)
    yield
    subprocess.run([MOUNT, "-o", f"remount,gid=0,{options}", "/dev/pts"], check=True)


def mounts() -> list[list[str]]:
    return [line.split() for line in Path("/proc/mounts").read_text().splitlines()]


@pytest.fixture
def laptop(owner: Visitor, tmp_path: Path) -> Laptop:
    here = Laptop(tmp_path)
    here.install(owner, token_of(owner))
    return here


def test_a_command_runs_in_the_session_s_job(laptop: Laptop, owner: Visitor) -> None:
    done = laptop.run(SSH, "portal", "id -un; echo $PORTAL_JOB_ID; cat /proc/self/cgroup")
    assert done.returncode == 0, done.stderr
    name, job, *groups = done.stdout.splitlines()
    assert [name, job] == [OWNER, *owner.instance.jobs(user=OWNER)]
    assert f"job_{job}/" in "".join(groups)


def test_an_open_connection_ends_with_the_session(portal: Instance, tmp_path: Path) -> None:
    with session_of(portal, OTHER, gpus=0) as visitor:
        laptop = Laptop(tmp_path)
        laptop.install(visitor, token_of(visitor))
        argv = [SSH, "-F", str(laptop.folder / "config"), "portal", "echo here; exec sleep 300"]
        with subprocess.Popen(argv, env=laptop.variables, stdout=subprocess.PIPE) as held:
            try:
                assert held.stdout is not None
                assert held.stdout.readline() == b"here\n"
                visitor.leave()
                assert held.wait(timeout=60) != 0
            finally:
                held.kill()


def test_a_command_sees_the_gpus_and_programs_of_a_terminal(laptop: Laptop, owner: Visitor) -> None:
    command = "echo $CUDA_VISIBLE_DEVICES; command -v portal; module avail 2>&1 | head -3"
    done = laptop.run(SSH, "portal", f"bash -c '{command}'")
    devices, program, *modules = done.stdout.splitlines()
    asked = "import os, shutil; print(os.environ['CUDA_VISIBLE_DEVICES'], shutil.which('portal'))"
    assert owner.run(asked).split() == [devices, program]
    assert modules, done.stderr


def test_a_file_arrives_whole_and_comes_back(laptop: Laptop, tmp_path: Path) -> None:
    sent, returned = tmp_path / "sent", tmp_path / "returned"
    sent.write_bytes(os.urandom(5_000_000))
    assert laptop.run(SCP, "-q", sent, "portal:of-ssh.bin").returncode == 0
    assert laptop.run(SCP, "-q", "portal:of-ssh.bin", returned).returncode == 0
    assert returned.read_bytes() == sent.read_bytes()
    laptop.run(SSH, "portal", "rm of-ssh.bin")


def test_a_port_of_the_session_can_be_reached(laptop: Laptop, owner: Visitor) -> None:
    """VS Code talks to its server on the other side so."""
    with listening(owner) as port:
        done = laptop.run(SSH, "-W", f"127.0.0.1:{port}", "portal")
    assert done.stdout == "here", done.stderr


@contextmanager
def listening(owner: Visitor) -> Iterator[str]:
    """Have a kernel of the session listen; give its port."""
    kernel = owner.open_kernel()
    try:
        yield owner.run_in(kernel, LISTEN).strip()
    finally:
        owner.session("DELETE", f"/api/kernels/{kernel}")


def test_what_the_how_to_types_works(laptop: Laptop, owner: Visitor) -> None:
    mine = free_port()
    (laptop.home / "results.csv").write_text("1,2\n")
    (laptop.home / "project").mkdir()
    (laptop.home / "project/code.py").write_text("print(3)\n")
    with listening(owner) as theirs:
        words = {"nvidia-smi": "id -un", "8888:127.0.0.1:8888": f"{mine}:127.0.0.1:{theirs}"}
        shell, *once, forward = lines(how_to("connect-with-ssh.md", 0, words))
        for argv in once:
            done = laptop.run(*argv)
            assert done.returncode == 0, f"{argv}: {done.stderr}"
        asked = "cat results.csv project/code.py; rm -r results.csv project; exit 5\n"
        done = laptop.run(*shell, typed=asked)
        assert (done.returncode, done.stdout) == (5, "1,2\nprint(3)\n"), done.stderr
        program, *rest = forward
        tunnel = [program, "-F", str(laptop.folder / "config"), *rest]
        with subprocess.Popen(tunnel, env=laptop.variables, stdin=subprocess.PIPE) as client:
            until(lambda: said_at(mine) == b"here", seconds=30, what="the port is forwarded")
            assert client.stdin
            client.stdin.close()
            assert client.wait(30) == 0


def said_at(port: int) -> bytes:
    """Return what somebody says who listens here, nothing where nobody does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            return connection.recv(4)
    except ConnectionRefusedError:
        return b""


def test_the_exit_status_is_the_commands(laptop: Laptop) -> None:
    assert laptop.run(SSH, "portal", "exit 7").returncode == 7


@pytest.mark.usefixtures("usual_terminals")
def test_a_hang_up_leaves_nothing(laptop: Laptop, owner: Visitor) -> None:
    """A terminal's programs hear of it, and the connection's files are removed."""
    with subprocess.Popen(
        [SSH, "-F", laptop.folder / "config", "-tt", "portal", "sleep 987"],
        env={**os.environ, "HOME": str(laptop.home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as client:
        until(lambda: is_running(owner, "sleep 987"), seconds=30, what="the program runs")
        client.kill()
    until(lambda: not is_running(owner, "sleep 987"), seconds=30, what="the program has ended")
    listed = "import os; print(*os.listdir(os.environ['JUPYTER_RUNTIME_DIR']))"
    until(lambda: "ssh-" not in owner.run(listed), seconds=30, what="no file is left")


def is_running(owner: Visitor, command: str) -> bool:
    code = f"import subprocess; print(subprocess.run(['pgrep', '-xf', {command!r}]).returncode)"
    return owner.run(code).split()[-1] == "0"


def test_a_session_is_known_again(laptop: Laptop, portal: Instance, owner: Visitor) -> None:
    """The second session of a user shows the same host key: ssh does not warn of another host."""
    assert laptop.run(SSH, "portal", "true").returncode == 0
    owner.stop()
    refused = laptop.run(SSH, "portal", "true")
    assert refused.returncode == 255
    assert "session is not running" in refused.stderr
    owner.start_and_wait(gpus=1, hours=0.5)
    again = laptop.run(SSH, "portal", "true")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("0" * 64, "token is invalid or has expired"),
        ("another user's", "does not open this session"),
    ],
)
def test_another_token_opens_nothing(
    laptop: Laptop, portal: Instance, token: str, words: str
) -> None:
    if token == "another user's":
        visitor = Visitor(portal, OTHER)
        visitor.log_in()
        token = token_of(visitor)
        visitor.close()
    laptop.put_token(token)
    done = laptop.run(SSH, "portal", "true")
    assert done.returncode == 255
    assert words in done.stderr


def test_a_key_that_was_not_sent_does_not_log_in(laptop: Laptop, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    done = laptop.run(SSH, "-o", f"IdentityFile={other}", "portal", "true")
    assert done.returncode == 0, done.stderr  # by the other one
    (laptop.folder / "id_ed25519").unlink()
    done = laptop.run(SSH, "-o", f"IdentityFile={other}", "portal", "true")
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr


def test_the_token_opens_its_session_only(owner: Visitor, portal: Instance) -> None:
    headers = {"Authorization": f"token {token_of(owner)}"}
    api = f"{portal.url}/hub/api/users/{OWNER}"
    second = owner.at("second")
    second.start_and_wait(gpus=0)
    with httpx.Client(headers=headers, verify=trust()) as program:
        asked = [program.delete(f"{api}/server"), program.post(f"{api}/tokens", json={})]
        assert [answer.status_code for answer in asked] == [403, 403]
        opened = [
            program.get(f"{portal.url}/user/{OWNER}/{path}api/status") for path in ("", "second/")
        ]
        assert [answer.status_code for answer in opened] == [200, 403]
    second.stop()


def test_a_browsers_login_opens_no_connection(owner: Visitor) -> None:
    """The way in is for programs: no page can use the cookies of its viewer."""
    owner.http.get(f"/user/{OWNER}/lab").raise_for_status()
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    answer = owner.http.get(f"/user/{OWNER}/portal/ssh", headers=handshake)
    assert answer.status_code == 403
    assert "programs that come with a token" in answer.text


@pytest.mark.parametrize(
    "first",
    ['{"keys": []}', '{"keys": ["command=\\"id\\" ssh-rsa AAAA"]}', "[]", "no JSON", b"SSH-2.0-x"],
)
def test_what_is_not_the_programs_is_refused(owner: Visitor, first: str | bytes) -> None:
    with owner.socket("/portal/ssh") as socket:
        socket.send(first)
        assert socket.closed_with(seconds=20) == 1008
