import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.sharing.access import Audience, SharingError
from dsportal.session.sharing.routes import Sharing, order_from, routes


def test_an_order_names_a_notebook_and_whom() -> None:
    body = {"path": "/a/b.ipynb", "kind": "group", "names": ["lab"]}
    assert order_from(json.dumps(body).encode()) == ("a/b.ipynb", Audience("group", ("lab",)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"path": "a.ipynb"}',
        b'{"path": 1, "kind": "link", "names": []}',
        b'{"path": "../a.ipynb", "kind": "link", "names": []}',
        b'{"path": "a\\u0000.ipynb", "kind": "link", "names": []}',
        b'{"path": "a.ipynb", "kind": "link", "names": [], "more": 1}',
        b'{"path": "a.ipynb", "kind": "all", "names": []}',
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(SharingError):
        order_from(body)


def test_nothing_answers_where_sharing_is_off() -> None:
    assert routes("/user/ann/", Sharing("", "ann", {})) == []
    assert len(routes("/user/ann/", Sharing("/nas/{user}", "ann", {}))) == 3


def test_a_share_is_shown_without_templates_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/index.html.j2").write_text("the home's")
    monkeypatch.chdir(tmp_path)
    begin = asyncio.create_subprocess_exec

    async def begun(*argv: str, **how: Any) -> Any:
        # The checkout's package, which -I would not find.
        here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return await begin(*[one for one in argv if one != "-I"], **{**how, "env": here})

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begun)
    empty = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'
    html = asyncio.run(Sharing("/{user}", "ann", {}).html(empty))
    assert html
    assert "the home's" not in html
