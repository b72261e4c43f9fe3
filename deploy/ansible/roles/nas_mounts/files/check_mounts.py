"""Ask the kernel whether the NAS is mounted as it should be; run by the host's own Python.

The one argument is JSON: ``mounts`` (folder, source, options) and ``seconds``, the time that each
may take. Prints a line for each mount that is otherwise, and what to do, and ends with 1 then. With
FS-Cache (the option ``fsc``) something must keep the cache, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

# NFS's defaults, which a mount without options has.
DEFAULTS = ("hard",)
CACHE = "cachefilesd"
"""The daemon without which the option ``fsc`` keeps nothing."""


def main() -> int:
    """Check each mount; the first use mounts it."""
    given = json.loads(sys.argv[1])
    problems = [problem for mount in given["mounts"] for problem in check(mount, given["seconds"])]
    if any("fsc" in mount["options"] for mount in given["mounts"]) and not runs(CACHE):
        problems.append(
            f"{CACHE} does not run, so nothing is kept of what is read. `journalctl -t {CACHE}` "
            "has its last words: its folder must be on a local disk, and the kernel needs the "
            "module cachefiles."
        )
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def check(mount: dict[str, Any], seconds: int) -> list[str]:
    """Say what is wrong with one."""
    folder, unit = mount["folder"], mount["folder"][1:].replace("/", "-") + ".mount"
    if not answers(folder, seconds + 5):
        return [
            f"{folder} does not answer. Is {mount['source']} up, exported to this host and "
            "reachable (port 2049; 111 too for NFS 3)? "
            f"`systemctl status {unit}` has the last attempt's words."
        ]
    options = options_of(folder, Path("/proc/self/mountinfo").read_bytes().decode(errors="replace"))
    if options is None:
        return [f"{folder} is a plain folder, nothing is mounted there. `systemctl start {unit}`"]
    missing = sorted(set(mount["options"] or DEFAULTS) - options)
    if not missing:
        return []
    return [
        f"{folder} is mounted without {', '.join(missing)} (it has {','.join(sorted(options))}). "
        f"Once nobody uses it: `systemctl restart {unit}`. "
        "A smaller rsize or wsize is the server's."
    ]


def answers(folder: str, seconds: int) -> bool:
    """Ask in a process of its own, which may be left behind."""
    asking = subprocess.Popen(
        ["/usr/bin/stat", "--file-system", folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return asking.wait(timeout=seconds) == 0
    except subprocess.TimeoutExpired:
        asking.kill()
        return False


def runs(name: str, proc: Path = Path("/proc")) -> bool:
    """Say whether a process of that name is there (proc(5): comm)."""
    for file in proc.glob("[0-9]*/comm"):
        # It may have ended meanwhile.
        with suppress(OSError):
            if file.read_text(encoding="utf-8").strip() == name:
                return True
    return False


def options_of(folder: str, mountinfo: str) -> set[str] | None:
    """Return the options of what is mounted there last; None where nothing is (proc(5))."""
    found = None
    # By newlines and spaces alone: the names of others' mounts may have any other white space.
    for line in filter(None, mountinfo.split("\n")):
        mine, _, fs = line.partition(" - ")
        fields, (kind, _, more) = mine.split(" "), fs.split(" ", 2)
        if fields[4] == folder and kind != "autofs":
            found = {*fields[5].split(","), *more.split(",")}
    return found


if __name__ == "__main__":
    sys.exit(main())
