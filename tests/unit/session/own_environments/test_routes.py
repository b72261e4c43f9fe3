import asyncio
import dataclasses
from pathlib import Path
from typing import Any

from dsportal.session.files.mounts import Mounts
from dsportal.session.files.quota import Storage
from dsportal.session.own_environments.kernels import OwnKernels
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    EnvironmentRecord,
    OwnEnvironment,
)
from dsportal.session.own_environments.routes import overview
from dsportal.session.own_environments.work import OwnWork, Task


class EndingKernels(OwnKernels):
    """Those of a folder whose one environment is finished as soon as it was looked at."""

    work: OwnWork

    async def look(self) -> tuple[OwnEnvironment, ...]:
        """Look, and then the work is done."""
        found = await super().look()
        assert self.folder is not None
        (self.folder.place("mine") / "bin/python").touch()
        self.folder.write(EnvironmentRecord("mine"))
        assert self.work.task is not None
        self.work.task.state = "done"
        return found


def test_the_list_is_never_older_than_what_is_said_of_the_work(tmp_path: Path) -> None:
    folder = EnvironmentFolder(tmp_path)
    folder.begin("mine")
    (tmp_path / "mine/bin").mkdir()
    work = OwnWork({})
    work.task = Task("create", "mine")
    kernels = EndingKernels(folder, Mounts(), {"HOME": str(tmp_path)})
    kernels.work = work

    async def ask_until_done() -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        while not told or told[-1]["task"]["state"] == "running":
            storage = Storage(tmp_path, {})
            told.append(await overview(str(tmp_path), work, kernels, storage, {}))
        return told

    first, last = asyncio.run(ask_until_done())
    assert first["task"] == dataclasses.asdict(Task("create", "mine"))
    assert (first["environments"][0]["on"], first["environments"][0]["trouble"]) == ("", "")
    assert last["environments"][0]["on"] == EnvironmentRecord("mine").on_words
