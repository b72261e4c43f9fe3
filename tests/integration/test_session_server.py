"""What a session's server lets in, and what it shows."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.instance import Instance
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]


@pytest.fixture
def user(visit: Visit) -> Visitor:
    """A user with a session."""
    user = visit("testuser1")
    user.start_and_wait(gpus=0)
    return user


def test_a_port_of_the_node_is_not_proxied(portal: Instance, user: Visitor) -> None:
    port = portal.settings["hub"]["api_url"].rsplit(":", 1)[1]
    for path in (f"/proxy/{port}/", f"/proxy/127.0.0.1:{port}/", f"/proxy/absolute/{port}/"):
        answer = user.session("GET", path, follow_redirects=True)
        assert answer.status_code == 404, path


def test_tensorboard_is_behind_the_users_own_login(portal: Instance, user: Visitor) -> None:
    def answers() -> bool:
        return user.session("GET", "/tensorboard/", follow_redirects=True).status_code == 200

    until(answers, seconds=60, what="TensorBoard answers its user")
    url = f"{portal.url}/user/testuser1/tensorboard/"
    other = Visitor(portal, "testuser2")
    other.log_in()
    token = other.token()
    other.close()
    assert httpx.get(url).status_code in (302, 403)
    assert httpx.get(url, headers={"Authorization": f"token {token}"}).status_code in (302, 403)


def test_tensorboard_listens_on_a_socket_that_only_its_user_can_reach(user: Visitor) -> None:
    def answers() -> bool:
        return user.session("GET", "/tensorboard/", follow_redirects=True).status_code == 200

    until(answers, seconds=60, what="TensorBoard answers its user")
    (pid,) = [
        path.parent
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"tensorboard_server" in read(path)
    ]
    command = read(pid / "cmdline").decode().split("\0")
    socket = next(
        Path(word.removeprefix("--socket=")) for word in command if word.startswith("--socket=")
    )
    assert socket.is_socket()
    assert socket.stat().st_mode & 0o077 == 0
    assert socket.parent.stat().st_mode & 0o077 == 0
    # Of the machine's TCP sockets that listen, none is this process's.
    inodes = {link.readlink().name for link in (pid / "fd").iterdir() if link.is_symlink()}
    listening = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text().splitlines()[1:]
    ]
    tcp = {f"socket:[{fields[9]}]" for fields in listening if fields[3] == "0A"}
    assert tcp
    assert not inodes & tcp


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_template_can_be_downloaded_but_not_changed(user: Visitor) -> None:
    path = "templates/tensorflow/mnist.ipynb"
    assert user.session("GET", f"/files/{path}").status_code == 200
    before = user.session("GET", f"/files/{path}").text
    change = {"type": "notebook", "content": {**json.loads(before), "cells": []}}
    assert user.session("PUT", f"/api/contents/{path}", json=change).status_code in (403, 500)
    assert user.session("GET", f"/files/{path}").text == before


def test_the_kernels_are_python_3_and_tensorflow(user: Visitor) -> None:
    specs = user.session("GET", "/api/kernelspecs").json()["kernelspecs"]
    assert {"python3", "tensorflow"} <= set(specs)
    printed = user.run("import tensorflow as tf; print(tf.__version__)", kernel="tensorflow")
    assert "2.21" in printed


def test_another_unix_user_cannot_read_the_home_or_the_token(
    portal: Instance, user: Visitor
) -> None:
    home = user.run("import os; print(os.getcwd(), os.getppid())").split()
    listing = ["/bin/ls", home[0]]
    with pytest.raises(RuntimeError, match="Permission denied"):
        portal.slurm(*listing, user="testuser2")
    with pytest.raises(RuntimeError, match="Permission denied"):
        portal.slurm("/bin/cat", f"/proc/{home[1]}/environ", user="testuser2")
