"""A fresh Debian 12 with systemd, and the README's first command on it.

The machine is real but for its kernel: systemd boots in a namespace of its own (systemd-nspawn),
from a root that debootstrap has just made, with its own network (slirp4netns), so that it takes no
port of this machine. It installs all that the portal needs by itself; what is lent to it are the
authorities that this machine trusts, and the folders of wheels that this machine's pip knows.

Not part of ``make test``: the cgroups of its Slurm nodes are this machine's, so no portal may run
beside it. ``make test-fresh`` runs it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import bootstrap
import pytest

from tests.instance import ROOT
from tests.waiting import until

TOOLS = ("debootstrap", "systemd-container", "slirp4netns")
SUITE = "bookworm"
# What is there before the portal comes: an init, a clone's tools, a network.
INCLUDED = "systemd,systemd-sysv,dbus,ca-certificates,git,make,iproute2"
BASE = Path("/var/cache/data-scientist-portal", SUITE)
SLIRP_NAMESERVER = "10.0.2.3"
# systemd-nspawn hands the version 1 controllers in for reading only; Slurm makes cgroups in them.
CONTROLLERS = ("memory", "devices", "freezer", "cpuset", "cpu", "cpuacct")
UNITS = "portal-*"

VISIT = """
import json, sys, tomllib
from pathlib import Path
from tests.instance import Instance
from tests.visitor import Visitor

visitor = Visitor(Instance(tomllib.loads(Path(sys.argv[1]).read_text())), "user1")
visitor.log_in().raise_for_status()
if visitor.server() is None:
    assert visitor.start(gpus=2).status_code in (201, 202)
    visitor.wait_until_ready()
