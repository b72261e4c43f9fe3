"""Print which environments this machine uses, as JSON: uses.py GIVEN.

GIVEN is JSON, too. ``folder``: where environments are. ``settings``: a folder with one for each
instance, which has a portal.toml. ``places``: files and folders in which deployments name them
besides. ``homes``: the folder of users' homes. ``days``: how long a job may run after which nothing
new is started from an environment that no file names any more.

``named``: an environment and a file that names it. ``used``: one and what uses it: a process, a
user's own environment, or another one that is built on it. ``obstacles``: why none may be removed,
such as a job that may have been started from any. ``unseen``: how many folders, such as homes,
root may not look into.
"""

import glob
import json
import os
import re
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LARGEST = 1 << 20
SECONDS_PER_DAY = 86400
# What session.environments_folders of portal.toml is unless it is set.
OWN_FOLDERS = {"home": "~/environments"}


class Environments:
    """Those below one folder: each is a folder NAME-HASH."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        places = {folder, os.path.realpath(folder)}
        start = b"|".join(re.escape(os.fsencode(place)) for place in sorted(places))
        name = rb"([A-Za-z0-9][A-Za-z0-9-]*-[0-9a-f]{12})"
        self._pattern = re.compile(rb"(?:" + start + rb")/" + name + rb"(?![A-Za-z0-9_-])")

    def named_in(self, content: bytes) -> set[str]:
        """Find the names of those whose paths are in a text."""
        return {found.decode() for found in self._pattern.findall(content)}

    def beneath(self, name: str) -> set[str]:
        """Return those whose packages one has besides its own."""
        links = glob.glob(f"{glob.escape(self._folder)}/{name}/lib/python3*/site-packages/*.pth")
        return {found for link in links for found in self.named_in(content_of(link))} - {name}


def content_of(path: str) -> bytes:
    """Read a file, which may be a user's, and so anything; of a link, where it leads."""
    with suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(os.readlink(path))
        if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST:
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(number, "rb") as file:
                return file.read(LARGEST)
    return b""


def files_in(places: Iterable[str]) -> Iterator[str]:
    """Find all files and links below some folders."""
    for place in places:
        for folder, folders, files in os.walk(place):
            yield from (f"{folder}/{name}" for name in (*folders, *files))


def opened_by(process: Path) -> bytes:
    """Return all that a process has open, has mapped, was started with or has in its variables."""
    parts = [(process / name).read_bytes() for name in ("cmdline", "environ", "maps")]
    for link in (*(process / name for name in ("exe", "cwd", "root")), *(process / "fd").iterdir()):
        # A thread of the kernel has no program; a file may be closed at any time.
        with suppress(FileNotFoundError):
            parts.append(os.fsencode(os.readlink(link)))
    return b"\n".join(parts)


def by_processes(environments: Environments) -> tuple[dict[str, str], list[str]]:
    """Return what processes use, and which processes could not be looked at."""
    uses: dict[str, str] = {}
    obstacles = []
    for process in Path("/proc").iterdir():
        # The machine's first process comes from no environment, and may have more rights than root.
        if not process.name.isdigit() or int(process.name) in (1, os.getpid()):
            continue
        try:
            command = (process / "comm").read_text(errors="replace").strip()
            names = environments.named_in(opened_by(process))
        except PermissionError:
            obstacles.append(f"process {process.name} may not be looked at")
        except (FileNotFoundError, ProcessLookupError):
            continue
        else:
            uses |= dict.fromkeys(names, f"process {process.name} ({command})")
    return uses, obstacles


