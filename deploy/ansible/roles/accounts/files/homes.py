"""Make homes, as /etc/skel has them, of people who have none yet; print the ones that were made.

homes.py BELOW [--group GROUP]... [--every SECONDS] [NAME]...
homes.py NAS --on-nas [--group GROUP]... [--every SECONDS] [NAME]...

With --on-nas it makes two kinds of folders on the NAS instead: ``users/NAME``, a person's own,
which the others may read, and ``groups/GROUP``, where the group's members write and nobody else
reads.

Asks the machine's name service, so it fails while that does not know somebody yet. With --every it
goes on looking, for people who are new in the groups, and a failure is only told. A NAS that does
not let this host's root make folders is told of, too; then the NAS's administrator makes them.
"""

import argparse
import contextlib
import errno
import grp
import os
import pwd
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
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
    building.mkdir(mode=0o700)
    shutil.copytree("/etc/skel", building, dirs_exist_ok=True)
    building.chmod(0o700)
    # Whoever has a folder can put something else in the place of what is in it: it comes last.
    for path in (*sorted(building.rglob("*"), reverse=True), building):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    building.rename(home)
    print(home, flush=True)


@contextlib.contextmanager
def roots_folder(nas: Path, name: str) -> Iterator[int]:
    """Give the descriptor of a folder of root's on the NAS, made where it is missing.

    Raises `OSError` where others could put something of theirs in the place of what is made there.
    """
    with contextlib.suppress(FileExistsError):
        (nas / name).mkdir()
        (nas / name).chmod(0o755)
    folder = os.open(nas / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        told = os.fstat(folder)
        if told.st_uid != os.geteuid() or told.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EPERM, "it must be root's, and only root's", nas / name)
        yield folder
    finally:
        os.close(folder)


def ensure_given(above: int, name: str, uid: int, gid: int, mode: int) -> bool:
    """Make a folder and give it away; one that is there already, and given, is left alone."""
    if not name or name.startswith(".") or "/" in name:
        return False
    with contextlib.suppress(FileExistsError):
        # Until it is given it is closed and root's: so is one that was left in the middle.
        os.mkdir(name, 0o700, dir_fd=above)
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        told = os.fstat(folder)
        if told.st_uid != os.geteuid() or stat.S_IMODE(told.st_mode) != 0o700:
            return False
        os.fchown(folder, uid, gid)
        os.fchmod(folder, mode)
        return True
    finally:
        os.close(folder)


def ensure_on_nas(nas: Path, users: Iterable[pwd.struct_passwd], groups: Iterable[str]) -> None:
    """Make what is missing on the NAS, and print it."""
    with roots_folder(nas, "users") as above:
        for user in users:
            is_person = user.pw_uid >= FIRST_UID
            if is_person and ensure_given(above, user.pw_name, user.pw_uid, user.pw_gid, 0o755):
                print(nas / "users" / user.pw_name, flush=True)
    with roots_folder(nas, "groups") as above:
        for group in groups:
            entry = grp.getgrnam(group)
            if ensure_given(above, entry.gr_name, os.geteuid(), entry.gr_gid, 0o2770):
                print(nas / "groups" / entry.gr_name, flush=True)


def main() -> None:
    """Make what is missing, once or for ever."""
    parser = argparse.ArgumentParser()
    parser.add_argument("below", type=Path)
    parser.add_argument("--on-nas", action="store_true")
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--every", type=float)
    parser.add_argument("names", nargs="*")
    # Names may stand behind groups.
    given = parser.parse_intermixed_args()
    trouble = ""
    while True:
        try:
            found = people(given.names, given.group).values()
            if given.on_nas:
                ensure_on_nas(given.below, found, given.group)
            else:
                for user in found:
                    ensure_home(user, given.below)
        except KeyError as error:
            told = f"this machine does not know the user or group: {error}"
            if given.every is None:
                sys.exit(told)
            print(told, file=sys.stderr, flush=True)
        except OSError as error:
            if not given.on_nas:
                raise
            # Once, not every minute.
            if str(error) != trouble:
                trouble = str(error)
                print(f"no folders for users on the NAS: {trouble}", file=sys.stderr, flush=True)
        if given.every is None:
            return
        time.sleep(given.every)


if __name__ == "__main__":
    main()
