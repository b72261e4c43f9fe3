"""What runs inside the kernel of ``tests.uml``: a NAS with its addresses, and a node with mounts.

The mounts are those of the role's units, which lie in the folder of the one argument. Standard
library only; the tests look at what is found here.
"""

import asyncio
import configparser
import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "portal"))

from dsportal.session.files.mounts import Mounts  # noqa: E402 - from this clone

NAS = Path("/srv/nas")
THREADS = Path("/proc/fs/nfsd/threads")
OWNER, OTHER = 1001, 1002
CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "check": False}
CHECK = ROOT / "deploy/ansible/roles/nas_mounts/files/check_mounts.py"


def run(*argv: str) -> str:
    """Run a program; its words are the error."""
    done = subprocess.run(argv, **CAPTURED)
    if done.returncode:
        raise RuntimeError(f"{argv}: {done.stdout}{done.stderr}")
    return str(done.stdout)


def prepare() -> None:
    """Load NFS into this kernel, and give it its addresses."""
    for folder in ("/mnt", "/run", "/var/lib/nfs"):
        run("mount", "-t", "tmpfs", "tmpfs", folder)
    # The modules lie where user-mode-linux has them, not in /lib/modules.
    Path("/run/uml/lib").mkdir(parents=True)
    Path("/run/uml/lib/modules").symlink_to("/usr/lib/uml/modules")
    # A server that has just started gives no locks: it waits for clients that had some before.
    run("modprobe", "-d", "/run/uml", "lockd", "nlm_grace_period=1")
    modules = ["nfsd", "nfs", "nfsv3", "nfsv4", "loop", "quota_v2"]
    run("modprobe", "-d", "/run/uml", "-a", *modules)
    run("ip", "link", "set", "lo", "up")
    for folder in ("/run/rpcbind", "/var/lib/nfs/sm", "/var/lib/nfs/rpc_pipefs"):
        Path(folder).mkdir(parents=True)
    run("mount", "-t", "rpc_pipefs", "rpc_pipefs", "/var/lib/nfs/rpc_pipefs")
    run("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
    for name in ("etab", "rmtab", "state"):
        Path("/var/lib/nfs", name).touch()
    # This kernel has no IPv6, which rpc.rquotad would insist on.
    known = Path("/etc/netconfig").read_text(encoding="utf-8").splitlines()
    used = [line for line in known if "inet6" not in line]
    Path("/run/netconfig").write_text("\n".join([*used, ""]), encoding="utf-8")
    run("mount", "--bind", "/run/netconfig", "/etc/netconfig")


def make_disk() -> None:
    """Give the NAS a disk that knows quotas: one user may have 10 MiB."""
    run("truncate", "-s", "64M", "/srv/disk")
    run("mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota", "/srv/disk")
    os.mknod("/run/loop", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    run("losetup", "/run/loop", "/srv/disk")
    NAS.mkdir()
    run("mount", "-o", "usrquota", "/run/loop", str(NAS))
    run("setquota", "-u", str(OTHER), "8192", "10240", "0", "0", str(NAS))


def serve() -> None:
    """Export the NAS as OneFS is set up to: root is nobody."""
    make_disk()
    NAS.chmod(0o1777)
    home = NAS / "owner"
    home.mkdir(mode=0o700)
    (home / "secret").write_text("the owner's")
    os.chown(home, OWNER, OWNER)
    os.chown(home / "secret", OWNER, OWNER)
    Path("/proc/fs/nfsd/max_block_size").write_text("1048576")
    run("rpcbind", "-w")
    run("exportfs", "-o", "rw,fsid=1,no_subtree_check,root_squash", f"*:{NAS}")
    run("rpc.nfsd", "4")
    run("rpc.mountd")
    run("rpc.rquotad")
    # Locks need it. mount(8) would start it without what the environment tells programs here.
    run("rpc.statd", "--no-notify")


def units(folder: Path) -> Iterator[configparser.SectionProxy]:
    """Read the mounts that the role has written."""
    for file in sorted(folder.glob("*.mount")):
        unit = configparser.RawConfigParser()
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read_string(file.read_text(encoding="utf-8"))
        yield unit["Mount"]


def mount(unit: configparser.SectionProxy) -> None:
    """Do what systemd does with a mount unit."""
    Path(unit["Where"]).mkdir(parents=True)
    options = ["-o", unit["Options"]] if "Options" in unit else []
    run("mount", "-t", unit["Type"], *options, unit["What"], unit["Where"])


def mountinfo() -> list[dict[str, str]]:
    """Return what NFS has mounted: folder, device, source, options."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        mine, _, fs = line.partition(" - ")
        kind, source, options = fs.split()
        if kind in ("nfs", "nfs4"):
            fields = mine.split()
            found.append(
                {"folder": fields[4], "device": fields[2], "source": source, "options": options}
            )
    return found


def as_user(uid: int, what: Callable[[], Any]) -> str:
    """Do something as a user; return the name of the error, or its output."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            words = str(what())
        except OSError as error:
            words = errno.errorcode.get(error.errno or 0, "?")
        os.write(write, words.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        words = answer.read()
    os.wait()
    return words


def rights(nas: Path) -> dict[str, str]:
    """Try what users and root may do."""
    secret, own = nas / "owner/secret", nas / "of-other"

    def write_own() -> int:
        own.write_text("mine")
        return own.stat().st_uid

    return {
        "the owner reads": as_user(OWNER, secret.read_text),
        "another reads": as_user(OTHER, secret.read_text),
        "another lists": as_user(OTHER, lambda: os.listdir(nas / "owner")),
        "the node's root reads": as_user(0, secret.read_text),
        "another writes, as number": as_user(OTHER, write_own),
        "the owner deletes what is another's": as_user(OWNER, own.unlink),
        "the node's root changes the owner": as_user(0, lambda: os.chown(own, 0, 0)),
    }


def lock_is_the_servers(nas: Path) -> bool:
    """Take a lock on the node, and say whether the NAS's own side is refused the same one."""
    with (nas / "of-other").open("a") as mine, (NAS / "of-other").open("a") as theirs:
        fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def answering(threads: int) -> None:
    """Let the server have so many threads; with none it takes questions and answers nothing."""
    THREADS.write_text(str(threads))


def quota(nas: Path) -> dict[str, str]:
    """Fill the NAS until the user's quota is used up; return what the node is told of it."""

    def fill() -> None:
        with (nas / "big").open("wb") as file:
            for _ in range(12):
                file.write(bytes(1 << 20))
                os.fsync(file.fileno())

    ended = as_user(OTHER, fill)
    # As portal/dsportal/session/files/quota.py does. It ends with 1 for who is over the limit.
    argv = ["/usr/bin/quota", "--no-wrap", "--raw-grace", "--filesystem-list", str(nas)]
    told = as_user(OTHER, lambda: subprocess.run(argv, **CAPTURED).stdout)
    fields = "--output=size,used,avail,fstype,target"
    size = as_user(OTHER, lambda: run("df", "--block-size=1", fields, "--", str(nas)))
    return {"filling ends with": ended, "quota": told, "df": size}


async def silence(nas: Path, data: Path) -> dict[str, Any]:
    """Let the NAS fall silent and come back; say what a session and its programs saw."""
    seen: list[dict[str, str]] = []
    mounts = Mounts([str(nas), "/mnt/never"])

    async def look() -> dict[str, str]:
        await mounts.look()
        seen.append({trouble.point: trouble.state for trouble in mounts.troubled()})
        return seen[-1]

    async def wait_for(state: dict[str, str]) -> float:
        began = time.monotonic()
        while {k: v for k, v in (await look()).items() if k in state} != state:
            await asyncio.sleep(0.2)
            if time.monotonic() - began > 40:
                raise RuntimeError(f"never {state}: {seen}")
        return time.monotonic() - began

    before = await look()
    answering(0)
    soft: dict[str, Any] = {}
    hard: dict[str, Any] = {}
    asking = [
        threading.Thread(target=touch, args=(data, soft), daemon=True),
        threading.Thread(target=touch, args=(nas, hard), daemon=True),
    ]
    for thread in asking:
        thread.start()
    await wait_for({str(nas): "hangs", str(data): "hangs"})
    first = dict(seen[-1])
    await wait_for({str(nas): "hangs", str(data): "fails"})
    asking[0].join(30)
    hard_waits = not hard
    answering(4)
    asking[1].join(60)
    began = time.monotonic()
    while str(nas) in await look() or str(data) in seen[-1]:
        await asyncio.sleep(0.2)
        if time.monotonic() - began > 40:
            raise RuntimeError(f"not back: {seen}")
    words = check({"mounts": [{"folder": "/mnt/never", "source": "x", "options": []}]})
    return {
        **{"before": before, "first": first, "after": seen[-1], "soft": soft, "hard": hard},
        **{"hard waits": hard_waits, "check": words},
    }


def touch(folder: Path, found: dict[str, Any]) -> None:
    """Ask the server about a file that nobody has asked for; say how that ended and when."""
    began = time.monotonic()
    try:
        os.stat(folder / f"new-{folder.name}")
        error = ""
    except OSError as raised:
        error = errno.errorcode[raised.errno or 0]
    found.update(error=error, seconds=time.monotonic() - began)


def check(given: dict[str, Any]) -> str:
    """Run the role's own check."""
    argv = ["/usr/bin/python3", str(CHECK), json.dumps({"seconds": 5, **given})]
    return str(subprocess.run(argv, **CAPTURED).stdout)


def main() -> None:
    """Do it all, and write down what was found."""
    folder = Path(sys.argv[1])
    prepare()
    serve()
    wanted = [
        {
            "folder": unit["Where"],
            "source": unit["What"],
            "options": unit.get("Options", "").split(",") if "Options" in unit else [],
        }
        for unit in units(folder)
    ]
    for unit in units(folder):
        mount(unit)
    nas, data = Path("/mnt/isilon"), Path("/mnt/isilon1")
    found: dict[str, Any] = {"mounts": mountinfo(), "rights": rights(nas)}
    found["lock"] = as_user(OTHER, lambda: lock_is_the_servers(nas))
    found["quota"] = quota(nas)
    found["check"] = check({"mounts": wanted})
    typed = folder / "typed"
    found["typed"] = run("/bin/sh", "-ec", typed.read_text("utf-8"))
    strict = [{**wanted[-1], "options": ["rsize=1048576", "hard"]}]
    found["strict check"] = check({"mounts": strict})
    found["silence"] = asyncio.run(silence(nas, data))
    (folder / "found.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