def by_jobs(portal: Mapping[str, Any], until: float) -> list[str]:
    """Say which jobs may use an environment that no file named any more at a time.

    A job that has been requeued counts as submitted then, whatever it was started from before.
    """
    slurm = portal.get("slurm", {})
    conf = slurm.get("config_file", "/etc/slurm/slurm.conf")
    squeue = f"{slurm.get('bin_dir', '/usr/bin')}/squeue"
    try:
        done = subprocess.run(
            [squeue, "--all", "--noheader", "--Format=JobID:20,SubmitTime:20,RestartCnt:20"],
            env={"SLURM_CONF": conf, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        return [f"the Slurm of {conf} does not say which jobs there are: {said}".strip()]
    jobs = [line.split() for line in done.stdout.splitlines() if line.strip()]
    old = [job for job, submitted, restarts in jobs if int(submitted) < until or restarts != "0"]
    if not old:
        return []
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(until))
    return [
        f"jobs of {conf} may use any: {', '.join(old[:5])}{', ...' if len(old) > 5 else ''} "
        f"({len(old)} submitted before {day}, or requeued)"
    ]


def by_users(
    environments: Environments, portal: Mapping[str, Any], homes: str
) -> tuple[dict[str, str], int]:
    """Return what users' own environments are built on, and how many folders cannot be read."""
    uses: dict[str, str] = {}
    unseen: set[str] = set()
    for folder in portal.get("session", {}).get("environments_folders", OWN_FOLDERS).values():
        # An empty text leaves a folder out.
        if not folder:
            continue
        above, of_user, below = (
            (f"{homes}/", "~", folder[1:]) if folder.startswith("~") else folder.partition("{user}")
        )
        users = glob.escape(above) + "*" * bool(of_user)
        pattern = users + glob.escape(below).replace("{user}", "*")
        for record in glob.glob(f"{pattern}/*/portal-environment.json"):
            names = environments.named_in(content_of(record))
            uses |= dict.fromkeys(names, f"{os.path.dirname(record)} is built on it")
        looked_into = [os.path.dirname(above) or "/", *glob.glob(users)]
        unseen |= {place for place in looked_into if is_hidden(place)}
    return uses, len(unseen)


def is_hidden(place: str) -> bool:
    """Say whether a folder is there that we may not look into."""
    return os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK)


def by_files(environments: Environments, places: Iterable[str]) -> dict[str, set[str]]:
    """Return each file below some folders that names environments, and which."""
    named = {file: environments.named_in(content_of(file)) for file in files_in(places)}
    return {file: names for file, names in named.items() if names}


def changed_at(portal: Path, name: str, files: Iterable[str]) -> float:
    """Return when an instance last named other environments, or later, of the files that do."""
    its = [file for file in files if portal.parent in Path(file).parents or name in file.split("/")]
    return max((os.lstat(file).st_mtime for file in its), default=0.0)


def by_others(environments: Environments, names: Iterable[str]) -> dict[str, str]:
    """Return what environments are built on, and what these are built on, and so on."""
    uses: dict[str, str] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        beneath = environments.beneath(name) - uses.keys()
        uses |= dict.fromkeys(beneath, f"{name} is built on it")
        todo += beneath
    return uses


def look(given: Mapping[str, Any]) -> dict[str, object]:
    """Return what is printed."""
    environments = Environments(given["folder"])
    portals = sorted(Path(given["settings"]).glob("*/portal.toml"))
    naming = by_files(environments, [*given["places"], *(str(file.parent) for file in portals)])
    used, obstacles = by_processes(environments)
    unseen = 0
    for file in portals:
        portal = tomllib.loads(file.read_text(encoding="utf-8"))
        changed = changed_at(file, portal["hub"]["name"], naming)
        obstacles += by_jobs(portal, changed + given["days"] * SECONDS_PER_DAY)
        of_users, homes = by_users(environments, portal, given["homes"])
        used |= of_users
        unseen = max(unseen, homes)
    named = {name: file for file, names in naming.items() for name in names}
    used |= by_others(environments, {*named, *used})
    return {"named": named, "used": used, "obstacles": obstacles, "unseen": unseen}


def main() -> None:
    """Look, and print."""
    json.dump(look(json.loads(sys.argv[1])), sys.stdout)


if __name__ == "__main__":
    main()
