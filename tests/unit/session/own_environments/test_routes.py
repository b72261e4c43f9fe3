import asyncio
import dataclasses
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.files import mounts as mounts_module
from dsportal.session.files.mounts import Mounts, MountState
from dsportal.session.files.quota import Storage
from dsportal.session.own_environments import kernels, routes, words
from dsportal.session.own_environments.folders import EnvironmentFolders
from dsportal.session.own_environments.kernels import OwnKernels
from dsportal.session.own_environments.making import Order
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    EnvironmentRecord,
    OwnEnvironment,
    OwnEnvironmentError,
)
from dsportal.session.own_environments.routes import order_from, overview
from dsportal.session.own_environments.work import OwnWork, Task


class EndingKernels(OwnKernels):
    """Those of a folder whose one environment is finished as soon as it was looked at."""

    work: OwnWork

    async def look(self) -> tuple[OwnEnvironment, ...]:
        """Look, and then the work is done."""
        found = await super().look()
        assert self.folders is not None
        (self.folders.first.place("mine") / "bin/python").touch()
        self.folders.first.write(EnvironmentRecord("mine"))
        assert self.work.task is not None
        self.work.task.state = "done"
        return found


def test_the_list_is_never_older_than_what_is_said_of_the_work(tmp_path: Path) -> None:
    folder = EnvironmentFolder(tmp_path)
    folder.begin("mine")
    (tmp_path / "mine/bin").mkdir()
    work = OwnWork({})
    work.task = Task("create", "mine")
    kernels = EndingKernels(EnvironmentFolders((folder,)), Mounts(), {"HOME": str(tmp_path)})
    kernels.work = work

    async def ask_until_done() -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        while not told or told[-1]["task"]["state"] == "running":
            storage = Storage(tmp_path, {})
            told.append(await overview(work, kernels, storage, {}))
        return told

    first, last = asyncio.run(ask_until_done())
    assert first["task"] == dataclasses.asdict(Task("create", "mine"))
    assert (first["environments"][0]["on"], first["environments"][0]["trouble"]) == ("", "")
    assert last["environments"][0]["on"] == EnvironmentRecord("mine").on_words


def made_in(*folders: EnvironmentFolder) -> None:
    """Put one into each, with the folder's name."""
    for folder in folders:
        folder.make()
        folder.begin(folder.name)
        (folder.place(folder.name) / "bin").mkdir()
        (folder.place(folder.name) / "bin/python").touch()
        folder.write(EnvironmentRecord(folder.name))


