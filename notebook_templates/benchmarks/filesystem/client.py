#!/usr/bin/env python
"""What one client does when storage is measured; storage.py starts it on each node.

    python storage_client.py describe PLAN --into FOLDER    which engines work, and on what host
    python storage_client.py prepare PLAN --into FOLDER     write this client's files
    python storage_client.py measure PLAN --into FOLDER --load read --on /mnt/isilon1
    python storage_client.py remove PLAN --into FOLDER      remove all that it wrote

PLAN is `StoragePlan` as JSON. The answer is client-NUMBER.json in FOLDER, beside what fio wrote.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).resolve().parents[1])]

from filesystem import caches, fio, fs_cache
from filesystem.fio import FioError
from filesystem.own_folder import OwnFolder, OwnFolderError, open_own, remove_own
from measurement import machine
from measurement.interruption import Interrupted, stop_in_order

_SECONDS = 60
_SLOWEST_BYTES_PER_SECOND = 5e6
"""Storage that is slower than this is not waited for."""


@dataclass(frozen=True)
class StoragePlan:
    """What all clients know."""

    run: str
    """The name of the run's folder on each mount."""
    mounts: tuple[str, ...]
    processes: int
    """On each client, one for each of its GPUs."""
    files: int
    bytes: int
    """Of a process's files together."""
    drop: str
    """The program that drops caches."""
    how: Mapping[str, Mapping[str, Any]]
    """What `describe` found, by mount."""

    @property
    def text(self) -> str:
        """Write it for the command line."""
        return json.dumps(asdict(self))


class Client:
    """This one among all."""

    def __init__(self, plan: StoragePlan, into: Path) -> None:
        self.plan, self.into = plan, into
        self.number = int(os.environ.get("SLURM_PROCID", "0"))
        self.files = fio.Files(plan.files, plan.bytes)

    def own(self, mounts: Sequence[str]) -> list[OwnFolder]:
        """Open the run's folder on each of the mounts."""
        return [open_own(Path(mount), self.plan.run) for mount in mounts]

    def processes(self, folders: Sequence[OwnFolder]) -> list[fio.FioProcess]:
        """Give each process its mount: its number modulo the mounts, over all clients."""
        first = self.number * self.plan.processes
        found = []
        for number in range(first, first + self.plan.processes):
            folder = folders[number % len(folders)]
            how = self.plan.how[str(folder.mount)]
            found.append(fio.FioProcess(number, folder.path, how["engine"], how["direct"]))
        return found

    def describe(self) -> dict[str, Any]:
        """Say what this client is, and how each mount can be read."""
        how = {}
        for mount, folder in zip(self.plan.mounts, self.own(self.plan.mounts), strict=True):
            # By these the clients see which of them share the mount.
            Path(folder.path, f"client-{self.number}").touch()
            engine, is_direct = self.engine(folder)
            kept = fs_cache.of_folders([Path(mount)])
            how[mount] = {"engine": engine, "direct": is_direct, "fs_cache": kept}
        may_drop = caches.may_drop(self.plan.drop)
        memory = caches.memory_bytes()
        version = subprocess.run([fio.FIO, "--version"], capture_output=True, text=True, timeout=10)
        return {
            "host": machine.host(),
            "fio": version.stdout.strip(),
            "how": how,
            "may_drop_caches": may_drop,
            "memory_bytes": memory,
        }

    def engine(self, folder: OwnFolder) -> tuple[str, bool]:
        """Return the first engine that works there, past the cache before through it."""
        said = ""
        for is_direct in (True, False):
            for engine in fio.ENGINES:
                report = str(self.into / f"trial-{self.number}.json")
                try:
                    self.fio(fio.trial(engine, is_direct, folder.path, report), [folder], _SECONDS)
                except FioError as error:
                    said = str(error)
                else:
                    return engine, is_direct
        raise OwnFolderError(f"fio cannot write to {folder.mount}: {said}")

    def prepare(self) -> dict[str, Any]:
        """Write this client's files on each mount; those that are there stay as they are."""
        size = self.plan.processes * self.plan.bytes
        for mount in self.plan.mounts:
            (folder,) = self.own([mount])
            sharing = sum(name.startswith("client-") for name in os.listdir(folder.descriptor))
            folder.need(max(1, sharing) * size)
            report = str(self.into / f"layout-{self.number}.json")
            seconds = _SECONDS + size / _SLOWEST_BYTES_PER_SECOND
            self.fio(fio.layout(self.files, self.processes([folder]), report), [folder], seconds)
            self.written(folder)
        return {}

    def written(self, folder: OwnFolder) -> None:
        """Wait until this client's files are on the storage: only then a cache can let them go."""
        for process in self.processes([folder]):
            for number in range(self.plan.files):
                descriptor = folder.file(f"process{process.number}.{number}")
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def measure(self, load: str, pace: fio.FioLoad, on: Sequence[str]) -> dict[str, Any]:
        """Apply a load to the files on these mounts."""
        folders = self.own(on)
        processes = self.processes(folders)
        dropped = caches.drop(self.plan.drop)
        report = self.into / f"fio-{self.number}.json"
        seconds = 10 * _SECONDS + pace.seconds + pace.ramp_seconds
        what = fio.LOADS[load]
        self.fio(fio.command(what, self.files, pace, processes, str(report)), folders, seconds)
        found = fio.figures(fio.read_report(report.read_text()), what)
        return {"caches_dropped": dropped, "processes": found}

    def remove(self) -> dict[str, Any]:
        """Remove all that is written."""
        for mount in self.plan.mounts:
            remove_own(Path(mount), self.plan.run)
        return {}

    def fio(self, argv: Sequence[str], folders: Sequence[OwnFolder], seconds: float) -> None:
        """Run fio, and end it when this is ended. Raises `FioError`."""
        shown = [folder.descriptor for folder in folders]
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=shown,
                # Else it writes a file of its state there.
                cwd=self.into,
            )
        except OSError as error:
            raise FioError(f"fio cannot be started here: {error}; install it") from error
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise FioError(f"fio did not end within {seconds:.0f} s") from error
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            raise FioError(f"fio ended with {process.returncode}: {said[-2000:].strip()}")


def answer(client: Client, asked: argparse.Namespace) -> dict[str, Any]:
    """Do what is asked."""
    if asked.work == "describe":
        return client.describe()
    if asked.work == "prepare":
        return client.prepare()
    if asked.work == "remove":
        return client.remove()
    pace = fio.FioLoad(asked.depth, asked.rate_iops, asked.seconds, asked.ramp)
    return client.measure(asked.load, pace, asked.on.split(","))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("work", choices=("describe", "prepare", "measure", "remove"))
    add("plan")
    add("--into", type=Path, required=True)
    add("--load", choices=fio.LOADS)
    add("--on", help="mounts, separated by commas")
    add("--depth", type=int)
    add("--rate-iops", type=int)
    add("--seconds", type=float)
    add("--ramp", type=float)
    return parser.parse_args()


def main() -> None:
    """Answer; what cannot be done is said in a line."""
    asked = arguments()
    plan = StoragePlan(**json.loads(asked.plan))
    client = Client(plan, asked.into)
    stop_in_order()
    try:
        said = answer(client, asked)
    except Interrupted as error:
        client.remove()
        sys.exit(str(error))
    except (FioError, OwnFolderError, OSError) as error:
        sys.exit(f"{machine.host()['name']}: {error}")
    building = asked.into / f".client-{client.number}.json"
    building.write_text(json.dumps(said))
    building.replace(asked.into / f"client-{client.number}.json")


if __name__ == "__main__":
    main()
