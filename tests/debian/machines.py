"""Debian machines that boot on this one, each with a root, a network and processes of its own.

An *enclosure* is a set of namespaces (network, mounts, processes) that one process holds. When it
ends, however that happens, the kernel ends all that runs inside and undoes every mount and every
network interface: nothing of a machine outlives the test that booted it.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import until

_CGROUPS = Path("/sys/fs/cgroup")
# systemd-nspawn hands the version 1 controllers in for reading only; Slurm makes cgroups in them.
_CONTROLLERS = ("memory", "devices", "freezer", "cpuset", "cpu", "cpuacct")
_CLONE_NEWNET = 0x40000000
_NAMESPACES = ("--net", "--mount", "--pid")
_PATH = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
# Joins the cgroups that are named before "--", then becomes what is named after it.
_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


@dataclass(frozen=True)
class Enclosure:
    """Namespaces in which machines run."""

    holder: int
    """The number of its first process."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """Children of ours that end with it."""

    def argv(self, *argv: str | Path) -> list[str]:
        """Say how to run a program of this machine inside."""
        words = [str(word) for word in argv]
        return ["/usr/bin/nsenter", f"--target={self.holder}", *_NAMESPACES, "--", *words]

    def run(self, *argv: str | Path, seconds: float = 60, **variables: str) -> str:
        """Run a program of this machine inside; return what it printed."""
        return _output(self.argv(*argv), seconds, {**os.environ, **variables})

    def start(self, *argv: str | Path) -> subprocess.Popen[bytes]:
        """Start one that ends with the enclosure at the latest."""
        return self.add(subprocess.Popen(self.argv(*argv), stdin=subprocess.DEVNULL))

    def lend(self, folder: Path, to: Path, written: Path) -> None:
        """Let a folder be seen elsewhere; what is written to it there is in a folder of its own."""
        upper, work = written / "upper", written / "work"
        for each in (upper, work, to):
            self.path(each).mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={folder},upperdir={upper},workdir={work}"
        self.run("/bin/mount", "-t", "overlay", "overlay", "-o", options, to)

    def add(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """Remember a child of ours that ends with the enclosure."""
        self.processes.append(process)
        return process

    def network(self) -> AbstractContextManager[None]:
        """Be in its network, with the thread that asks and what that starts."""
        return _network_of(self.holder)

    def path(self, inside: str | Path) -> Path:
        """Return where a file of the enclosure's mounts is for us."""
        return Path(f"/proc/{self.holder}/root") / str(inside).lstrip("/")


@contextmanager
def _network_of(pid: int) -> Iterator[None]:
    with open("/proc/thread-self/ns/net") as ours, open(f"/proc/{pid}/ns/net") as its:
        _join_network(its.fileno())
        try:
            yield
        finally:
            _join_network(ours.fileno())


