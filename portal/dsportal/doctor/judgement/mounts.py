"""Mounts, compared with what was expected of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dsportal.doctor.expected import Mount
from dsportal.doctor.finding import Finding, failed, ok

# What mount, systemd or autofs act upon, and the kernel never tells.
_NOT_TOLD = re.compile(r"defaults|_netdev|nofail|auto|noauto|users?|nouser|bg|fg|retry=.*|x-.*")


@dataclass(frozen=True)
class Mounted:
    """A line of ``/proc/self/mountinfo`` (proc(5))."""

    path: str
    type: str
    source: str
    options: frozenset[str]


def mounted_at(path: str, mountinfo: str) -> Mounted | None:
    """Find what is mounted there: the last of several, which hides the others."""
    # By newlines and spaces alone, which the kernel writes in another way where they are in a name:
    # anybody with FUSE can mount at a name with any other space or line's end.
    found = [_mounted(line) for line in mountinfo.split("\n") if line]
    found = [one for one in found if one.path == path]
    # An autofs mount that waits for its first use lies below what it has mounted.
    return found[-1] if found else None


def _mounted(line: str) -> Mounted:
    # 42 27 0:39 / /mnt/isilon1 rw,relatime shared:9 - nfs 10.0.0.1:/ifs rw,vers=3,rsize=524288
    left, _, right = line.partition(" - ")
    words, (kind, source, more) = left.split(" "), right.split(" ", 2)
    options = [*words[5].split(","), *more.split(",")]
    return Mounted(_plain(words[4]), kind, _plain(source), frozenset(options))


def _plain(text: str) -> str:
    """Undo the kernel's way to write a space, a tab, a newline or a backslash."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def judge(expected: Mount, mountinfo: str) -> Finding:
    """Say whether the mount is there, from where it should be, with its options."""
    found = mounted_at(expected.path, mountinfo)
    if found is None:
        return failed("not mounted", f"mount {expected.path}; see its unit or /etc/fstab")
    wrong = [*_differences(expected, found)]
    if wrong:
        return failed("; ".join(wrong), f"umount {expected.path} and mount it again")
    return ok(f"{found.type} from {found.source}, answers")


def _differences(expected: Mount, found: Mounted) -> Iterable[str]:
    alike = {found.type, "nfs"} if found.type == "nfs4" else {found.type}
    if expected.type and expected.type not in alike:
        yield f"is of type {found.type}, not {expected.type}"
    if expected.source and found.source != expected.source:
        yield f"is from {found.source}, not {expected.source}"
    wanted = [option for option in expected.options.split(",") if option]
    missing = [one for one in wanted if not _NOT_TOLD.fullmatch(one) and one not in found.options]
    if missing:
        yield f"lacks {','.join(missing)}"
