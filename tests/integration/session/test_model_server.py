"""The card *Model server*: a user's own model, behind the user's own login."""

import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.instance import USERS, Instance, trust
from tests.network import sockets
from tests.notebooks.running import framework_python
from tests.pages import how_to
from tests.processes import running
from tests.training import tiny_models
from tests.visitor import Visitor, session_of
from tests.waiting import until

POSITIONS = 4096
PAGE = "/tools/model-server/"
VISIT = {"Accept": "text/html"}
# In a shell, in the folder with the models.
TYPED = """
import os, subprocess
argv, folder = ["/bin/sh", "-c", {typed!r}], os.path.expanduser("~/logs/served")
done = subprocess.run(argv, capture_output=True, text=True, cwd=folder)
print(done.stdout + done.stderr)
"""
DRAW = """
import sys
from PIL import Image
Image.new("RGB", (32, 32), (200, 30, 30)).save(sys.argv[1])
"""
# The session does not know the tests' authority.
CURL = {"curl ": "curl --silent --show-error --insecure "}
REACH = """
import socket
try:
    socket.socket(socket.AF_UNIX).connect({path!r})
    print("connected")
except OSError as error:
    print(error.strerror)
"""


@pytest.fixture(scope="module")
def other(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[1]) as other:
        yield other


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a language model in a run's folder, who has opened the server's page."""
    account = pwd.getpwnam(USERS[0])
    run = Path(account.pw_dir) / "logs" / "served"
    shutil.rmtree(run, ignore_errors=True)
    run.parent.mkdir(exist_ok=True)
    python = framework_python("pytorch")
    tiny_models.make(
        python,
        tiny_models.text(run / "<i>model<i>", POSITIONS, is_endless=True),
        tiny_models.image(run / "image"),
        [DRAW, str(run / "image.png")],
    )
    for path in (run.parent, run, *run.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    with session_of(portal, USERS[0]) as user:
        until(lambda: opened(user).status_code == 200, seconds=180, what="the page is there")
        yield user
    shutil.rmtree(run)


def opened(visitor: Visitor) -> httpx.Response:
    """Open the page as a browser does: at first it may say that the server starts."""
    url = f"{visitor.instance.host_of(visitor.name)}/user/{visitor.name}{PAGE}"
    headers = {"Authorization": f"token {visitor.token()}", **VISIT}
    return httpx.get(url, headers=headers, timeout=60, follow_redirects=True, verify=trust())


def load(user: Visitor, name: str = "<i>model<i>") -> None:
    """Load a model that the page lists."""
    folder = str(Path(pwd.getpwnam(user.name).pw_dir) / "logs/served" / name)
    begun = user.session("POST", f"{PAGE}load", json={"folder": folder})
    assert begun.status_code == 202, begun.text
    until(
        lambda: user.session("GET", f"{PAGE}state").json()["state"] == "ready",
        seconds=60,
        what="the model is loaded",
    )


def test_the_page_lists_the_models_in_the_users_runs(user: Visitor) -> None:
    page = opened(user)
    assert "served/&lt;i&gt;model&lt;i&gt;" in page.text
    assert "<i>" not in page.text
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert page.headers["Server"] == "portal"


def test_a_program_asks_it_with_a_token(user: Visitor) -> None:
    words = {
        **CURL,
        "$TOKEN": user.token(),
        "https://portal.example": user.instance.host_of(user.name),
        "NAME": user.name,
    }
    block = how_to("serve-a-model.md", 0, words)
    of_text, of_image = (f"curl {rest}" for rest in block.split("curl ")[1:])
    load(user)
    assert '"completion_tokens":' in user.run(TYPED.format(typed=of_text))
    load(user, "image")
    said = user.run(TYPED.format(typed=of_image))
    assert "dog" in said
    assert '"probability":' in said


def client_of(user: Visitor) -> openai.OpenAI:
    """OpenAI's client with what the page says: the address, and a token as the key."""
    url = f"{user.instance.host_of(user.name)}/user/{user.name}{PAGE}v1"
    http = httpx.Client(verify=trust(), timeout=120)
    return openai.OpenAI(base_url=url, api_key=user.token(), http_client=http, max_retries=0)


def state_of(user: Visitor) -> Any:
    return user.session("GET", f"{PAGE}state").json()


def test_openais_client_reads_an_answer_while_it_is_written(user: Visitor) -> None:
    load(user)
    with client_of(user) as client:
        (model,) = client.models.list()
        before = state_of(user)["requests"]
        asked: Any = {"model": model.id, "temperature": 0}
        asked["messages"] = [{"role": "user", "content": "This License"}]
        with client.chat.completions.create(stream=True, max_tokens=3900, **asked) as parts:
            begun = [next(parts).choices[0].delta.content for _ in range(5)]
            assert state_of(user)["requests"] == before  # the text is not written yet
        assert all(begun[1:])
        whole = client.chat.completions.create(max_tokens=30, **asked)
        parts = client.chat.completions.create(stream=True, max_tokens=30, **asked)
        text = "".join(part.choices[0].delta.content or "" for part in parts)
        assert text == whole.choices[0].message.content
        assert text.startswith("".join(map(str, begun)))


@pytest.mark.parametrize("is_streamed", [True, False])
def test_whoever_leaves_frees_the_server(user: Visitor, is_streamed: bool) -> None:
    load(user)
    before = state_of(user)
    asked: Any = {"prompt": "is", "temperature": 0, "max_tokens": 4000}
    with client_of(user) as client:
        model = before["model"]["name"]
        if is_streamed:
            next(iter(client.completions.create(model=model, stream=True, **asked)))
        else:
            with pytest.raises(openai.APITimeoutError):
                client.completions.create(model=model, timeout=1, **asked)
    until(
        lambda: state_of(user)["requests"] > before["requests"],
        seconds=120,
        what="the text is not written any more",
    )
    assert state_of(user)["tokens"] - before["tokens"] < 4000


def test_a_program_in_the_session_asks_it_without_a_token(user: Visitor) -> None:
    load(user)
    typed = how_to("serve-a-model.md", 1, CURL)
    assert '"id": "served/<i>model<i>"' in user.run(TYPED.format(typed=typed))


def test_nobody_else_reaches_it(user: Visitor, other: Visitor) -> None:
    load(user)
    runtime = user.run("import os; print(os.environ['JUPYTER_RUNTIME_DIR'])").strip()
    path = f"{runtime}/tool-model-server.sock"
    assert Path(path).is_socket()
    assert other.run(REACH.format(path=path)).strip() == "Permission denied"
    url = f"{user.instance.host_of(user.name)}/user/{user.name}{PAGE}"
    for headers in ({}, {"Authorization": f"token {other.token()}"}):
        for place in ("", "state", "v1/models"):
            answer = httpx.get(url + place, headers=headers | VISIT, verify=trust())
            assert answer.status_code in (302, 403), place
        asked = {"prompt": "This", "max_tokens": 2}
        answer = httpx.post(f"{url}v1/completions", headers=headers, json=asked, verify=trust())
        assert answer.status_code in (302, 403)
    # Nor does another page in the user's own browser, which sends the cookies along.
    assert user.http.post(f"/user/{user.name}{PAGE}load", json={}).status_code == 403


def test_it_has_no_token_and_no_port(user: Visitor) -> None:
    found = running("/model_server.py", user=user.name)
    (server,) = (one for one in found if one.cmdline()[1].endswith("/model_server.py"))
    assert "JUPYTERHUB" not in str(server.environ())
    assert [one for one in sockets.of_processes({server.pid}) if one.kind == "tcp"] == []
