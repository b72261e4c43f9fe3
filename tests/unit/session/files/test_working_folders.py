"""Where kernels are started: not where nothing answers, and what R reads there."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from jupyter_server.utils import ApiPath
from tornado.web import HTTPError

from dsportal.session.files.contents import SessionContents
from dsportal.session.files.mounts import Mounts, MountState
from dsportal.session.files.working_folders import PlacedKernels
from dsportal.session.kernels.manager import SessionKernels
from dsportal.session.kernels.module_kernels import spec
from dsportal.session_schema import Kernel


def placed(contents: SessionContents, monkeypatch: pytest.MonkeyPatch) -> PlacedKernels:
    monkeypatch.setattr(PlacedKernels, "_contents", contents)
    specs = SessionKernels(offered={"r": spec(Kernel("R", f"{contents.root_dir}/nas/R", "R"), "")})
    return PlacedKernels(  # type: ignore[no-untyped-call]
        root_dir=contents.root_dir, kernel_spec_manager=specs, default_kernel_name="r"
    )


@pytest.mark.parametrize("asked", [{}, {"kernel_name": "r"}])
def test_a_kernel_whose_program_is_on_a_dead_mount_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    point = str(tmp_path / "nas")
    contents = SessionContents(root_dir=str(tmp_path))
    contents.mounts = Mounts()
    contents.mounts._known = {point: MountState(point, "hangs", 0.0)}
    kernels = placed(contents, monkeypatch)
    with pytest.raises(HTTPError, match=f"{point} has not responded") as refused:
        asyncio.run(kernels._async_start_kernel(**asked))
    assert refused.value.status_code == 504
    specs: Any = kernels.kernel_spec_manager
    running = SimpleNamespace(kernel_spec=specs.get_kernel_spec("r"))
    monkeypatch.setattr(PlacedKernels, "get_kernel", lambda *_: running)
    with pytest.raises(HTTPError, match=f"{point} has not responded"):
        asyncio.run(kernels._async_restart_kernel("id"))


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
    kernels = placed(SessionContents(root_dir=str(tmp_path)), monkeypatch)
    asyncio.run(kernels._async_start_kernel(path=ApiPath("theirs"), env={"PATH": "/bin"}))
    assert given["env"].get("R_PROFILE_USER") == expected
    assert given["env"]["PATH"] == "/bin"
