#!/usr/bin/env python
r"""Try the NAS's tiers: what nobody reads goes to the cold tier, and what is read again comes back.

    python tiering.py --results run1 --mount /mnt/isilon/test --path /ifs/data/datascience/test \
        --nas-api https://nas.example.org:8080 --hot hot --cold cold

For the NAS's administrator, on a host where it is mounted. Nine steps: the NAS is asked whether it
can tier at all, files are written, placed and read, then made to look unread for long, moved and
read, and moved back and read. After each move the tiers' use says whether the files went where they
should. It writes only into a folder of its own, and removes it at the end.
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from filesystem import caches, fio, nas_sampler, own_folder, tiers
from filesystem.client import Client, StoragePlan
from filesystem.nas_sampler import NasSampler
from filesystem.onefs import Onefs, OnefsError
from filesystem.own_folder import OwnFolder, OwnFolderError
from filesystem.tiers import Tiers
from measurement import machine
from measurement.choices import SettingError, whole
from measurement.interruption import Interrupted, stop_in_order
from measurement.result import Result, ResultError

# record.py, which says why a program ended, is among the templates for several nodes.
sys.path += [str(Path(__file__).resolve().parent.parent / "distributed")]
import record

DAY_SECONDS = 24 * 3600
# Only files below a path, not all of the NAS (OneFS's CLI reference, "isi job types").
JOB = "SmartPoolsTree"


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0] if __doc__ else "",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--results", required=True, help="a new folder for the results")
    add("--mount", required=True, help="a folder on the NAS that you may write to, as it is here")
    add("--path", required=True, help="the same folder as the NAS calls it: /ifs/...")
    add("--nas-api", required=True, help=nas_sampler.HELP)
    add("--hot", default="hot", help="the tier of what is in use")
    add("--cold", default="cold", help="the tier of what is not")
    add("--days", type=int, default=30, help="days without a read before a file goes cold")
    add("--gib", type=float, default=8, help="of files; more than other users write meanwhile")
    add("--files", type=int, default=30, help="number of files that they are divided into")
    add("--depth", type=int, default=32, help="requests at once")
    add("--seconds", type=float, default=60, help="how long each reading is measured")
    add("--ramp", type=float, default=5, help="seconds before that, which do not count")
    add("--minutes", type=float, default=240, help="a move that takes longer has failed")
    add("--poll-seconds", type=float, default=5, help="between two questions after a move")
    add("--caches-program", default=caches.DROP, help="what drops this host's caches, by sudo")
    return parser.parse_args()


class TieringTest:
    """The steps, each with what it found."""

    def __init__(self, s: argparse.Namespace, nas: Onefs, client: Client) -> None:
        """Take the NAS, and who writes and reads."""
        self._s, self._nas, self._client = s, nas, client
        self._before = Tiers(0, 0)

    @property
    def _folder(self) -> OwnFolder:
        (folder,) = self._client.own(self._client.plan.mounts)
        return folder

    def look(self) -> dict[str, Any]:
        """Ask whether the NAS can tier. Raises `SettingError` where it cannot."""
        if not self._nas.keeps_access_times():
            raise SettingError(
                "the NAS does not keep access times, so it cannot know what is read: turn them on, "
                "as the playbook nas.yml does"
            )
        self._before = self._tiers()
        found = self._client.describe()
        self._client.plan = replace(self._client.plan, how=found["how"])
        return tiers.described(self._before)

    def write(self) -> dict[str, Any]:
        """Write the files."""
        began = time.monotonic()
        self._client.prepare()
        size = self._client.plan.bytes
        return {"mb_per_second": size / fio.MB / (time.monotonic() - began)}

    def age(self) -> dict[str, Any]:
        """Let the files look as if nobody had read them for longer than the rule's days."""
        before = time.time() - (self._s.days + 1) * DAY_SECONDS
        folder = self._folder
        for name in os.listdir(folder.descriptor):
            descriptor = folder.file(name)
            try:
                os.utime(descriptor, (before, os.fstat(descriptor).st_mtime))
            finally:
                os.close(descriptor)
        return {"unread_days": self._s.days + 1}

    def move(self) -> dict[str, Any]:
        """Let the NAS apply its rules to the files, and say how much each tier has gained."""
        began = time.monotonic()
        plan = self._client.plan
        path = f"{self._s.path.rstrip('/')}/{own_folder.name()}/{plan.run}"
        job = self._nas.start(JOB, [path])
        self._nas.wait_for(job, self._s.minutes * 60, self._s.poll_seconds)
        return {
            "seconds": time.monotonic() - began,
            **tiers.gained(self._before, self._tiers(), plan.bytes),
        }

    def read(self) -> dict[str, Any]:
        """Read the files as fast as it goes, past this host's cache where that can be."""
        pace = fio.FioLoad(self._s.depth, 0, self._s.seconds, self._s.ramp)
        found = self._client.measure("read", pace, self._client.plan.mounts)
        reached = fio.together(found["processes"])
        return {**reached, "caches_dropped": found["caches_dropped"]}

    def steps(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return all of them by name, in their order."""
        return {
            "1 the NAS can tier": self.look,
            "2 write": self.write,
            "3 place": self.move,
            "4 read hot": self.read,
            "5 age": self.age,
            "6 move to cold": self.move,
            "7 read cold": self.read,
            "8 move back": self.move,
            "9 read hot again": self.read,
        }

    def _tiers(self) -> Tiers:
        usage = self._nas.usage()
        for name in (self._s.hot, self._s.cold):
            if name not in usage:
                known = ", ".join(sorted(usage))
                raise SettingError(f"the NAS has no tier {name!r}; it has {known}")
        return Tiers(usage[self._s.hot].used_bytes, usage[self._s.cold].used_bytes)


def main(s: argparse.Namespace) -> None:
    """Try the tiers: the story from top to bottom."""
    results = Path(s.results).expanduser().absolute()
    if (results / "progress.jsonl").exists():
        raise ResultError(f"{results} holds a test: its files are gone, so use another folder")
    nas = Onefs(s.nas_api)
    size = round(s.gib * fio.GIB)
    mark = hashlib.sha256(str(results).encode()).hexdigest()[:12]
    mount = str(Path(s.mount).expanduser().absolute())
    files = whole("files", s.files)
    plan = StoragePlan(f"run-{mark}", (mount,), 1, files, size, s.caches_program, {})
    results.mkdir(parents=True, exist_ok=True)
    client = Client(plan, results)
    test = TieringTest(s, nas, client)
    todo = test.steps()
    chosen = {name: value for name, value in vars(s).items() if name != "results"}
    result = Result(results, "tiering", chosen, len(todo))
    stop_in_order()
    sampler = NasSampler(nas, results)
    try:
        with sampler:
            rows = {name: result.part(name, step) for name, step in todo.items()}
    finally:
        client.remove()
    figures = tiers.judged(rows)
    result.finish([machine.host()], machine.versions(), figures, None, sampler.samples())
    print(tiers.markdown(rows, s.hot, s.cold), figures["verdict"], sep="\n\n", flush=True)


if __name__ == "__main__":
    plain = (SettingError, ResultError, OwnFolderError, OnefsError, fio.FioError, Interrupted)
    record.run(main, settings(), *plain)
