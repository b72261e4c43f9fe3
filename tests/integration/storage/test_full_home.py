"""A home without room: what is there can still be opened. The file system is really full."""

import asyncio
import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.utils import ensure_async
from tornado.ioloop import IOLoop

from dsportal.session.files.contents import SessionContents
from dsportal.session.files.mounts import Mounts
from dsportal.session.files.static import HomeCheckpoints

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "one",
            "metadata": {},
            "outputs": [],
            "source": "1 + 1",
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of 512 KiB and few files, with a notebook in it."""
    home = tmp_path / "home"
    home.mkdir()
    options = "size=512k,nr_inodes=30,mode=0700"
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", options, "tmpfs", str(home)], check=True)
    (home / ".local/share/jupyter").mkdir(parents=True)
    (home / "work").mkdir()
    (home / "work/a.ipynb").write_text(json.dumps(NOTEBOOK))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("JUPYTER_DATA_DIR", raising=False)
    yield home
    subprocess.run(["/bin/umount", "--lazy", str(home)], check=True)


def fill(home: Path) -> None:
    """Write until nothing more can be written, and make files until there can be no more."""
    with pytest.raises(OSError, match="No space left"):
        write_for_ever(home / "much")
    with pytest.raises(OSError, match="No space left"):
        touch_for_ever(home)


def write_for_ever(path: Path) -> None:
    with path.open("ab", 0) as file:
        while file.write(b"x"):
            pass


def touch_for_ever(folder: Path) -> None:
    for number in itertools.count():
        (folder / f"file-{number}").touch()


def contents(home: Path) -> Any:
    made: Any = SessionContents(root_dir=str(home), checkpoints_class=HomeCheckpoints)
    made.mounts = Mounts()
    return made


async def is_trusted(files: Any) -> bool:
    files.loop = IOLoop.current()
    opened = await ensure_async(files.get("work/a.ipynb"))
    return bool(opened["content"]["cells"][0]["metadata"]["trusted"])


def test_a_trusted_notebook_is_opened_and_trusted(home: Path) -> None:
    async def run() -> None:
        files = contents(home)
        files.loop = IOLoop.current()
        await ensure_async(files.trust_notebook("work/a.ipynb"))
        assert await is_trusted(files)
        fill(home)
        assert await is_trusted(files)
        # Another session finds it so, too.
        assert await is_trusted(contents(home))

    asyncio.run(run())


def test_the_first_notebook_ever_is_opened(home: Path) -> None:
    fill(home)
    assert not asyncio.run(is_trusted(contents(home)))
    # Nothing that was begun stays, least of all a key that anybody knows.
    assert not (home / ".local/share/jupyter/notebook_secret").exists()


def test_an_empty_key_is_none(home: Path) -> None:
    (home / ".local/share/jupyter/notebook_secret").touch()
    assert len(contents(home).notary.secret) > 1000
    assert os.stat(home / ".local/share/jupyter/notebook_secret").st_mode & 0o777 == 0o600


def test_saved_states_are_listed(home: Path) -> None:
    fill(home)
    assert asyncio.run(ensure_async(contents(home).list_checkpoints("work/a.ipynb"))) == []
