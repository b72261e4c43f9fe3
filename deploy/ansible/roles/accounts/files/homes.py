"""Make homes, as /etc/skel has them, of people who have none yet; print the ones that were made.

homes.py BELOW [--group GROUP]... [--every SECONDS] [NAME]...

Asks the machine's name service, so it fails while that does not know somebody yet. With --every it
goes on looking, for people who are new in the groups, and such a failure is only told.
"""

import argparse
import contextlib
import grp
import os
import pwd
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path

FIRST_UID = 1000


def people(names: Iterable[str], groups: Iterable[str]) -> dict[str, pwd.struct_passwd]:
    """Return those who are named, and the members of the groups, by name."""
    found = {name: pwd.getpwnam(name) for name in names}
    for group in groups:
        entry = grp.getgrnam(group)
        found |= {user.pw_name: user for user in pwd.getpwall() if user.pw_gid == entry.gr_gid}
        for name in set(entry.gr_mem) - set(found):
            # A group may name people whom this machine does not know.
            with contextlib.suppress(KeyError):
                found[name] = pwd.getpwnam(name)
    return found


def ensure_home(user: pwd.struct_passwd, below: Path) -> None:
    """Copy the skeleton under another name and rename it, so that half a home is never used.

    What a directory says is not believed: a home is in the folder of homes, and not root's.
    """
    home = Path(user.pw_dir)
    if home.is_dir() or home != below / home.name or user.pw_uid < FIRST_UID:
        return
    building = below / f".{home.name}.building"
    shutil.rmtree(building, ignore_errors=True)
    shutil.copytree("/etc/skel", building)
    for path in (building, *building.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    building.chmod(0o700)
    building.rename(home)
    print(home, flush=True)


def main() -> None:
    """Make what is missing, once or for ever."""
    parser = argparse.ArgumentParser()
    parser.add_argument("below", type=Path)
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--every", type=float)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    while True:
        try:
            for user in people(given.names, given.group).values():
                ensure_home(user, given.below)
        except KeyError as error:
            told = f"this machine does not know the user or group: {error}"
            if given.every is None:
                sys.exit(told)
            print(told, file=sys.stderr, flush=True)
        if given.every is None:
            return
        time.sleep(given.every)


if __name__ == "__main__":
    main()
