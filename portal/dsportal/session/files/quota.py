"""Quota and free space of the user's storage.

``quota`` (where it is installed, and the server answers it) knows the user's own limit. Otherwise
it is the size that the server gives the file system, by ``df``: of an export with a directory
quota, OneFS gives the quota (SmartQuotas with ``container``), and nothing in it says so. Both are
processes of their own, as a server that hangs would hold up a thread for ever.
"""

import asyncio
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from dsportal.session.files.mounts import Mounts
from jupyterhub_gpu_slurm.shared_answer import SharedAnswers

log = logging.getLogger(__name__)

_SECONDS = 5.0
_FRESH_SECONDS = 30.0
_MOST_KNOWN = 100
_KIB = 1024
_FIELDS = "--output=size,used,avail,fstype,target"
_DF = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(/.*)")
# quota(1) with --raw-grace: file system, used (* when over), soft, hard, grace, and files.
_QUOTA = re.compile(r"\s*\S+\s+(\d+)\*?\s+(\d+)\s+(\d+)\s+\d+(?:\s+\d+\*?){4}\s*")


class QuotaUnknown(Exception):
    """The storage does not answer, or is not there."""


@dataclass(frozen=True)
class StorageUse:
    """Size, use and free space of a storage, in bytes."""

    mount: str
    kind: str
    """The file system's type: ``nfs``, ``nfs4``, ``ext4``, ..."""
    size: int
    used: int
    free: int
    """For this user: some of it may be set aside for root."""
    is_quota: bool = False
    """Whether these are the user's own limit and use."""


class Storage:
    """Asks about file systems, each at most once in a while."""

    def __init__(
        self,
        home: Path,
        folders: Mapping[str, str],
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
        mounts: Mounts | None = None,
    ) -> None:
        """``folders``: links in the home, and where they lead."""
        self._mounts = mounts or Mounts()
        self._home, self._folders, self._now = home, folders, now
        self._path = environment.get("PATH", "")
        self._answers = SharedAnswers(self._ask, _FRESH_SECONDS, most=_MOST_KNOWN, now=now)
        self._hanging: list[asyncio.subprocess.Process] = []
        self._asking = asyncio.Lock()

    def name_of(self, path: str) -> str:
        """Name the storage that a path of contents is on: a link's name, empty for the home."""
        first = (PurePosixPath(path).parts or ("",))[0]
        return first if first in self._folders else ""

    async def use(self, path: str) -> StorageUse:
        """Return how full it is; raises `QuotaUnknown`."""
        look = partial(self._mounts.trouble_on, str(self._home / path))
        trouble = await self._mounts.in_time(look)
        if trouble is not None:
            raise QuotaUnknown(trouble.words())
        answer = await self._answers.get(path)
        if isinstance(answer, QuotaUnknown):
            raise answer
        return answer

    async def _ask(self, path: str) -> StorageUse | QuotaUnknown:
        """Ask about one storage after the other."""
        async with self._asking:
            return await self._look(str(self._home / path))

    async def _look(self, path: str) -> StorageUse | QuotaUnknown:
        try:
            use = use_from(await self._run("df", "--block-size=1", _FIELDS, "--", path))
        except QuotaUnknown as error:
            return error
        # Its own network question; a local disk of a node has no quota that matters.
        if use.kind.startswith("nfs") and shutil.which("quota", path=self._path):
            try:
                # Not --filesystem=PATH, with which quota-tools 4.06 tells of all others too.
                argv = ["--no-wrap", "--raw-grace", "--filesystem-list", use.mount]
                return with_quota(use, await self._run("quota", *argv))
            except QuotaUnknown as error:
                log.info("quota does not tell of %s: %s", use.mount, error)
        return use

    async def _run(self, name: str, *arguments: str) -> str:
        program = shutil.which(name, path=self._path)
        self._hanging = [process for process in self._hanging if process.returncode is None]
        if program is None or self._hanging:
            # One that waits for a server in the kernel cannot be ended; one is enough.
            raise QuotaUnknown(f"{name} is missing, or another still waits for the storage")
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"LC_ALL": "C", "PATH": self._path},
        )
        try:
            async with asyncio.timeout(_SECONDS):
                out, _ = await process.communicate()
        except TimeoutError as error:
            raise QuotaUnknown(f"{name} did not answer in {_SECONDS:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                self._hanging.append(process)
        return out.decode(errors="replace")


def use_from(text: str) -> StorageUse:
    r"""Read what ``df`` says of one path; raises `QuotaUnknown`.

    >>> use_from("1B-blocks Used Avail Type Mounted on\n 100 60 40 nfs4 /mnt/isilon").free
    40
    """
    for line in text.splitlines():
        match = _DF.fullmatch(line)
        # Some file systems have no size: autofs before it mounts, FUSE.
        if match and int(match[1]) > 0:
            return StorageUse(match[5], match[4], int(match[1]), int(match[2]), int(match[3]))
    raise QuotaUnknown("df names no size")


def with_quota(use: StorageUse, text: str) -> StorageUse:
    """Put the user's own limit in place of the file system's size, where ``quota`` names one."""
    for line in text.splitlines():
        match = _QUOTA.fullmatch(line)
        if match is None:
            continue
        used, soft, hard = (int(number) * _KIB for number in match.groups())
        limit = hard or soft
        if limit:
            free = min(use.free, max(0, limit - used))
            return replace(use, size=limit, used=used, free=free, is_quota=True)
    return use
