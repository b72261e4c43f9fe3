"""The file servers' mounts on this node, and which of them do not answer.

A mount whose server is away stops whatever touches it, and nothing can end that. So each is asked
in a thread that may be left behind, and how a path leads to a mount is found without touching it.
``/proc/self/mountinfo`` (proc(5)) can always be read.

The standard library only: tests/deploy/test_nfs.py runs this beside a real NFS server.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from dsportal.session.periodic import repeat
from dsportal.session.threads import in_thread

log = logging.getLogger(__name__)

MOUNTINFO = Path("/proc/self/mountinfo")
SERVED = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "glusterfs"})
"""Kinds of file systems that have a server: they are asked about even if no setting names them."""

# In user space: sshfs and its like. Not `fuseblk`, which are disks.
_FUSE = re.compile(r"fuse(\.|$)")

PATIENCE_SECONDS = 2.0
"""How long a server may take before it counts as one that does not answer."""
_ROUND_SECONDS = 15.0
# While one does not answer; it is not asked again, only looked after.
_SOON_SECONDS = 3.0
_MOST_LINKS = 40
_ESCAPED = re.compile(r"\\([0-7]{3})")

T = TypeVar("T")
State = Literal["answers", "hangs", "fails", "missing"]


@dataclass(frozen=True)
class MountState:
    """State of a mount."""

    point: str
    state: State
    since: float
    """Since when it is so, as far as this session knows, in seconds since 1970."""
    reason: str = ""
    """The kernel's words where it fails."""

    def words(self) -> str:
        """Say it in a sentence."""
        # A node's time zone need not be the user's.
        clock = f"{datetime.fromtimestamp(self.since, UTC):%-d %b %H:%M} UTC"
        if self.state == "missing":
            return f"{self.point} is not mounted on this node"
        if self.state == "fails":
            return f"{self.point} has been failing since {clock} ({self.reason})"
        return f"{self.point} has not responded since {clock}"


class NoAnswer(Exception):
    """The file is on a mount that does not respond."""

    def __init__(self, trouble: MountState) -> None:
        """Say which, in words for the user."""
        words = f"{trouble.words()}. Your other files and your kernels are not affected."
        super().__init__(words)


def mounted(mountinfo: str) -> dict[str, str]:
    r"""Return the mount points and the kind of file system that is on top of each.

    >>> mounted("36 35 0:1 / /mnt/my\\040nas rw - nfs nas:/ifs rw,vers=3")
    {'/mnt/my nas': 'nfs'}
    """
    kinds = {}
    # By these two alone, which the kernel writes in another way where they are in a name: anybody
    # with FUSE can mount at a name with any other space or line's end.
    for line in filter(None, mountinfo.split("\n")):
        mine, _, file_system = line.partition(" - ")
        point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), mine.split(" ")[4])
        kinds[point] = file_system.split(" ")[0]
    return kinds


def mounted_now() -> dict[str, str]:
    """Return what this process sees mounted; the kernel asks no server for that."""
    # Not as text, in which a carriage return ends a line.
    return mounted(MOUNTINFO.read_bytes().decode("utf-8", errors="surrogateescape"))


def is_served(kind: str) -> bool:
    """Say whether a program or a machine other than the kernel has the files."""
    return kind in SERVED or bool(_FUSE.match(kind))


def first_on_the_way(path: str, points: Collection[str]) -> str | None:
    """Find the first of the mount points that a path leads through, link by link.

    Nothing on that mount is touched. ``None`` where the path leads through none of them.
    """
    place, links = "/", 0
    names = list(reversed(PurePosixPath(path).parts[1:]))
    while names and links < _MOST_LINKS:
        name = names.pop()
        step = os.path.dirname(place) if name == ".." else os.path.join(place, name)
        if step in points:
            return step
        try:
            target = os.readlink(step)
        except OSError:  # no link, or nothing is there
            place = step
            continue
        links += 1
        parts = PurePosixPath(target).parts
        if target.startswith("/"):
            place, parts = "/", parts[1:]
        names += reversed(parts)
    return None


