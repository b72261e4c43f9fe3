"""Jupyter's contents in threads, beside a mount that is known to be dead."""

import asyncio
import json
import os
import shutil
import threading
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.utils import ensure_async
from tornado.ioloop import IOLoop
from tornado.web import HTTPError

from dsportal.session.files import contents as contents_module
from dsportal.session.files.contents import SessionContents
from dsportal.session.files.mounts import Mounts, MountState
from dsportal.session.files.static import HomeCheckpoints
from dsportal.session.files.writing import followed


class OneIsDead(Mounts):
    """Knows of a mount that does not answer; its folder is an ordinary one."""

    def __init__(self, point: Path) -> None:
        super().__init__()
        self._known[str(point)] = MountState(str(point), "hangs", 0.0)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "nas").mkdir()
    (tmp_path / "nas/file").write_text("there")
    (home / "isilon").symlink_to(tmp_path / "nas")
    (home / "mine.txt").write_text("mine")
    (home / "a folder").mkdir()
    (home / "own").symlink_to(tmp_path / "nas/file")
    monkeypatch.setenv("HOME", str(home))
    return home


def contents(home: Path, mounts: Mounts | None = None) -> Any:
    made: Any = SessionContents(root_dir=str(home), checkpoints_class=HomeCheckpoints)
    made.mounts = mounts or Mounts()
    return made


def test_every_call_runs_outside_of_the_servers_thread(home: Path) -> None:
    files, seen = contents(home), set()
    files.register_pre_save_hook(lambda **_: seen.add(threading.current_thread()))

    async def save() -> None:
        files.loop = IOLoop.current()
        model = {"type": "file", "format": "text", "content": "new"}
        await ensure_async(files.save(model, "new.txt"))

    asyncio.run(save())
    assert (home / "new.txt").read_text() == "new"
    assert len(seen) == 1
    assert threading.main_thread() not in seen


def test_a_notebook_is_signed_and_trusted_from_any_thread(home: Path) -> None:
    files = contents(home)

    async def work() -> Any:
        files.loop = IOLoop.current()
        made = await ensure_async(files.new_untitled(type="notebook"))
        for _ in range(2):
            await ensure_async(files.trust_notebook(made["path"]))
        return await ensure_async(files.get(made["path"], content=True))

    assert asyncio.run(work())["type"] == "notebook"


def test_a_link_to_a_dead_mount_is_a_folder_that_cannot_be_written(home: Path) -> None:
    files = contents(home, OneIsDead(home.parent / "nas"))
    model = asyncio.run(ensure_async(files.get("")))
    found = {entry["name"]: entry for entry in model["content"]}
    assert found.keys() == {"a folder", "isilon", "mine.txt", "own"}
    for name in ("isilon", "own"):
        assert (found[name]["type"], found[name]["writable"]) == ("directory", False)
    assert found["isilon"].keys() == found["mine.txt"].keys()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("get", ("isilon",)),
        ("get", ("isilon/file",)),
        ("dir_exists", ("isilon",)),
        ("save", ({"type": "directory"}, "isilon/new")),
        ("rename", ("mine.txt", "isilon/mine.txt")),
        ("copy", ("isilon/file",)),
        ("get_kernel_path", ("isilon/a.ipynb",)),
        ("restore_checkpoint", ("checkpoint", "isilon/a.ipynb")),
    ],
)
def test_what_leads_to_a_dead_mount_is_refused_with_words(
    home: Path, name: str, given: tuple[Any, ...]
) -> None:
    files = contents(home, OneIsDead(home.parent / "nas"))
    with pytest.raises(HTTPError, match="has not responded since") as raised:
        asyncio.run(ensure_async(getattr(files, name)(*given)))
    assert raised.value.status_code == 504
    assert (home / "mine.txt").exists()


def test_what_hangs_is_begun_anew_once_its_mount_is_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsportal.session.files.mounts.PATIENCE_SECONDS", 0.05)
    mounts, begun, never = Mounts(), [], threading.Event()

    async def look() -> None:
        mounts._known["/mnt/dead"] = MountState("/mnt/dead", "hangs", 0.0)

    monkeypatch.setattr(mounts, "look", look)

    def work() -> int:
        begun.append(1)
        if len(begun) == 1:
            never.wait()
        return len(begun)

    assert asyncio.run(mounts.in_time(work, str(home))) == 2
    never.set()


