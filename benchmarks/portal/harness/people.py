"""Temporary Unix users, and what sudo lets a hub do as them; gone at the end.

Sessions are run as real users: a storm of 100 of them needs 100 accounts.
"""

import fcntl
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HUB_USER = "benchhub"
GROUP = "benchpeople"
_LOCK = Path("/run/lock/portal-benchmark")
_SUDOERS = Path("/etc/sudoers.d/portal-benchmark")


@dataclass(frozen=True)
class People:
    """Accounts with homes, members of one group."""

    names: list[str]
    homes: Path


@contextmanager
def temporary(count: int, folder: Path) -> Iterator[People]:
    """Make so many members of `GROUP`, with homes below ``folder``, and the hubs' user. As root."""
    homes = folder / "homes"
    homes.mkdir()
    with _no_others():
        subprocess.run(["/usr/sbin/groupadd", GROUP], check=True)
        subprocess.run(
            ["/usr/sbin/useradd", "--system", "-M", "-d", str(folder), HUB_USER], check=True
        )
        yield _made(count, GROUP, homes)


@contextmanager
def members(count: int, group: str, homes: Path) -> Iterator[People]:
    """Make so many users in a group that is there; their homes go with them. As root."""
    with _no_others():
        people = _made(count, group, homes)
        try:
            yield people
        finally:
            for name in people.names:
                shutil.rmtree(homes / name, ignore_errors=True)


@contextmanager
def _no_others() -> Iterator[None]:
    """Wait until other benchmarks' people, who have the same names, have left; leave nobody."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove()
        try:
            yield
        finally:
            _remove()


def _made(count: int, group: str, homes: Path) -> People:
    people = People([f"bench{number:03}" for number in range(1, count + 1)], homes)
    for name in people.names:
        argv = ["/usr/sbin/useradd", "--no-log-init", "-N", "-g", group, "-M"]
        home = homes / name
        subprocess.run([*argv, "-d", str(home), "-s", "/bin/bash", name], check=True)
        home.mkdir(mode=0o700)
        shutil.chown(home, name, group)
    return people


@contextmanager
def sudo_allows(rules: Sequence[str]) -> Iterator[None]:
    """Let the hubs' user run programs as the people: ``rules`` are sudoers' tags and commands."""
    lines = [f"Defaults:{HUB_USER} !lecture, !mail_always"]
    lines += [f"{HUB_USER} ALL=(%{GROUP}) {rule}" for rule in rules]
    try:
        _SUDOERS.write_text("\n".join(lines) + "\n")
        _SUDOERS.chmod(0o440)
        subprocess.run(["/usr/sbin/visudo", "-qcf", str(_SUDOERS)], check=True)
        yield
    finally:
        _SUDOERS.unlink(missing_ok=True)


def _remove() -> None:
    """Remove the accounts; also those that a benchmark that was killed has left."""
    names = [entry.pw_name for entry in pwd.getpwall() if entry.pw_name.startswith("bench")]
    for name in names:
        if name == HUB_USER or name[5:].isdecimal():
            subprocess.run(["/usr/sbin/userdel", "-f", name], check=True, capture_output=True)
    subprocess.run(["/usr/sbin/groupdel", GROUP], check=False, capture_output=True)