print(json.dumps({"ready": visitor.server()["ready"], "said": visitor.run("print(6 * 7)")}))
visitor.close()
"""


@dataclass(frozen=True)
class Machine:
    """A booted machine."""

    root: Path
    leader: int
    """The process that is its PID 1."""

    def run(self, *argv: str, seconds: float = 60) -> str:
        """Run something on it as root; return what it printed."""
        lent = {name: value for name, value in os.environ.items() if re.search("_CERTS?", name)}
        lent["PIP_FIND_LINKS"] = " ".join(map(str, wheel_folders()))
        done = subprocess.run(
            ["/usr/bin/nsenter", "-t", str(self.leader), "-a", "--", *argv],
            env={"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **lent},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{argv}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr}")
        return done.stdout

    def make(self, target: str) -> str:
        """Run one of the README's commands in the clone."""
        return self.run("/usr/bin/make", "-C", "/root/portal", target, seconds=600)

    def visit(self) -> dict[str, object]:
        """Be ``user1`` in its network: log in, start a session if there is none, compute."""
        settings = self.root / "etc" / "data-scientist-portal" / "portal.toml"
        argv = ["/usr/bin/nsenter", "-t", str(self.leader), "-n", "--", sys.executable, "-c", VISIT]
        done = subprocess.run(
            [*argv, str(settings)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def changed(self, printed: str) -> int:
        """Return how many tasks changed something in a run of ``make up``."""
        match = re.search(r"changed=(\d+)\s+unreachable=0\s+failed=0", printed)
        assert match, printed[-2000:]
        return int(match.group(1))


def wheel_folders() -> list[Path]:
    """Return where this machine's pip finds wheels besides its index."""
    return [Path(place) for place in bootstrap.pip_find_links() if Path(place).is_dir()]


def fresh_root(folder: Path) -> Path:
    """Make the root of a new machine, with a clone of this repository."""
    if not BASE.exists():
        half_made = folder / "base"
        subprocess.run(
            [
                "/usr/sbin/debootstrap",
                "--variant=minbase",
                f"--include={INCLUDED}",
                SUITE,
                half_made,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.move(half_made, BASE)
    root = folder / "root"
    subprocess.run(["/bin/cp", "-a", "--reflink=auto", str(BASE), str(root)], check=True)
    (root / "etc" / "hostname").write_text("fresh\n")
    (root / "etc" / "resolv.conf").unlink(missing_ok=True)
    (root / "etc" / "resolv.conf").write_text(f"nameserver {SLIRP_NAMESERVER}\n")
    for wheels in wheel_folders():
        shutil.copytree(wheels, root / wheels.relative_to("/"), dirs_exist_ok=True)
    clone = root / "root" / "portal"
    subprocess.run(["/usr/bin/git", "clone", "-q", str(ROOT), str(clone)], check=True)
    return root


def started(leaving: ExitStack, *argv: str) -> int:
    """Start a program that is killed at the end; return its pid."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    leaving.callback(process.wait, 30)
    leaving.callback(process.kill)
    return process.pid


def boot(root: Path, leaving: ExitStack) -> Machine:
    """Boot a root in namespaces of its own; it is gone when ``leaving`` closes."""
    holder = started(leaving, "/usr/bin/unshare", "-n", "-m", "/bin/sleep", "infinity")
    own = Path(f"/proc/{holder}/ns/net")
    until(lambda: own.readlink() != Path("/proc/self/ns/net").readlink(), seconds=5, what="a netns")
    started(leaving, "/usr/bin/slirp4netns", "--configure", "--disable-host-loopback",
            str(holder), "tap0")  # fmt: skip
    nspawn = started(
        leaving,
        *("/usr/bin/nsenter", "-t", str(holder), "-n", "-m", "--"),
        *("/usr/bin/systemd-nspawn", "--quiet", f"--directory={root}", "--machine=portal-fresh"),
        *(
            "--register=no",
            "--keep-unit",
            "--resolv-conf=off",
            "--bind-ro=/etc/ssl/certs",
            "--boot",
        ),
    )
    children = Path(f"/proc/{nspawn}/task/{nspawn}/children")
    (leader,) = until(lambda: children.read_text().split(), seconds=20, what="the machine's PID 1")
    leaving.callback(os.kill, int(leader), signal.SIGKILL)
    machine = Machine(root, int(leader))
    until(lambda: is_up(machine), seconds=60, what="the machine has booted")
    for controller in CONTROLLERS:
        machine.run("/bin/mount", "-o", "remount,bind,rw", f"/sys/fs/cgroup/{controller}")
    return machine


def is_up(machine: Machine) -> bool:
    """Say whether systemd has started all it should."""
    try:
        return machine.run("/bin/systemctl", "is-system-running").strip() == "running"
    except RuntimeError:
        return False


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    subprocess.run(
        ["/usr/bin/apt-get", "install", "-y", "-qq", "--no-install-recommends", *TOOLS],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
    folder = tmp_path_factory.mktemp("machine")
    with ExitStack() as leaving:
        leaving.callback(shutil.rmtree, folder, ignore_errors=True)
        yield boot(fresh_root(folder), leaving)


def test_two_commands_on_a_fresh_machine(machine: Machine) -> None:
    assert machine.changed(machine.make("up")) > 0
    active = machine.run("/bin/systemctl", "list-units", "--plain", "--no-legend", UNITS)
    for service in ("hub", "proxy", "slapd", "nslcd", "munged", "slurmctld", "slurmd-node001"):
        assert re.search(rf"^portal-{service}\.service\s+loaded\s+active", active, re.M), active
    assert machine.visit() == {"ready": True, "said": "42\n"}
    jobs = machine.run("/usr/bin/squeue", "--noheader", "-o", "%j %u %b")
    assert jobs.split() == ["portal-user1", "user1", "gres:gpu:2"]

    # Once more: nothing changes, and the session goes on.
    job_id = machine.run("/usr/bin/squeue", "--noheader", "-o", "%i")
    assert machine.changed(machine.make("up")) == 0
    assert machine.run("/usr/bin/squeue", "--noheader", "-o", "%i") == job_id
    assert machine.visit() == {"ready": True, "said": "42\n"}

    # And down: nothing that it started is left.
    machine.make("down")
    left = machine.run(
        "/bin/systemctl", "list-units", "--plain", "--no-legend", "--state=active", UNITS
    )
    assert left.strip() == ""
    running = machine.run("/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true")
    assert "systemd" in running
    assert not re.search("portal.session|slurmctld|slapd|configurable-http-proxy", running)