def _join_network(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def enclosure() -> Iterator[Enclosure]:
    """Hold an enclosure until the end, or until this process dies."""
    held = hold(outlives_us=False)
    try:
        yield held
    finally:
        end(held)


def hold(*, outlives_us: bool) -> Enclosure:
    """Start the process that holds an enclosure."""
    _sweep()
    bound = [] if outlives_us else ["/usr/bin/setpriv", "--pdeathsig=KILL", "--"]
    argv = ["/usr/bin/unshare", *_NAMESPACES, "--mount-proc", "--fork", "--kill-child"]
    maker = subprocess.Popen(
        [*bound, *argv, "/bin/sleep", "infinity"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=outlives_us,
    )
    (holder,) = until(lambda: children(maker.pid), seconds=10, what="the namespaces")
    # Before that it is not yet in a /proc of its own.
    name = Path(f"/proc/{holder}/comm")
    until(lambda: name.read_text() == "sleep\n", seconds=10, what="the enclosure", every=0.01)
    return Enclosure(holder, [maker])


def end(held: Enclosure) -> None:
    """End an enclosure with all that is in it."""
    os.kill(held.holder, signal.SIGKILL)
    # nsenter stops with a program that was stopped, and then would not see it end.
    for process in held.processes:
        process.send_signal(signal.SIGCONT)
    gone = Path(f"/proc/{held.holder}")
    until(lambda: not gone.exists(), seconds=60, what="the enclosure has ended")
    for process in held.processes:
        process.wait(30)
    _sweep()


def children(pid: int) -> list[int]:
    """Return the numbers of a process' children."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _first(pid: int) -> list[int]:
    """Return which of a process' children is PID 1 of a namespace, when there is one."""
    found = []
    for child in children(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{child}/status").read_text()
            (numbers,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
            if numbers.endswith("\t1"):
                found.append(child)
    return found


@dataclass
class Machine:
    """A machine in an enclosure."""

    enclosure: Enclosure
    name: str
    root: Path
    """Its root file system, as the enclosure sees it."""
    options: Sequence[str] = ()
    """More for systemd-nspawn."""
    leader: int = 0
    """The process that is its PID 1."""
    _nspawn: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def files(self) -> Path:
        """Its root file system, as we see it."""
        return self.enclosure.path(self.root)

    def run(self, *argv: str, seconds: float = 60, stdin: str = "", **variables: str) -> str:
        """Run something on it as root; return what it printed."""
        inside = ["/usr/bin/nsenter", f"--target={self.leader}", "--all", "--", *argv]
        return _output(inside, seconds, _PATH | variables, stdin)

    def network(self) -> AbstractContextManager[None]:
        """Be in its network, with the thread that asks and what that starts."""
        return _network_of(self.leader)

    def power_on(self) -> None:
        """Begin to boot; `wait_until_up` waits for the end of that."""
        cgroups = [str(folder) for folder in _own_cgroups(f"{self.enclosure.holder}-{self.name}")]
        nspawn = self.enclosure.argv(
            "/usr/bin/systemd-nspawn",
            *("--quiet", f"--directory={self.root}", f"--machine={self.name}"),
            *("--register=no", "--keep-unit", "--resolv-conf=off", "--console=pipe"),
            *self.options,
            "--boot",
        )
        process = subprocess.Popen(
            ["/bin/sh", "-c", _JOIN, "join", *cgroups, "--", *nspawn],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._nspawn = self.enclosure.add(process)

    def wait_until_up(self) -> None:
        """Wait until systemd has started all it should."""
        assert self._nspawn is not None
        outer = self._nspawn.pid
        (inner,) = until(lambda: children(outer), seconds=20, what=f"{self.name}'s systemd-nspawn")
        # Its helpers, which end while it boots, are children too.
        (self.leader,) = until(lambda: _first(inner), seconds=20, what=f"{self.name}'s PID 1")
        until(self._is_up, seconds=90, what=f"{self.name} has booted")
        for controller in _CONTROLLERS:
            self.run("/bin/mount", "-o", "remount,bind,rw", f"/sys/fs/cgroup/{controller}")

    def boot(self) -> None:
        """Switch it on and wait until it is up."""
        self.power_on()
        self.wait_until_up()

    def restart(self) -> None:
        """Shut it down as an administrator would, and boot it again."""
        self.power_off()
        self.boot()

    def power_off(self) -> None:
        """Shut it down as an administrator would."""
        assert self._nspawn is not None
        self.run("/bin/systemctl", "--no-block", "poweroff")
        self._nspawn.wait(120)

    def lose_power(self) -> None:
        """End it between two instructions: nothing is written, and nobody is told."""
        assert self._nspawn is not None
        os.kill(self.leader, signal.SIGKILL)
        self._nspawn.wait(60)

    def _is_up(self) -> bool:
        try:
            return self.run("/bin/systemctl", "is-system-running").strip() == "running"
        except RuntimeError:
            return False


def _hierarchies() -> Iterator[Path]:
    """Give our own cgroup in every hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controller, ours = line.split(":", 2)
        name = controller.removeprefix("name=") or "unified"
        yield _CGROUPS / name / ours.lstrip("/")


def _own_cgroups(name: str) -> list[Path]:
    """Make a cgroup below ours in every hierarchy: systemd takes the one it is in for all."""
    made = []
    for parent in _hierarchies():
        folder = parent / f"machine-{name}"
        folder.mkdir(exist_ok=True)
        for limit in ("cpuset.cpus", "cpuset.mems"):
            if (folder / limit).exists():
                (folder / limit).write_text((parent / limit).read_text())
        made.append(folder)
    return made


def _sweep() -> None:
    """Remove the cgroups of enclosures that have ended."""
    for parent in _hierarchies():
        for folder in parent.glob("machine-*-*"):
            if not Path("/proc", folder.name.split("-")[1]).exists():
                for inner, _, _ in os.walk(folder, topdown=False):
                    # Who ends another beside us sweeps, too; what entered that one may still end.
                    with suppress(OSError):
                        os.rmdir(inner)


def _output(argv: list[str], seconds: float, environment: dict[str, str], stdin: str = "") -> str:
    done = subprocess.run(
        argv,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv}: {done.returncode}\n{done.stdout[-200_000:]}{done.stderr}")
    return done.stdout
