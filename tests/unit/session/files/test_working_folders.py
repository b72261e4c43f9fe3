"""What a kernel of R reads in the folder that it is started in."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from jupyter_server.utils import ApiPath

from dsportal.session.files.contents import SessionContents
from dsportal.session.files.working_folders import PlacedKernels


@pytest.mark.root
@pytest.mark.parametrize(("owner", "expected"), [(0, None), (65534, "~/.Rprofile")])
def test_another_users_folder_tells_r_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, expected: str | None
) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", owner, -1)
    given: dict[str, Any] = {}

    async def started(_: object, **more: Any) -> str:
        given.update(more)
        return "id"

    monkeypatch.setattr(AsyncMappingKernelManager, "_async_start_kernel", started)
    monkeypatch.delenv("R_PROFILE_USER", raising=False)
    kernels = PlacedKernels(root_dir=str(tmp_path))  # type: ignore[no-untyped-call]
    place = property(lambda _: SessionContents(root_dir=str(tmp_path)))
    monkeypatch.setattr(PlacedKernels, "_contents", place)
    asyncio.run(kernels._async_start_kernel(path=ApiPath("theirs"), env={"PATH": "/bin"}))
    assert given["env"].get("R_PROFILE_USER") == expected
    assert given["env"]["PATH"] == "/bin"
