"""A Slurm cluster of virtual nodes for one benchmark: real daemons, private, gone at the end.

    with virtual_cluster.running(Size(nodes=64)) as cluster:
        print(cluster.slurm("sinfo"))

Debian's slurmctld, and a real ``slurmd -N NAME`` for each node, so that jobs really run. Nothing
is shared with another Slurm on the machine: munged, key, ports, state and node names are the
cluster's own, and every process of it is ended at the end.

Measured on 2 cores: 64 nodes stand in 1 s and take 0.3 GB, 1,000 nodes in 35 s and 3.5 GB. Debian's
package slurm-wlm-emulator would need one daemon for any number of nodes, but cannot be used: with
22.05.8 its daemons end at once with "Use of FrontendName in slurm.conf without Slurm being
configured/built with the --enable-front-end option", because they load the common library
(libslurmfull), which is built without it.

Cores, memory and GPUs are believed, not measured, and jobs are not confined: on a virtual node
there is nothing to confine them to.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.waiting import until

GPU_TYPE = "v100"
_PORTS = range(24000, 30000)
"""Above those of the six test instances, which may come up meanwhile, and below those that the
system gives away by itself (ip_local_port_range)."""
_CGROUPS = Path("/sys/fs/cgroup")
_PR_SET_CHILD_SUBREAPER = 36

_SLURM_CONF = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
DefMemPerCPU=1024
KillWait=2
MinJobAge=300
PropagateResourceLimits=NONE
EnforcePartLimits=ALL
JobRequeue=0
MaxJobCount=20000
ReturnToService=2
SlurmdTimeout=300
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=2
SlurmdParameters=config_overrides
NodeName=DEFAULT Sockets=2 CoresPerSocket={cores_per_socket} ThreadsPerCore=1 \
RealMemory={memory_mb} Gres=gpu:{gpu_type}:{gpus} State=UNKNOWN
{node_lines}
{partition_lines}
"""


@dataclass(frozen=True)
class Size:
    """How large a virtual cluster is; each node has the same size."""

    nodes: int
    gpus: int = 4
    cores: int = 40
    memory_mb: int = 384 * 1024
    partitions: tuple[str, ...] = ("sxm2", "shareq")
    """Each holds all nodes; the first is the default."""


@dataclass(frozen=True)
class VirtualCluster:
    """A running cluster."""

    folder: Path
    """Readable by every user of the machine."""
    size: Size
    version: str
    """Slurm's own word, such as ``slurm-wlm 22.05.8``."""

    @property
    def conf(self) -> Path:
        """Slurm's configuration file."""
        return self.folder / "slurm.conf"

    @property
    def node_names(self) -> list[str]:
        """The names of all nodes."""
        return _node_names(self.size.nodes)

    @property
    def environment(self) -> dict[str, str]:
        """What Slurm's programs need to find this cluster."""
        return {"SLURM_CONF": str(self.conf), "LC_ALL": "C", "PATH": "/usr/bin:/bin"}

    def slurm(self, *argv: str, user: str | None = None, stdin: str = "") -> str:
        """Run one of Slurm's programs, as root or as a user; return what it printed."""
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd="/",
            timeout=120,
            check=False,
            user=user,
            group=_group_of(user),
            extra_groups=None if user is None else [],
        )
        if done.returncode != 0:
            raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def states(self, *argv: str) -> dict[int, str]:
        """Return the state of every job that is not over; ``argv`` narrows the question."""
        lines = self.slurm("squeue", "--noheader", "-o", "%i %T", *argv).splitlines()
        return {int(number): state for number, state in map(str.split, lines)}


