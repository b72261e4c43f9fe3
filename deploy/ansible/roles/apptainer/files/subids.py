"""Give people numbers of their own for the users inside the images that they build.

subids.py [--group GROUP]... [--every SECONDS] [--folder FOLDER] [NAME]...

Each gets 65536 numbers, written down in FOLDER/subuid and FOLDER/subgid (subuid(5)); who has some,
keeps them, and nobody is ever given another's. Prints who got which. With --every it goes on
looking, for people who are new in the groups.

Whoever has a number may act as its user, so it must never become a real one's. Directories number
people far and wide below 2^31; these are from above, where Apptainer's own `config fakeroot` takes
them too. Which ones depends on a person's number, so that machines agree on them where files of
such users are shared.
"""

import argparse
import contextlib
import grp
import os
import pwd
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FIRST_UID = 1000
SIZE = 65536
# The last two of 2^32 numbers mean "nobody" and "unchanged".
HIGHEST = 2**32 - 2 * SIZE
PLACES = (HIGHEST - 2**31) // SIZE + 1
LOCK_SECONDS = 15


class SubidsError(Exception):
    """No numbers can be given; says why."""


@dataclass(frozen=True)
class Given:
    """A line of subuid or subgid."""

    owner: str
    start: int
    count: int

    def has(self, start: int) -> bool:
        """Say whether some of the numbers from ``start`` on are among these."""
        return self.start < start + SIZE and start < self.start + self.count


def parsed(text: str) -> list[Given]:
    """Return what is given; what is no such line gives nothing."""
    found = []
    for line in text.splitlines():
        owner, _, numbers = line.strip().partition(":")
        start, _, count = numbers.partition(":")
        if owner and start.isdecimal() and count.isdecimal():
            found.append(Given(owner, int(start), int(count)))
    return found


def free_start(uid: int, given: Sequence[Given], real: Iterable[int]) -> int:
    """Return where this user's numbers can begin; ``real`` are those of users and groups."""
    used = {number // SIZE for number in real}
    for further in range(PLACES):
        start = HIGHEST - (uid + further) % PLACES * SIZE
        if start // SIZE not in used and not any(line.has(start) for line in given):
            return start
    raise SubidsError("all numbers above 2^31 are given away")


def additions(
    people: Sequence[pwd.struct_passwd], texts: dict[str, str], real: Iterable[int]
) -> dict[str, list[str]]:
    """Return the lines that each of the files lacks."""
    given = {name: parsed(text) for name, text in texts.items()}
    lines: dict[str, list[str]] = {name: [] for name in texts}
    for user in sorted(people, key=lambda user: user.pw_uid):
        known = {user.pw_name, str(user.pw_uid)}
        lacking = [name for name in texts if not known & {line.owner for line in given[name]}]
        if user.pw_uid < FIRST_UID or not lacking:
            continue
        others = [line for name in texts for line in given[name] if line.owner not in known]
        start = free_start(user.pw_uid, others, real)
        for name in lacking:
            given[name].append(Given(user.pw_name, start, SIZE))
            lines[name].append(f"{user.pw_name}:{start}:{SIZE}")
    return lines


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock that useradd and its like take."""
    lock, mine = (file.with_name(f"{file.name}.{end}") for end in ("lock", str(os.getpid())))
    mine.write_text(str(os.getpid()))
    until = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                os.link(mine, lock)
                break
            except FileExistsError:
                if time.monotonic() > until:
                    raise SubidsError(
                        f"{lock} is held; remove it when no useradd or usermod runs"
                    ) from None
                time.sleep(0.1)
        try:
            yield
        finally:
            lock.unlink()
    finally:
        mine.unlink()


def members(names: Iterable[str], groups: Iterable[str]) -> list[pwd.struct_passwd]:
    """Return those who are named, and the members of the groups; raises `KeyError`."""
    found = {name: pwd.getpwnam(name) for name in names}
    for group in groups:
        entry = grp.getgrnam(group)
        found |= {user.pw_name: user for user in pwd.getpwall() if user.pw_gid == entry.gr_gid}
        for name in set(entry.gr_mem) - set(found):
            # A group may name people whom this machine does not know.
            with contextlib.suppress(KeyError):
                found[name] = pwd.getpwnam(name)
    return list(found.values())


def give(people: Sequence[pwd.struct_passwd], folder: Path) -> None:
    """Add what the two files lack, each replaced as a whole."""
    files = {name: folder / name for name in ("subuid", "subgid")}
    real = {user.pw_uid for user in pwd.getpwall()} | {group.gr_gid for group in grp.getgrall()}
    with locked(files["subuid"]), locked(files["subgid"]):
        texts = {name: file.read_text() if file.exists() else "" for name, file in files.items()}
        for name, lines in additions(people, texts, real).items():
            if not lines:
                continue
            building = folder / f"{name}.building"
            kept = (
                texts[name] if not texts[name] or texts[name].endswith("\n") else texts[name] + "\n"
            )
            building.write_text(kept + "".join(f"{line}\n" for line in lines))
            building.chmod(0o644)
            building.replace(files[name])
            print(*(f"{name}: {line}" for line in lines), sep="\n", flush=True)


def main() -> None:
    """Give what is missing, once or for ever."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--every", type=float)
    parser.add_argument("--folder", type=Path, default=Path("/etc"))
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    while True:
        try:
            give(members(asked.names, asked.group), asked.folder)
        except (KeyError, SubidsError, OSError) as error:
            unknown = isinstance(error, KeyError)
            told = (
                f"this machine does not know the user or group: {error}" if unknown else str(error)
            )
            if asked.every is None:
                sys.exit(told)
            print(told, file=sys.stderr, flush=True)
        if asked.every is None:
            return
        time.sleep(asked.every)


if __name__ == "__main__":
    main()
