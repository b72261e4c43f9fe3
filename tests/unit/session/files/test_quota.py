import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application

from dsportal.session.files.mounts import Mounts, MountState
from dsportal.session.files.quota import QuotaUnknown, Storage, StorageUse, use_from, with_quota
from dsportal.session.files.quota_routes import QuotaHandler

GIB = 1024**3
NAS = StorageUse("/mnt/isilon", "nfs4", 2 * GIB, 1 * GIB, 1 * GIB)
# quota(1) of quota-tools 4.06, with --raw-grace and --no-wrap.
HEAD = """Disk quotas for user user1 (uid 1001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
"""


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def df(folder: Path, kind: str = "nfs4") -> None:
    said = f"{2 * GIB} {GIB} {GIB} {kind} /mnt/isilon with blanks"
    program(folder, "df", f'echo df >>{folder}/calls; echo "{said}"')


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


def ask(storage: Storage, *paths: str) -> list[StorageUse]:
    async def asked() -> list[StorageUse]:
        return [await storage.use(path) for path in paths]

    return asyncio.run(asked())


def test_the_real_df_is_understood(tmp_path: Path) -> None:
    (use,) = ask(Storage(tmp_path, {}), "")
    status = tmp_path.stat()
    assert Path(use.mount).stat().st_dev == status.st_dev
    assert 0 < use.used + use.free <= use.size
    assert not use.is_quota


def test_a_storage_is_named_after_its_link() -> None:
    storage = Storage(Path("/home/user1"), {"isilon": "/mnt/isilon"})
    assert [storage.name_of(path) for path in ("", "work/isilon", "isilon", "isilon/data")] == [
        *("", ""),
        *("isilon", "isilon"),
    ]


def test_a_folder_whose_name_ends_with_a_blank_is_asked_for_as_it_is(tmp_path: Path) -> None:
    told: list[str] = []

    class Told(Storage):
        async def use(self, path: str) -> StorageUse:
            told.append(path)
            return NAS

    class Bare(QuotaHandler):
        async def prepare(self, *_: Any) -> None:  # type: ignore[override]
            self.current_user = "ann"

    async def asked() -> None:
        given = {"storage": Told(tmp_path, {})}
        server = HTTPServer(Application([("/q", Bare, given)], base_url="/", headers={}))
        socket, port = bind_unused_port()
        server.add_socket(socket)
        try:
            await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/q?path=data%20")
        finally:
            server.stop()

    asyncio.run(asked())
    assert told == ["data "]


def test_a_path_is_asked_for_once_in_a_while(tmp_path: Path) -> None:
    df(tmp_path, "ext4")
    moment = 0.0
    storage = Storage(tmp_path, {}, {"PATH": f"{tmp_path}:/usr/bin:/bin"}, now=lambda: moment)
    ask(storage, "", "", "work", "")
    assert calls(tmp_path) == 2
    moment = 31.0
    ask(storage, "")
    assert calls(tmp_path) == 3


def test_the_users_own_quota_takes_the_file_systems_place(tmp_path: Path) -> None:
    df(tmp_path)
    line = f"nas:/ifs  {GIB // 2048} 0 {GIB // 1024} 0 10 0 0 0"
    program(tmp_path, "quota", f'echo "$*" >{tmp_path}/asked; echo "{HEAD}{line}"')
    storage = Storage(tmp_path, {}, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    (use,) = ask(storage, "isilon")
    assert (use.size, use.used, use.is_quota) == (GIB, GIB // 2, True)
    assert "--filesystem-list /mnt/isilon with blanks" in (tmp_path / "asked").read_text()


def test_a_local_disk_is_not_asked_for_quotas(tmp_path: Path) -> None:
    df(tmp_path, "ext4")
    program(tmp_path, "quota", f"echo quota >>{tmp_path}/calls")
    storage = Storage(tmp_path, {}, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    ask(storage, "")
    assert calls(tmp_path) == 1


@pytest.mark.parametrize(
    ("line", "size", "used", "is_quota"),
    [
        ("nas:/ifs 524288 1048576 1572864 0 10 0 0 0", int(1.5 * GIB), GIB // 2, True),
        ("nas:/ifs 1572864* 1048576 0 1795276823 10* 5 0 0", GIB, int(1.5 * GIB), True),
        ("nas:/ifs 524288 0 0 0 10 0 0 0", 2 * GIB, GIB, False),
        ("none", 2 * GIB, GIB, False),
    ],
)
def test_a_limit_is_a_quota_only_where_there_is_one(
    line: str, size: int, used: int, is_quota: bool
) -> None:
    use = with_quota(NAS, f"{HEAD}     {line}\n")
    assert (use.size, use.used, use.is_quota) == (size, used, is_quota)
    assert use.free >= 0


@pytest.mark.parametrize("text", ["", "df: no such file", "0 0 0 autofs /net", "1 2 ext4 /"])
def test_without_a_size_nothing_is_told(text: str) -> None:
    with pytest.raises(QuotaUnknown):
        use_from(text)


def test_a_storage_that_hangs_holds_up_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsportal.session.files.quota._SECONDS", 0.2)
    # What ignores its end stands for a process that waits in the kernel.
    program(tmp_path, "df", "exec sleep 60")
    monkeypatch.setattr("asyncio.subprocess.Process.kill", lambda process: None)
    storage = Storage(tmp_path, {}, {"PATH": f"{tmp_path}:/usr/bin:/bin"}, now=lambda: 0.0)

    async def asked() -> None:
        for path in ("a", "b", "c"):
            with pytest.raises(QuotaUnknown):
                await storage.use(path)
        (first,) = storage._hanging
        first.terminate()
        await first.wait()
        with pytest.raises(QuotaUnknown):
            await storage.use("d")
        (second,) = storage._hanging
        assert second is not first
        second.terminate()
        await second.wait()

    asyncio.run(asked())


def test_storage_on_a_dead_mount_is_not_asked_and_not_looked_for_by_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point, mounts, readlink = str(tmp_path / "nas"), Mounts(), os.readlink
    mounts._known = {point: MountState(point, "hangs", 0.0)}

    def looked_at(place: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return readlink(place)

    monkeypatch.setattr(os, "readlink", looked_at)
    df(tmp_path)
    storage = Storage(tmp_path, {}, {"PATH": f"{tmp_path}:/usr/bin:/bin"}, mounts=mounts)
    with pytest.raises(QuotaUnknown, match=f"{point} has not responded"):
        ask(storage, "nas/data")
    assert not (tmp_path / "calls").exists()
