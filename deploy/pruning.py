"""List the environments that no machine uses, or remove them: pruning.py FOLDER.

Standard input is JSON: what each machine said (``hosts``: role environments' ``uses.py``), for how
many ``days`` one is kept after a deployment has asked for it, whether to ``delete``, and whether to
``ignore_unseen`` folders, on whose users' environments nothing is known. Standard output, too:
``lines`` for people, and which were ``removed``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import bootstrap

NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)-[0-9a-f]{12}", re.ASCII)
LEFT = re.compile(r"\.[A-Za-z0-9.-]+\.removing", re.ASCII)
"""What an interrupted run has left."""
HALF_MADE = re.compile(rf"\.{NAME.pattern}\.building", re.ASCII)
"""What an interrupted deployment has left, or is being made."""
SECONDS_PER_DAY = 86400


@dataclass(frozen=True)
class Pruning:
    """A folder of environments, and which of them are in use."""

    folder: Path
    in_use: frozenset[str]
    youngest: float
    """Those that a deployment has asked for since this time stay, too."""

    def unused(self) -> list[Path]:
        """Find those that may go, and what is left of some that were to go."""
        found = sorted(self.folder.iterdir())
        return [path for path in found if LEFT.fullmatch(path.name) or self._may_go(path)]

    def young(self) -> list[Path]:
        """Find those that only a deployment has asked for."""
        return [
            path
            for path in sorted(self.folder.iterdir())
            if self._is_unused(path) and not self._may_go(path)
        ]

    def remove(self, path: Path) -> bool:
        """Remove one, or at least its name; say whether it has not been asked for meanwhile."""
        if found := NAME.fullmatch(path.name) or HALF_MADE.fullmatch(path.name):
            # Under the lock of whoever makes it, or finds it made.
            with bootstrap.only_one(self.folder, found[1]):
                if not self._may_go(path):
                    return False
                path = path.rename(path.with_name(f".{path.name.lstrip('.')}.removing"))
        shutil.rmtree(path)
        return True

    def _may_go(self, path: Path) -> bool:
        is_left = HALF_MADE.fullmatch(path.name) and path.is_dir()
        is_candidate = bool(is_left) or self._is_unused(path)
        return is_candidate and path.stat().st_mtime < self.youngest

    def _is_unused(self, path: Path) -> bool:
        is_one = NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        return bool(is_one) and path.name not in self.in_use


def size_of(folders: Iterable[Path]) -> int:
    """Add up the bytes that are free once folders are gone: files have links in the cache."""
    seen: Counter[tuple[int, int]] = Counter()
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    for folder in folders:
        for place, _, names in os.walk(folder):
            for path in (place, *(os.path.join(place, name) for name in names)):
                status = os.lstat(path)
                key = status.st_dev, status.st_ino
                seen[key] += 1
                links = 1 if path == place else status.st_nlink
                sizes[key] = 512 * status.st_blocks, links
    return sum(size for key, (size, links) in sizes.items() if seen[key] >= links)


def mebibytes(folders: Iterable[Path]) -> str:
    """Write for people what is free once folders are gone."""
    return f"{size_of(folders) / 2**20:,.1f} MiB"


def main() -> int:
    """Do what standard input says."""
    given = json.load(sys.stdin)
    hosts = given["hosts"]
    used = {
        name: f"{what} ({host})"
        for host, answer in hosts.items()
        for name, what in answer["used"].items()
        if not any(name in other["named"] for other in hosts.values())
    }
    in_use = frozenset(used).union(*(answer["named"] for answer in hosts.values()))
    youngest = time.time() - given["days"] * SECONDS_PER_DAY
    pruning = Pruning(Path(sys.argv[1]), in_use, youngest)
    unused, young = pruning.unused(), pruning.young()
    obstacles = [f"{what} ({host})" for host in hosts for what in hosts[host]["obstacles"]]
    unseen = [
        f"folders of users into which root may not look: {answer['unseen']} ({host})"
        for host, answer in hosts.items()
        if answer["unseen"]
    ]
    if not given["ignore_unseen"]:
        obstacles += unseen
    removed: list[str] = []
    lines = [f"{path.name}: unused, {mebibytes([path])}" for path in unused]
    lines += [f"{path.name}: kept, as a deployment has asked for it lately" for path in young]
    lines += [f"{name}: kept, as {what}" for name, what in sorted(used.items())]
    if given["ignore_unseen"]:
        lines += [f"ignored: {what}" for what in unseen]
    lines.append(f"all that are unused: {mebibytes(unused)}")
    if obstacles:
        lines += [f"nothing may be removed: {what}" for what in obstacles]
    elif given["delete"]:
        removed = [path.name for path in unused if pruning.remove(path)]
        lines.append(f"removed: {', '.join(removed) or 'none'}")
    json.dump({"lines": lines, "removed": removed}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