@pytest.mark.parametrize(
    ("name", "given", "repeat"),
    [
        ("get", ("mine.txt",), True),
        ("save", ({"type": "directory"}, "new"), False),
        ("delete", ("mine.txt",), False),
        ("rename", ("mine.txt", "other.txt"), False),
        ("copy", ("mine.txt",), False),
        ("new_untitled", ("",), False),
    ],
)
def test_what_changes_something_is_begun_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, given: tuple[Any, ...], repeat: bool
) -> None:
    mounts, asked = Mounts(), []

    async def in_time(work: Any, *places: str, repeat: bool = True) -> None:
        asked.append(repeat)

    monkeypatch.setattr(mounts, "in_time", in_time)
    asyncio.run(ensure_async(getattr(contents(home, mounts), name)(*given)))
    assert asked == [repeat]


def saved(home: Path, path: str, content: str) -> None:
    files = contents(home)
    model = {"type": "file", "format": "text", "content": content}
    asyncio.run(ensure_async(files.save(model, path)))


def test_saving_among_others_follows_no_link_that_one_of_them_has_made(home: Path) -> None:
    group = home / "group"
    group.mkdir()
    group.chmod(0o770)
    (group / "x.sh").write_text("theirs")
    # Where Jupyter would keep the old content.
    (group / ".~x.sh").symlink_to(home / "mine.txt")
    saved(home, "group/x.sh", "changed")
    assert (group / "x.sh").read_text() == "changed"
    assert (home / "mine.txt").read_text() == "mine"
    kept = home / ".local/share/data-scientist-portal/checkpoints"
    assert list(kept.rglob("*.kept")) == []


def test_what_cannot_be_saved_among_others_is_as_it_was(home: Path) -> None:
    group = home / "group"
    group.mkdir()
    group.chmod(0o770)
    (group / "a.txt").write_text("before")

    def fail() -> None:
        with contents(home).atomic_writing(str(group / "a.txt")) as stream:
            stream.write("half")
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        fail()
    assert (group / "a.txt").read_text() == "before"


def test_a_home_without_room_keeps_nobody_from_saving_among_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = home / "group"
    group.mkdir()
    group.chmod(0o770)

    def no_room(*_: object) -> None:
        raise OSError(ENOSPC, "no room")

    monkeypatch.setattr(shutil, "copyfile", no_room)
    (group / "a.txt").write_text("before")
    saved(home, "group/a.txt", "after")
    assert (group / "a.txt").read_text() == "after"