@pytest.mark.root
def test_each_place_is_told_with_its_quota(tmp_path: Path) -> None:
    # Stand-ins: a file server with quotas is in tests/deploy/test_nfs.py.
    for name, says in (("df", "9000 3000 6000 nfs4 /mnt"), ("quota", "x 2 0 5 0 1 0 0 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)
    home = EnvironmentFolder(tmp_path / "home/environments")
    isilon = EnvironmentFolder(tmp_path / "isilon", "isilon")
    (tmp_path / "ben").mkdir()
    os.chown(tmp_path / "ben", 4321, 4321)
    bens = EnvironmentFolder(tmp_path / "ben/environments", "bens")
    made_in(isilon)
    kernels = OwnKernels(EnvironmentFolders((home, isilon, bens)), Mounts(), {})
    storage = Storage(tmp_path, {}, {"PATH": f"{tmp_path}:/usr/bin"})
    told = asyncio.run(overview(OwnWork({}), kernels, storage, {}))
    assert [folder["name"] for folder in told["folders"]] == ["home", "isilon"]
    for folder in told["folders"]:
        use = folder["storage"]
        assert (use["used"], use["size"], use["is_quota"]) == (2048, 5120, True)
    (one,) = told["environments"]
    assert (one["name"], one["in"]) == ("isilon", "isilon")


@pytest.mark.parametrize(("variables", "is_offered"), [({}, False), ({"PORTAL_CONDA": "/c"}, True)])
def test_conda_is_offered_where_the_site_has_it(
    tmp_path: Path, variables: dict[str, str], is_offered: bool
) -> None:
    kernels = OwnKernels(EnvironmentFolders((EnvironmentFolder(tmp_path),)), Mounts(), variables)
    told = asyncio.run(overview(OwnWork({}), kernels, Storage(tmp_path, {}), {}))
    assert told["conda"] is is_offered


class DeadMounts(Mounts):
    """Mounts of which one does not answer."""

    def __init__(self, dead: Path) -> None:
        super().__init__()
        self._known[str(dead)] = MountState(str(dead), "hangs", since=0)


def test_a_place_that_does_not_answer_leaves_the_others(tmp_path: Path) -> None:
    home = EnvironmentFolder(tmp_path / "home")
    isilon = EnvironmentFolder(tmp_path / "isilon/ann", "isilon")
    made_in(home, isilon)
    kernels = OwnKernels(EnvironmentFolders((home, isilon)), Mounts(), {})
    asyncio.run(kernels.look())
    kernels.mounts = DeadMounts(tmp_path / "isilon")
    storage = Storage(tmp_path, {}, mounts=kernels.mounts)
    told = asyncio.run(overview(OwnWork({}), kernels, storage, {}))
    assert [one["name"] for one in told["environments"]] == ["home"]
    assert [bool(folder["trouble"]) for folder in told["folders"]] == [False, True]
    # A kernel that runs keeps its name; one that starts says itself why it cannot.
    assert kernels.specs().keys() == {"env-home", "env-isilon"}


def test_the_servers_thread_touches_no_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, isdir = EnvironmentFolder(tmp_path / "home"), os.path.isdir
    made_in(folder)
    folder.write(EnvironmentRecord("home", base="/apps/pytorch"))
    seen = set()

    def looked_at(place: str) -> bool:
        if place == "/apps/pytorch":
            seen.add(threading.current_thread())
        return isdir(place)

    monkeypatch.setattr(os.path, "isdir", looked_at)
    own = OwnKernels(EnvironmentFolders((folder,)), Mounts(), {})
    told = asyncio.run(overview(OwnWork({}), own, Storage(tmp_path, {}), {}))
    assert told["environments"][0]["trouble"] == words.BASE_GONE
    assert threading.main_thread() not in seen


def test_a_base_that_does_not_answer_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, apps = EnvironmentFolder(tmp_path / "home"), tmp_path / "apps"
    apps.mkdir()
    made_in(home)
    home.write(EnvironmentRecord("home", ("pytorch/2.13",), str(apps)))
    mounts, isdir, release = Mounts(), os.path.isdir, threading.Event()
    own = OwnKernels(EnvironmentFolders((home,)), mounts, {})
    asyncio.run(own.look())
    known = own.specs()

    def silent(place: str) -> bool:
        if place == str(apps):
            assert threading.current_thread() is not threading.main_thread()
            release.wait(30)
        return isdir(place)

    async def look() -> None:
        mounts._known = DeadMounts(apps)._known

    monkeypatch.setattr(os.path, "isdir", silent)
    monkeypatch.setattr(mounts_module, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(mounts, "look", look)
    asking = overview(OwnWork({}), own, Storage(tmp_path, {}), {})
    told = asyncio.run(asyncio.wait_for(asking, 20))
    release.set()
    assert "apps has not responded since" in told["environments"][0]["trouble"]
    assert own.specs() == known != {}


def test_a_large_environment_is_gone_through_once_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, is_done = [], threading.Event()

    def size_of(folder: Path) -> int:
        begun.append(folder)
        is_done.wait(30)
        return 7

    monkeypatch.setattr(kernels, "size_of", size_of)
    monkeypatch.setattr(routes, "_SIZE_SECONDS", 0.05)
    folder = EnvironmentFolder(tmp_path)
    made_in(folder)
    own = OwnKernels(EnvironmentFolders((folder,)), Mounts(), {})

    async def ask() -> Any:
        told = await overview(OwnWork({}), own, Storage(tmp_path, {}), {})
        return told["environments"][0]["size"]

    async def ask_again_and_again() -> list[Any]:
        sizes = [await ask() for _ in range(3)]
        is_done.set()
        monkeypatch.setattr(routes, "_SIZE_SECONDS", 30)
        return [*sizes, await ask()]

    assert asyncio.run(ask_again_and_again()) == [None, None, None, 7]
    assert len(begun) == 1


def test_a_size_that_nobody_waited_for_is_not_told_much_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_done, sizes = threading.Event(), iter((7, 8))

    def size_of(_: Path) -> int:
        is_done.wait(30)
        return next(sizes)

    monkeypatch.setattr(kernels, "size_of", size_of)
    monkeypatch.setattr(kernels, "_KEPT_SECONDS", 0.0)
    folder = EnvironmentFolder(tmp_path)
    made_in(folder)
    own = OwnKernels(EnvironmentFolders((folder,)), Mounts(), {})

    async def ask_now_and_later() -> list[int | None]:
        (one,) = await own.look()
        first = await own.size(one, 0.05)
        is_done.set()
        forgotten = asyncio.Event()
        own._sizes[one.path].add_done_callback(
            lambda _: asyncio.get_running_loop().call_later(0.01, forgotten.set)
        )
        await forgotten.wait()
        return [first, await own.size(one, 30)]

    assert asyncio.run(ask_now_and_later()) == [None, 8]


def test_an_order_is_checked_before_it_is_one() -> None:
    given = {
        "name": "mine",
        "on": ["pytorch"],
        "packages": ["einops"],
        "in": "isilon",
        "conda": False,
    }
    expected = Order("mine", ("pytorch",), ("einops",), folder="isilon")
    assert order_from(json.dumps(given).encode()) == expected
    by_conda = order_from(json.dumps(given | {"on": [], "conda": True}).encode())
    assert by_conda == Order("mine", (), ("einops",), folder="isilon", conda=True)
    for wrong in ({"in": 1}, {"in": None}, {"name": "../x"}, {"more": ""}, {"conda": True}):
        with pytest.raises(OwnEnvironmentError):
            order_from(json.dumps(given | wrong).encode())


def test_what_could_not_be_started_is_said_and_keeps_nothing_busy() -> None:
    async def begin_twice() -> None:
        work = OwnWork({})
        for _ in range(2):
            with pytest.raises(OwnEnvironmentError, match="could not be started: embedded null"):
                await work.remove("a\0b")
        assert work.task is None

    asyncio.run(begin_twice())


def test_what_has_ended_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: told.append(group))

    async def end() -> None:
        work = OwnWork({})
        await work.remove("none")
        assert work._hearing is not None
        await work._hearing
        await work.stop()

    asyncio.run(end())
    assert told == []
