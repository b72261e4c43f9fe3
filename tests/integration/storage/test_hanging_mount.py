"""A file server that hangs costs a session nothing but that server's files."""

import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hanging import Server, served
from tests.instance import PREFIX, USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

USER = USERS[1]
# For requests that must be answered however the mount is: less than any of them would hang.
PATIENT_SECONDS = 30


@pytest.fixture
def nas(portal: Instance, tmp_path: Path) -> Iterator[Server]:
    """The test instance's NAS as a mount that can hang."""
    tmp_path.chmod(0o755)
    tmp_path.joinpath("picture.txt").write_text("a picture")
    with served(tmp_path, Path(portal.settings["session"]["folders"]["isilon"])) as server:
        yield server


@pytest.fixture
def user(visit: Callable[[str], Visitor]) -> Visitor:
    return visit(USER)


def listed(user: Visitor, path: str = "") -> dict[str, dict[str, Any]]:
    """Return what the file browser shows of a folder."""
    answer = user.session("GET", f"/api/contents/{path}")
    answer.raise_for_status()
    return {entry["name"]: entry for entry in answer.json()["content"]}


def notices(user: Visitor) -> list[tuple[str, str, str]]:
    """Return what is said of mounts: name, mount point, state."""
    told = user.session("GET", "/portal/notices").json()["mounts"]
    return [(trouble["name"], trouble["point"], trouble["state"]) for trouble in told]


def point(portal: Instance) -> str:
    return str(portal.settings["session"]["folders"]["isilon"])


def test_a_session_starts_and_works_beside_a_hanging_nas(
    portal: Instance, nas: Server, user: Visitor
) -> None:
    nas.freeze()
    user.start_and_wait(gpus=0)
    until(
        lambda: notices(user) == [("isilon", point(portal), "hangs")],
        seconds=PATIENT_SECONDS,
        what="the session says which mount does not answer",
    )
    home = listed(user)
    assert home["templates"]["type"] == "directory"
    isilon = home["isilon"]
    assert (isilon["type"], isilon["writable"]) == ("directory", False)
    assert user.run("print(6 * 7)").strip() == "42"

    for method, path, body in (
        ("GET", "/api/contents/isilon", None),
        ("GET", "/files/isilon/picture.txt", None),
        ("PUT", "/api/contents/isilon/new.txt", {"type": "file", "format": "text", "content": ""}),
        ("POST", "/api/terminals", {"cwd": "isilon"}),
        ("POST", "/api/kernels", {"name": "python3", "path": "isilon"}),
    ):
        answer = user.session(method, path, json=body)
        assert answer.status_code == 504, (method, path, answer.text)
        assert f"{point(portal)} has not responded" in answer.text
    assert user.session("GET", "/portal/quota?path=isilon").status_code == 404

    told = user.session("GET", "/portal/environments").json()
    troubled = [(folder["name"], bool(folder["trouble"])) for folder in told["folders"]]
    assert troubled == [("home", False), ("isilon", True)]
    listing = f"portal-{PREFIX} env list; echo do''ne"
    screen = user.type_in_terminal(listing, "done", seconds=PATIENT_SECONDS)
    assert f"isilon is left out: {point(portal)} has not responded" in screen
    assert "\nhome: " in screen

    nas.thaw()
    until(lambda: notices(user) == [], seconds=PATIENT_SECONDS, what="the mount is back by itself")
    assert list(listed(user, "isilon")) == ["picture.txt"]
    assert user.session("GET", "/files/isilon/picture.txt").text == "a picture"


def test_a_nas_that_begins_to_hang_holds_up_nobody(
    portal: Instance, nas: Server, user: Visitor
) -> None:
    user.start_and_wait(gpus=0)
    own = Path(pwd.getpwnam(USER).pw_dir, "own-link")
    portal.slurm("/bin/ln", "-sfn", f"{point(portal)}/picture.txt", str(own), user=USER)
    try:
        assert list(listed(user, "isilon")) == ["picture.txt"]
        assert listed(user)["own-link"]["type"] == "file"
        nas.freeze()
        # Nobody knows of it yet: this very listing finds out.
        home = listed(user)
        assert {home["own-link"]["type"], home["isilon"]["type"]} == {"directory"}
        assert httpx.codes.is_success(user.session("GET", "/api/status").status_code)
        # The job ends although threads wait in the kernel.
        user.stop()
        until(lambda: portal.jobs(user=USER) == [], seconds=60, what="the job has ended")
    finally:
        nas.thaw()
        portal.slurm("/bin/rm", "-f", str(own), user=USER)


def test_a_download_that_is_under_way_holds_up_nobody(
    portal: Instance, nas: Server, user: Visitor, tmp_path: Path
) -> None:
    content = os.urandom(300_000)
    (tmp_path / "some.bin").write_bytes(content)
    (tmp_path / "large.bin").touch()
    os.truncate(tmp_path / "large.bin", 2**30)
    user.start_and_wait(gpus=0)
    assert user.session("GET", "/files/isilon/some.bin").content == content
    part = user.http.get(
        f"/user/{USER}/files/isilon/some.bin", headers={"Range": "bytes=100000-199999"}
    )
    assert (part.status_code, part.content) == (206, content[100_000:200_000])
    try:
        with user.http.stream("GET", f"/user/{USER}/files/isilon/large.bin") as download:
            assert next(download.iter_raw(1000))
            nas.freeze()
            assert httpx.codes.is_success(user.session("GET", "/api/status").status_code)
            assert user.run("print(6 * 7)").strip() == "42"
    finally:
        nas.thaw()
