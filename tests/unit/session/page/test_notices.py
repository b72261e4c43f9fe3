"""What the landing screen says of mounts. Hanging ones: test_hanging_mount."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from dsportal.session.files.mounts import Mounts, MountState
from dsportal.session.files.quota import Storage
from dsportal.session.page.notices import Notices


def test_dead_mounts_are_named_by_their_links_and_none_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {name: str(tmp_path / name) for name in ("archive", "data")}
    folders = {name: f"{point}/mine" for name, point in points.items()}
    mounts = Mounts()
    mounts._known = {point: MountState(point, "hangs", 0.0) for point in points.values()}
    readlink = os.readlink

    def untouched(place: str) -> str:
        # A real one would never return.
        assert not place.startswith(tuple(points.values()))
        assert threading.current_thread() is not threading.main_thread()
        return readlink(place)

    monkeypatch.setattr(os, "readlink", untouched)
    home = tmp_path / "home"
    notices = Notices(mounts, Storage(home, folders, mounts=mounts), home, folders)
    told = asyncio.run(notices.mounts())
    assert [(one["name"], one["point"]) for one in told] == list(points.items())


def test_a_dead_home_is_named_as_such(tmp_path: Path) -> None:
    mounts, home = Mounts(), tmp_path / "home"
    mounts._known = {str(home): MountState(str(home), "hangs", 0.0)}
    (told,) = asyncio.run(Notices(mounts, Storage(home, {}), home, {}).mounts())
    assert told["name"] == "~"
