"""What a session could read or take of another's on the same node; see also test_neighbours.py."""

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from tests.instance import Instance
from tests.processes import running
from tests.visitor import Visitor
from tests.waiting import until


def as_user(name: str, *argv: str) -> "subprocess.CompletedProcess[str]":
    """Run something as a user of the node, outside any session."""
    return subprocess.run(
        ["/usr/sbin/runuser", "-u", name, "--", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def pids(portal: Instance, owner: Visitor) -> list[int]:
    """The processes of the owner's session, a kernel among them."""
    found = [process.pid for process in running(user=owner.name)]
    assert len(found) >= 2
    return found


def test_a_session_cannot_read_anothers_environment(stranger: Visitor, pids: list[int]) -> None:
    for pid in pids:
        for name in ("environ", "mem", "maps", "auxv", "io", "stack", "syscall"):
            assert as_user(stranger.name, "/bin/cat", f"/proc/{pid}/{name}").stdout == "", name


def test_a_session_cannot_follow_or_end_anothers_processes(
    stranger: Visitor, pids: list[int]
) -> None:
    for pid in pids:
        code = f"import os; os.kill({pid}, 0)"
        assert "PermissionError" in as_user(stranger.name, "/usr/bin/python3", "-c", code).stderr
    trace = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True);"
        f"print(libc.ptrace(16, {pids[0]}, 0, 0), ctypes.get_errno())"
    )
    assert as_user(stranger.name, "/usr/bin/python3", "-c", trace).stdout.split() == ["-1", "1"]


def test_a_session_cannot_read_anothers_files(owner: Visitor, stranger: Visitor) -> None:
    made = owner.run(
        "import os, tempfile\n"
        "from multiprocessing import shared_memory\n"
        "held = shared_memory.SharedMemory('mine-of-the-test', create=True, size=4)\n"
        "paths = ['mine.txt', tempfile.mkstemp()[1], '/dev/shm/mine-of-the-test']\n"
        "for path in paths: open(path, 'w').write('mine')\n"
        "print(os.getcwd(), *map(os.path.abspath, paths))"
    ).split()
    assert len(made) == 4
    for path in made[1:]:
        assert as_user(stranger.name, "/bin/cat", path).stdout == "", path
    assert as_user(stranger.name, "/bin/ls", made[0]).stdout == ""
    owner.run(f"import os; [os.path.exists(path) and os.unlink(path) for path in {made[1:]!r}]")


def test_a_session_cannot_read_anothers_job_script(
    portal: Instance, owner: Visitor, stranger: Visitor
) -> None:
    spool = Path(portal.settings["hub"]["state_dir"]).parent / "slurmd"
    scripts = list(spool.glob("*/job*/slurm_script"))
    assert scripts
    for script in scripts:
        if script.stat().st_uid != pwd.getpwnam(stranger.name).pw_uid:
            assert as_user(stranger.name, "/bin/cat", str(script)).stdout == ""


def test_a_session_cannot_change_a_cgroup(owner: Visitor, stranger: Visitor) -> None:
    uid = pwd.getpwnam(owner.name).pw_uid
    folders = list(Path("/sys/fs/cgroup/memory").glob(f"slurm_*/uid_{uid}/job_*"))
    assert folders
    own = f"uid_{pwd.getpwnam(stranger.name).pw_uid}"
    folders += list(Path("/sys/fs/cgroup/memory").glob(f"slurm_*/{own}/job_*"))
    for folder in folders:
        for name in ("tasks", "cgroup.procs", "memory.limit_in_bytes"):
            assert as_user(stranger.name, "/usr/bin/test", "-w", str(folder / name)).returncode == 1
        for user in (stranger.name, owner.name):
            assert as_user(user, "/bin/mkdir", str(folder / "mine")).returncode != 0


def test_a_core_dump_is_the_owners_alone(owner: Visitor, stranger: Visitor) -> None:
    code = (
        "import os, resource, subprocess\n"
        "subprocess.run(['/bin/sh', '-c', 'ulimit -c 1000000; kill -SEGV $$'], cwd=os.getcwd())\n"
        "import glob; print(*[os.path.abspath(one) for one in glob.glob('core*')])"
    )
    for core in owner.run(code).split():
        assert os.stat(core).st_mode & 0o077 == 0
        assert as_user(stranger.name, "/bin/cat", core).stdout == ""
        Path(core).unlink()


SQUAT = """
import http.server, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        heard.append(dict(self.headers))
        self.send_response(200); self.end_headers(); self.wfile.write(b"squatted")
heard = []
server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1])
"""


def test_nobody_can_listen_where_a_session_listens(owner: Visitor, stranger: Visitor) -> None:
    """The port is the session's before the hub hears of it, and nobody else's until it ends."""
    (route,) = [one for one in listening(owner) if one]
    code = (
        "import socket\n"
        "for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):\n"
        "    end = socket.socket()\n"
        "    if option: end.setsockopt(socket.SOL_SOCKET, option, 1)\n"
        f"    try: end.bind(('0.0.0.0', {route})); end.listen(); print('listens')\n"
        "    except OSError as error: print(error.errno)\n"
    )
    assert "listens" not in stranger.run(code)


def listening(owner: Visitor) -> list[int]:
    code = "import os; print(os.environ['JUPYTERHUB_SERVICE_URL'])"
    return [int(owner.run(code).strip().rstrip("/").split("/")[2].rsplit(":", 1)[1])]


def test_a_session_that_reports_anothers_port_gets_nothing_of_theirs(
    portal: Instance, owner: Visitor, stranger: Visitor
) -> None:
    """Once a session runs its port is settled; the port of another asks for its own login."""
    port = listening(owner)[0]
    token = stranger.run("import os; print(os.environ['JUPYTERHUB_API_TOKEN'])").strip()
    headers = {"Authorization": f"token {token}"}
    answer = portal.hub("POST", "/api/gpu-session/port", json={"port": port}, headers=headers)
    assert answer.status_code == 409
    # What the attacker would send there is not even heard: it takes the hub's own certificate.
    heard = stranger.run(
        "import ssl, http.client\n"
        "tls = ssl._create_unverified_context()\n"
        f"to = http.client.HTTPSConnection('127.0.0.1', {port}, timeout=10, context=tls)\n"
        "try:\n"
        f"    to.request('GET', '/user/{stranger.name}/api/contents')\n"
        "    print(to.getresponse().status)\n"
        "except (OSError, http.client.HTTPException): print('closed')\n"
    )
    assert heard.strip() == "closed"


def test_the_proxy_sends_a_users_requests_to_that_users_session_only(
    portal: Instance, owner: Visitor, stranger: Visitor
) -> None:
    squatter = stranger.open_kernel()
    port = int(stranger.run_in(squatter, SQUAT).strip())
    for path in (f"/proxy/{port}/", f"/proxy/absolute/{port}/", f"/proxy/127.0.0.1:{port}/"):
        assert "squatted" not in owner.session("GET", path).text
    assert stranger.run_in(squatter, "print(len(heard))").strip() == "0"
    stranger.session("DELETE", f"/api/kernels/{squatter}")
    until(
        lambda: squatter not in stranger.session("GET", "/api/kernels").text,
        seconds=20,
        what="the kernel is gone",
    )