class Mounts:
    """Asks the mounts, again and again; a mount is asked anew once its last answer is there."""

    def __init__(self, points: Sequence[str] = (), now: Callable[[], float] = time.time) -> None:
        """``points``: what must be mounted. What else has a server is asked about too."""
        self._points, self._now = tuple(points), now
        self._asked: dict[str, asyncio.Future[None]] = {}
        # Replaced, not changed: threads read it, too.
        self._known: dict[str, MountState] = {}
        self._mounted: set[str] = set()

    def troubled(self) -> list[MountState]:
        """Return the mounts that do not answer, fail or are missing."""
        return sorted(
            (known for known in self._known.values() if known.state != "answers"),
            key=lambda known: known.point,
        )

    def dead(self) -> frozenset[str]:
        """Return the mount points that must not be touched."""
        return frozenset(_dead_of(self._known))

    def trouble_on(self, path: str) -> MountState | None:
        """Return what is wrong with the first dead mount that a path leads through.

        For a thread: on the way there, another mount may have died since the last look.
        """
        dead = _dead_of(self._known)
        point = first_on_the_way(path, dead) if dead else None
        return dead[point] if point is not None else None

    async def in_time(self, work: Callable[[], T], *paths: str, repeat: bool = True) -> T:
        """Do what touches these paths; raises `NoAnswer` instead of waiting for a dead mount.

        ``repeat``: it changes nothing, and may be begun anew once more mounts are known to be dead.
        """
        await self._refuse_dead(paths)
        doing, dead = in_thread(work), self.dead()
        while not (await asyncio.wait({doing}, timeout=PATIENCE_SECONDS))[0]:
            await self.look()
            await self._refuse_dead(paths)
            if repeat and self.dead() != dead:
                doing, dead = in_thread(work), self.dead()
        return doing.result()

    async def _refuse_dead(self, paths: Sequence[str]) -> None:
        """Raise `NoAnswer` when one of them leads to a dead mount."""
        if paths and self.dead():
            for trouble in await self.in_time(lambda: [*map(self.trouble_on, paths)]):
                if trouble is not None:
                    raise NoAnswer(trouble)

    async def watch(self) -> None:
        """Look at all mounts again and again."""

        def pause() -> float:
            return _SOON_SECONDS if self.dead() else _ROUND_SECONDS

        await repeat(self.look, pause, log, "The mounts could not be looked at")

    async def look(self) -> None:
        """Ask all mounts at once; takes no longer than the patience with one of them."""
        kinds = mounted_now()
        served = {point for point, kind in kinds.items() if is_served(kind)}
        points = served | set(self._points)
        self._known = {point: known for point, known in self._known.items() if point in points}
        # What is mounted there next is another mount, and the one before may never answer.
        for gone in self._mounted - kinds.keys():
            self._asked.pop(gone, None)
        self._mounted = set(kinds)
        for point in points:
            if point not in self._asked:
                self._asked[point] = in_thread(partial(_ask, point))
        waiting = [self._asked[point] for point in points]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_SECONDS)
        for point in points:
            self._take(point, is_mounted=point in kinds)

    def _take(self, point: str, *, is_mounted: bool) -> None:
        asked = self._asked.get(point)
        if asked is None:  # another round was faster
            return
        state, reason = answer_of(asked, is_mounted=is_mounted)
        if state != "hangs":
            del self._asked[point]
        before = self._known.get(point)
        if before is None or before.state != state:
            known = MountState(point, state, self._now(), reason)
            self._known = {**self._known, point: known}
            if state != "answers":
                log.warning("%s: files there cannot be had", known.words())
            elif before is not None:
                log.info("%s answers again", point)


def _dead_of(known: Mapping[str, MountState]) -> dict[str, MountState]:
    return {point: one for point, one in known.items() if one.state in ("hangs", "fails")}


def answer_of(asked: "asyncio.Future[None]", *, is_mounted: bool) -> tuple[State, str]:
    """Say how a mount is that was asked, and why it fails if it does."""
    if not asked.done():
        return "hangs", ""
    error = asked.exception()
    if isinstance(error, FileNotFoundError) or (error is None and not is_mounted):
        return "missing", ""
    if error is None or isinstance(error, PermissionError):
        return "answers", ""
    return "fails", (error.strerror if isinstance(error, OSError) else None) or str(error)


def _ask(point: str) -> None:
    # Not stat(2), whose answer the kernel may know without the server.
    os.statvfs(point)
