"""Memory of the session's job: in use, its limit, and how many processes were killed for it.

Linux counts the processes that it killed because a group of processes exceeded its
memory: ``oom_kill`` in ``memory.oom_control`` (cgroup v1) or ``memory.events`` (v2).
"""

import re
from dataclasses import dataclass
from pathlib import Path

# cgroup v1 writes "no limit" as the largest multiple of the page size.
_UNLIMITED_BYTES = 1 << 60
_JOB = re.compile(r"job_\d+", re.ASCII)


@dataclass(frozen=True)
class MemoryFolders:
    """Folders of the memory cgroup, innermost first, and their version."""

    version: int
    paths: tuple[Path, ...]


def memory_folders(proc_self_cgroup: str, root: Path = Path("/sys/fs/cgroup")) -> MemoryFolders:
    """Find the folders from the text of ``/proc/self/cgroup`` (cgroups(7))."""
    lines = [line.split(":", 2) for line in proc_self_cgroup.splitlines() if line.count(":") >= 2]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return MemoryFolders(1, _with_parents(root / "memory", path))
    for _, controllers, path in lines:
        if controllers == "":
            return MemoryFolders(2, _with_parents(root, path))
    return MemoryFolders(2, ())


def _with_parents(mount: Path, path: str) -> tuple[Path, ...]:
    inner = Path(path.lstrip("/"))
    return tuple(mount / part for part in (inner, *inner.parents) if part != Path())


def oom_kills(text: str) -> int:
    """Read the counter from ``memory.oom_control`` or ``memory.events``; 0 where it has none."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.strip().isdigit():
            return int(value)
    return 0


def limit_bytes(text: str) -> int | None:
    """Read ``memory.limit_in_bytes`` or ``memory.max``; None is no limit."""
    if not text.strip().isdigit():
        return None
    value = int(text)
    return value if value < _UNLIMITED_BYTES else None


def file_bytes(text: str, version: int) -> int:
    """Read from ``memory.stat`` what Linux gives back by itself: files that it keeps a copy of."""
    name = "total_inactive_file" if version == 1 else "inactive_file"
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0


@dataclass(frozen=True)
class JobMemory:
    """The counters of this process's own group, read anew at each question."""

    folders: MemoryFolders

    @classmethod
    def of_this_process(cls) -> "JobMemory":
        """Look up the groups that this process is in."""
        return cls(memory_folders(_read(Path("/proc/self/cgroup"))))

    def kills(self) -> int:
        """Count the processes killed for memory so far.

        Version 1 counts in the group of the process alone, so the innermost will do:
        kernels stay in the group of the server that starts them.
        """
        name = "memory.oom_control" if self.folders.version == 1 else "memory.events"
        return max((oom_kills(_read(path / name)) for path in self.folders.paths[:1]), default=0)

    def limit_gib(self) -> float | None:
        """Give the smallest limit of this group and those around it, in GiB (Slurm's GB)."""
        name = "memory.limit_in_bytes" if self.folders.version == 1 else "memory.max"
        limits = [limit_bytes(_read(path / name)) for path in self.folders.paths]
        known = [limit for limit in limits if limit is not None]
        return min(known) / 2**30 if known else None

    def used_bytes(self) -> int | None:
        """Give what the whole job holds; None where Slurm gave it no group of its own.

        The limit is held against the same figure, after Linux has given back what it can.
        """
        version = self.folders.version
        name = "memory.usage_in_bytes" if version == 1 else "memory.current"
        for path in self.folders.paths:
            if _JOB.fullmatch(path.name):
                held = _read(path / name).strip()
                given_back = file_bytes(_read(path / "memory.stat"), version)
                return max(0, int(held) - given_back) if held.isdigit() else None
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
