"""MLflow in a session: whose it is, and what jobs are told of it."""

import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.instance import USERS, Instance, trust
from tests.processes import running
from tests.visitor import Visitor, session_of
from tests.waiting import until

PAGE = "/tools/mlflow/"
VISIT = {"Accept": "text/html"}
CONNECT = """
import socket
try:
    socket.socket(socket.AF_UNIX).connect({path!r})
    print("connected")
except OSError as error:
    print(error.strerror)
"""
SUBMIT = """
import subprocess
line = ["sbatch", "--wait", "--output=told.txt", "--wrap=printenv MLFLOW_TRACKING_URI"]
print(subprocess.run(line, capture_output=True, text=True, check=False).stderr)
print(open("told.txt").read())
"""


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[0]) as user:
        yield user
        home = Path(pwd.getpwnam(USERS[0]).pw_dir)
        (home / "told.txt").unlink(missing_ok=True)
        shutil.rmtree(home / "mlflow", ignore_errors=True)


@pytest.fixture(scope="module")
def other(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[1]) as other:
        yield other


def opened(visitor: Visitor, path: str, **headers: str) -> httpx.Response:
    own = {"Authorization": f"token {visitor.token()}", **VISIT, **headers}
    url = f"{visitor.instance.url}/user/{visitor.name}{path}"
    return httpx.get(url, headers=own, timeout=60, follow_redirects=True, verify=trust())


def test_nobody_else_reaches_a_users_runs(user: Visitor, other: Visitor) -> None:
    until(lambda: opened(user, PAGE).status_code == 200, seconds=180, what="MLflow answers")
    assert "<title>MLflow</title>" in opened(user, PAGE).text
    runtime = user.run("import os; print(os.environ['JUPYTER_RUNTIME_DIR'])").strip()
    socket = f"{runtime}/tool-mlflow.sock"
    assert Path(socket).is_socket()
    assert other.run(CONNECT.format(path=socket)).strip() == "Permission denied"
    assert user.run(CONNECT.format(path=socket)).strip() == "connected"
    url = f"{user.instance.url}/user/{user.name}{PAGE}"
    assert httpx.get(url, verify=trust()).status_code in (302, 403)
    token = {"Authorization": f"token {other.token()}"}
    assert httpx.get(url, headers=token | VISIT, verify=trust()).status_code in (302, 403)


def test_pages_of_other_hosts_and_other_names_for_it_are_refused(user: Visitor) -> None:
    until(lambda: opened(user, PAGE).status_code == 200, seconds=180, what="MLflow answers")
    assert opened(user, PAGE, Host="evil.example.org").status_code == 403
    search = f"{user.instance.url}/user/{user.name}{PAGE}ajax-api/2.0/mlflow/experiments/search"
    token = {"Authorization": f"token {user.token()}"}
    own = token | {"Origin": user.instance.url}
    assert (
        httpx.post(search, headers=own, json={"max_results": 1}, verify=trust()).status_code == 200
    )
    # Without a body: it is refused before one is read, and who still sends it sees no answer.
    others = token | {"Origin": "https://evil.example.org"}
    assert httpx.post(search, headers=others, verify=trust()).status_code == 403
    assert httpx.post(search, headers=own, verify=trust()).status_code != 403


def test_kernels_and_jobs_know_the_place_and_the_tool_has_no_token(user: Visitor) -> None:
    until(lambda: opened(user, PAGE).status_code == 200, seconds=180, what="MLflow answers")
    home = pwd.getpwnam(user.name).pw_dir
    uri = f"file://{home}/mlflow"
    assert user.run("import os; print(os.environ['MLFLOW_TRACKING_URI'])").strip() == uri
    assert user.run(SUBMIT, seconds=120).split()[-1] == uri
    (process,) = running("mlflow.server.fastapi_app", user=user.name)
    environment = Path(f"/proc/{process.pid}/environ").read_bytes()
    assert b"JUPYTERHUB" not in environment
    assert f"MLFLOW_BACKEND_STORE_URI={uri}".encode() in environment
    assert b"MLFLOW_DISABLE_TELEMETRY=true" in environment