@pytest.mark.parametrize("name", ["zeros.ipynb", "parts.ipynb", "zeros.txt"])
def test_a_file_that_the_session_cannot_hold_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "parts.ipynb").write_text('{"metadata": {"x": [' + "{}," * 100_000 + "{}]}}")
    for one in ("zeros.ipynb", "zeros.txt"):
        with (tmp_path / one).open("wb") as file:
            file.truncate(1 << 40)  # sparse
    files: Any = SessionContents(root_dir=str(tmp_path))
    files.memory_bytes = 8 << 20
    with pytest.raises(HTTPError) as refused:
        asyncio.run(ensure_async(files.get(name)))
    assert refused.value.status_code == 413
    # What is said of it without its content is known all the same.
    assert asyncio.run(ensure_async(files.get(name, content=False)))["name"] == name


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A folder that others may write to, beside a file that they would like to."""
    (tmp_path / ".bashrc").write_text("mine")
    folder = tmp_path / "group"
    folder.mkdir()
    folder.chmod(0o770)
    return folder


@pytest.mark.root
@pytest.mark.parametrize("more", [{}, {"chunk": 2}])
def test_saving_does_not_follow_a_colleagues_link_in_the_files_own_place(
    tmp_path: Path, group: Path, more: dict[str, Any]
) -> None:
    link = group / "notes.ipynb"
    link.symlink_to(tmp_path / ".bashrc")
    os.lchown(link, 65534, 65534)
    files: Any = SessionContents(root_dir=str(tmp_path))
    model = {"type": "file", "format": "text", "content": "theirs", **more}
    with pytest.raises(HTTPError, match="403"):
        asyncio.run(ensure_async(files.save(model, "group/notes.ipynb")))
    assert (tmp_path / ".bashrc").read_text() == "mine"
    # One's own link leads where one wanted.
    os.lchown(link, os.geteuid(), os.getegid())
    asyncio.run(ensure_async(files.save(model, "group/notes.ipynb")))
    assert (tmp_path / ".bashrc").read_text().endswith("theirs")


@pytest.mark.parametrize("format_", ["text", "base64"])
def test_a_link_that_a_colleague_makes_during_an_upload_is_not_followed(
    tmp_path: Path, group: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    (group / "data.csv").write_text("a,")
    files: Any = SessionContents(root_dir=str(tmp_path))
    model = {"type": "file", "format": format_, "content": "dGhl", "chunk": 2}
    asyncio.run(ensure_async(files.save(model, "group/data.csv")))
    assert (group / "data.csv").read_text() == f"a,{'dGhl' if format_ == 'text' else 'the'}"

    def exchanged(file: Path) -> Path:
        place = followed(file)
        file.unlink()
        file.symlink_to(tmp_path / ".bashrc")
        return place

    monkeypatch.setattr(contents_module, "followed", exchanged)
    with pytest.raises(HTTPError):
        asyncio.run(ensure_async(files.save(model, "group/data.csv")))
    assert (tmp_path / ".bashrc").read_text() == "mine"


@pytest.mark.parametrize(
    ("format_", "content"), [("json", "{}"), ("base64", "x"), ("text", "\ud800")]
)
def test_a_piece_of_an_upload_that_cannot_be_read_is_refused(
    tmp_path: Path, group: Path, format_: str, content: str
) -> None:
    (group / "data.csv").write_text("a,")
    files: Any = SessionContents(root_dir=str(tmp_path))
    model = {"type": "file", "format": format_, "content": content, "chunk": 2}
    with pytest.raises(HTTPError) as refused:
        asyncio.run(ensure_async(files.save(model, "group/data.csv")))
    assert refused.value.status_code == 400
    assert (group / "data.csv").read_text() == "a,"


def test_a_notebook_with_much_text_in_an_output_is_opened(tmp_path: Path) -> None:
    cell = {"cell_type": "raw", "id": "a", "metadata": {}, "source": "[{" * 100_000}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "map.ipynb").write_text(json.dumps(notebook))
    files: Any = SessionContents(root_dir=str(tmp_path))
    files.memory_bytes = 8 << 20
    assert asyncio.run(ensure_async(files.get("map.ipynb")))["type"] == "notebook"


def test_a_notebook_that_ends_within_a_text_is_refused_at_once(tmp_path: Path) -> None:
    # Looked for from each quote on, the end would not be found for hours.
    (tmp_path / "cut.ipynb").write_text('{"cells": "' + '\\"x' * 1_000_000)
    files: Any = SessionContents(root_dir=str(tmp_path))
    files.memory_bytes = 1 << 30
    with pytest.raises(HTTPError, match="Unreadable Notebook"):
        asyncio.run(ensure_async(files.get("cut.ipynb")))


def test_a_file_of_any_size_is_duplicated(tmp_path: Path) -> None:
    content = b"\xff" * (2 << 20)
    (tmp_path / "model.bin").write_bytes(content)
    files: Any = SessionContents(root_dir=str(tmp_path))
    files.longest_bytes = 1 << 20
    assert asyncio.run(ensure_async(files.copy("model.bin")))["name"] == "model-Copy1.bin"
    assert (tmp_path / "model-Copy1.bin").read_bytes() == content
    # It is read as before afterwards.
    (tmp_path / "words.txt").write_text("words")
    assert asyncio.run(ensure_async(files.get("words.txt")))["content"] == "words"


@pytest.mark.root
def test_ones_own_links_lead_on_where_others_may_write_and_no_further(
    tmp_path: Path, group: Path
) -> None:
    (group / "real.txt").write_text("old")
    # A colleague waits where Jupyter would put what it writes.
    (group / ".~real.txt").symlink_to(tmp_path / ".bashrc")
    (group / "second.txt").symlink_to("real.txt")
    (group / "first.txt").symlink_to("second.txt")
    (tmp_path / "second.txt").symlink_to(group / "real.txt")
    (tmp_path / "first.txt").symlink_to("second.txt")
    files: Any = SessionContents(root_dir=str(tmp_path))
    for number, path in enumerate(["group/first.txt", "first.txt"]):
        model = {"type": "file", "format": "text", "content": f"new {number}"}
        asyncio.run(ensure_async(files.save(model, path)))
        assert (group / "real.txt").read_text() == f"new {number}"
    assert (tmp_path / ".bashrc").read_text() == "mine"


@pytest.mark.root
def test_what_comes_back_after_a_failure_follows_no_link_either(
    tmp_path: Path, group: Path
) -> None:
    file = group / "notes.txt"
    file.write_text("a colleague's")
    files: Any = SessionContents(root_dir=str(tmp_path))

    def write() -> None:
        with files.atomic_writing(str(file)):
            file.unlink()
            file.symlink_to(tmp_path / ".bashrc")
            raise OSError(ENOSPC, "no space")

    with pytest.raises(OSError, match="no space"):
        write()
    assert (tmp_path / ".bashrc").read_text() == "mine"
