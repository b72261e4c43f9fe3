"""What a session's server lets in, and what it shows."""

import json
import shutil
from collections.abc import Iterator

import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor, session_of

NOT_COMPILED = """
import sys
from pathlib import Path
sources = {module.__spec__.origin: module.__spec__.cached for module in [*sys.modules.values()]
           if getattr(module, "__spec__", None) and module.__spec__.cached}
print(len(sources), [source for source, cached in sources.items() if not Path(cached).exists()])
"""


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a session, for all tests of this module."""
    with session_of(portal, USERS[0]) as user:
        yield user


def test_a_port_of_the_node_is_not_proxied(portal: Instance, user: Visitor) -> None:
    port = portal.settings["hub"]["api_url"].rsplit(":", 1)[1]
    for path in (f"/proxy/{port}/", f"/proxy/127.0.0.1:{port}/", f"/proxy/absolute/{port}/"):
        answer = user.session("GET", path, follow_redirects=True)
        assert answer.status_code == 404, path


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


@pytest.mark.parametrize(
    ("kernel", "imported"),
    [("python3", "dsportal.session.server"), ("tensorflow", "ipykernel.kernelapp, tensorboard")],
)
def test_nothing_is_compiled_anew_with_each_start(
    user: Visitor, kernel: str, imported: str
) -> None:
    """Users cannot write where compiled modules are kept: what is not there costs every start."""
    count, _, missing = user.run(f"import {imported}{NOT_COMPILED}", kernel=kernel).partition(" ")
    assert (int(count) > 300, missing.strip()) == (True, "[]")


def test_another_unix_user_cannot_read_the_home_or_the_token(
    portal: Instance, user: Visitor
) -> None:
    home = user.run("import os; print(os.getcwd(), os.getppid())").split()
    listing = ["/bin/ls", home[0]]
    with pytest.raises(RuntimeError, match="Permission denied"):
        portal.slurm(*listing, user=USERS[1])
    with pytest.raises(RuntimeError, match="Permission denied"):
        portal.slurm("/bin/cat", f"/proc/{home[1]}/environ", user=USERS[1])


def test_no_format_is_offered_that_the_node_cannot_make(user: Visitor) -> None:
    offered = set(user.session("GET", "/api/nbconvert").raise_for_status().json())
    assert {"html", "markdown", "script"} <= offered
    assert not offered & {"webpdf", "qtpdf", "qtpng"}
    assert shutil.which("xelatex") or "pdf" not in offered