@contextmanager
def running(size: Size) -> Iterator[VirtualCluster]:
    """Start a cluster as root, wait until all nodes are idle, and end it with all its processes.

    Every process below this one is ended with it, and a SIGTERM ends this one in order.
    """
    _adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="virtual-cluster-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        _write_configuration(folder, size)
        elsewhere = stack.enter_context(_least_share(folder.name))
        stack.callback(_end_descendants)
        _start_munge(folder)
        env = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        _start(["/usr/sbin/slurmctld", "-D"], folder, user="slurm", env=env)
        for name in _node_names(size.nodes):
            pid = _start(["/usr/sbin/slurmd", "-D", "-N", name], folder, env=env)
            (elsewhere / "cgroup.procs").write_text(str(pid))
        version = subprocess.run(
            ["/usr/bin/sinfo", "--version"], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
        cluster = VirtualCluster(folder, size, version)
        until(lambda: _are_idle(cluster), seconds=120, what="all virtual nodes are idle")
        try:
            yield cluster
        finally:
            _end_jobs(cluster)


def _end_jobs(cluster: VirtualCluster) -> None:
    """Let the jobs end while there is a slurmctld to tell; what is left is ended with all else."""
    with suppress(RuntimeError, subprocess.TimeoutExpired, AssertionError):
        if numbers := list(map(str, cluster.states())):
            cluster.slurm("scancel", "--quiet", *numbers)
        until(lambda: not cluster.states(), seconds=60, what="all jobs have ended")


def _are_idle(cluster: VirtualCluster) -> bool:
    try:
        shown = cluster.slurm("sinfo", "--noheader", "--Node", "-o", "%N %T")
    except RuntimeError:
        return False  # slurmctld does not listen yet
    return {line.split()[1] for line in shown.splitlines()} == {"idle"}


def _node_names(nodes: int) -> list[str]:
    return [f"bench{number:04}" for number in range(1, nodes + 1)]


def _write_configuration(folder: Path, size: Size) -> None:
    host = socket.gethostname().split(".")[0]
    names = _node_names(size.nodes)
    all_names = f"bench[{names[0][-4:]}-{names[-1][-4:]}]"
    first = _free_ports(size.nodes + 1)
    node_lines = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
        for port, name in enumerate(names, start=first + 1)
    )
    partition_lines = "\n".join(
        f"PartitionName={partition} Nodes={all_names} MaxTime=12:00:00 State=UP"
        f" Default={'YES' if partition == size.partitions[0] else 'NO'}"
        for partition in size.partitions
    )
    (folder / "slurm.conf").write_text(
        _SLURM_CONF.format(
            name=folder.name,
            host=host,
            port=first,
            folder=folder,
            cores_per_socket=size.cores // 2,
            memory_mb=size.memory_mb,
            gpu_type=GPU_TYPE,
            gpus=size.gpus,
            node_lines=node_lines,
            partition_lines=partition_lines,
        )
    )
    (folder / "gres.conf").write_text(
        f"AutoDetect=off\nNodeName={all_names} Name=gpu Type={GPU_TYPE}"
        f" File={folder}/gpu[0-{size.gpus - 1}]\n"
    )
    for number in range(size.gpus):
        # As /dev/null: Slurm counts a GPU only where there is a device.
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    slurm = pwd.getpwnam("slurm")
    (folder / "spool").mkdir()
    (folder / "state").mkdir()
    os.chown(folder / "state", slurm.pw_uid, slurm.pw_gid)
    for log in ("slurmctld.log", "slurmctld.pid"):
        (folder / log).touch()
        os.chown(folder / log, slurm.pw_uid, slurm.pw_gid)


def _start_munge(folder: Path) -> None:
    account = pwd.getpwnam("munge")
    place = folder / "munge"
    place.mkdir(mode=0o755)
    key = place / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    for path in (place, key):
        os.chown(path, account.pw_uid, account.pw_gid)
    _start(
        [
            "/usr/sbin/munged",
            "--foreground",
            "--num-threads=2",
            f"--key-file={key}",
            f"--socket={place}/socket",
            f"--pid-file={place}/pid",
            f"--seed-file={place}/seed",
            f"--log-file={place}/log",
        ],
        folder,
        user="munge",
        env={},
    )
    until(lambda: (place / "socket").exists(), seconds=10, every=0.02, what="munged listens")


def _free_ports(count: int) -> int:
    """Return the first of so many neighbouring ports that were all free a moment ago."""
    first = _PORTS.start
    while first + count < _PORTS.stop:
        with ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    listener = stack.enter_context(socket.socket())
                    listener.bind(("127.0.0.1", port))
            except OSError:
                first = port + 1
            else:
                return first
    raise RuntimeError(f"there are no {count} neighbouring free ports")


# --- processes ---


@contextmanager
def _least_share(name: str) -> Iterator[Path]:
    """Make a cgroup whose processes get a core's time when nobody else wants it.

    The nodes' daemons and their jobs stand for other machines: what the hub's own does goes first.
    A nice value would not do: the kernel shares time by terminal session before it looks at that
    (autogroup, see sched(7)), and each job is one of its own.
    """
    version_1 = _CGROUPS / "cpu"
    group = (version_1 if version_1.is_dir() else _CGROUPS) / name
    group.mkdir()
    try:
        if version_1.is_dir():
            (group / "cpu.shares").write_text("2")
        else:
            (group / "cpu.weight").write_text("1")
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text(), seconds=10, what="all have ended")
        group.rmdir()


def _start(argv: list[str], folder: Path, *, env: dict[str, str], user: str | None = None) -> int:
    log: IO[bytes]
    with (folder / "daemons.log").open("ab") as log:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            cwd="/",
            user=user,
            group=_group_of(user),
            extra_groups=None if user is None else [],
        ).pid


def _group_of(user: str | None) -> int | None:
    return None if user is None else pwd.getpwnam(user).pw_gid


def _adopt_orphans() -> None:
    """Become the parent of what our children leave behind: a slurmd's jobs are then ours to end."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _end_descendants() -> None:
    """End every process below this one, and wait for them."""
    for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        for pid in _descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        with suppress(AssertionError):
            until(lambda: not _reaped_descendants(), seconds=seconds, what="all have ended")
            return


def _reaped_descendants() -> list[int]:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return _descendants()


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The second field is the program's name in parentheses, and may hold anything.
            rest = status.read_text().rpartition(")")[2].split()
            children.setdefault(int(rest[1]), []).append(int(status.parent.name))
    found, unseen = [], [os.getpid()]
    while unseen:
        below = children.get(unseen.pop(), [])
        found += below
        unseen += below
    return found
