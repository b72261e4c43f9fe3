"""A small Slurm with an accounting: real slurmdbd and MariaDB, in a folder that goes at the end.

The test instance has no accounting, as many sites have none. Munge is the instance's.
"""

import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.instance import Instance
from tests.waiting import until

NODE = "accounted001"

_MARIADB = ("--no-defaults", "--datadir={folder}/database")
_SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={munge}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageUser=slurm
StorageHost=localhost
StorageLoc=slurm_accounting
PidFile={folder}/run/slurmdbd.pid
LogFile={folder}/run/slurmdbd.log
"""
_SLURM_CONF = """\
ClusterName=accounted
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={munge}
AccountingStorageTRES=gres/gpu
StateSaveLocation={folder}/run
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/run/slurmctld.log
SlurmdLogFile={folder}/run/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
DefMemPerCPU=1024
KillWait=2
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
SlurmdParameters=config_overrides
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={slurmd_port} Sockets=2 \
CoresPerSocket=20 ThreadsPerCore=1 RealMemory=393216 Gres=gpu:v100:4 State=UNKNOWN
PartitionName=sxm2 Nodes={node} MaxTime=12:00:00 State=UP Default=YES
"""


@dataclass(frozen=True)
class AccountedCluster:
    """A running cluster whose jobs are accounted."""

    conf: Path

    def slurm(self, *argv: str, user: str | None = None) -> str:
        """Run one of Slurm's programs, as root or as a user; return what it printed."""
        prefix = [] if user is None else ["/usr/sbin/runuser", "-u", user, "--"]
        done = subprocess.run(
            [*prefix, *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={"SLURM_CONF": str(self.conf), "LC_ALL": "C", "PATH": "/usr/bin:/bin", "TZ": "UTC"},
            cwd="/",
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stderr}")
        return done.stdout


@contextmanager
def running(portal: Instance) -> Iterator[AccountedCluster]:
    """Start MariaDB, slurmdbd, slurmctld and one slurmd; end them, and what they started."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="accounted-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        cluster = AccountedCluster(folder / "slurm.conf")
        _write_configuration(folder, portal)
        _start_database(folder, stack)
        environment = {"SLURM_CONF": str(cluster.conf), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        # slurmdbd has no setting for the socket; its client library reads this.
        at = {"MYSQL_UNIX_PORT": str(_socket(folder))}
        _start(["/usr/sbin/slurmdbd", "-D"], folder, stack, user="slurm", env=environment | at)
        until(lambda: _knows_cluster(cluster), seconds=30, what="slurmdbd answers")
        _start(["/usr/sbin/slurmctld", "-D"], folder, stack, user="slurm", env=environment)
        _start(["/usr/sbin/slurmd", "-D", "-N", NODE], folder, stack, env=environment)
        until(lambda: _is_idle(cluster), seconds=30, what=f"{NODE} is idle")
        yield cluster


def _knows_cluster(cluster: AccountedCluster) -> bool:
    with suppress(RuntimeError):
        cluster.slurm("sacctmgr", "--immediate", "add", "cluster", "accounted")
    with suppress(RuntimeError):
        return "accounted" in cluster.slurm("sacctmgr", "--noheader", "list", "cluster")
    return False


def _is_idle(cluster: AccountedCluster) -> bool:
    with suppress(RuntimeError):
        return "idle" in cluster.slurm("sinfo", "--noheader", "-o", "%T")
    return False


def _write_configuration(folder: Path, portal: Instance) -> None:
    slurm = pwd.getpwnam("slurm")
    for name in ("run", "spool"):
        (folder / name).mkdir()
    os.chown(folder / "run", slurm.pw_uid, slurm.pw_gid)
    munge = portal.slurm("scontrol", "show", "config").partition("AuthInfo")[2].split()[1]
    dbd_port, ctld_port, slurmd_port = _free_ports(3)
    words = {
        "folder": folder,
        "munge": munge.removeprefix("socket="),
        "host": socket.gethostname().split(".")[0],
        "node": NODE,
        "dbd_port": dbd_port,
        "ctld_port": ctld_port,
        "slurmd_port": slurmd_port,
    }
    (folder / "slurm.conf").write_text(_SLURM_CONF.format(**words))
    dbd = folder / "slurmdbd.conf"
    dbd.write_text(_SLURMDBD_CONF.format(**words))
    dbd.chmod(0o600)
    os.chown(dbd, slurm.pw_uid, slurm.pw_gid)
    (folder / "gres.conf").write_text(
        f"AutoDetect=off\nName=gpu Type=v100 File={folder}/gpu[0-3]\n"
    )
    for number in range(4):
        # As /dev/null: Slurm counts a GPU only where there is a device.
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def _start_database(folder: Path, stack: ExitStack) -> None:
    options = [option.format(folder=folder) for option in _MARIADB]
    for name in ("database", "socket"):
        (folder / name).mkdir()
        shutil.chown(folder / name, "mysql")
    subprocess.run(
        ["/usr/bin/mariadb-install-db", *options, "--user=mysql", "--skip-test-db"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    # Nobody but the machine's own accounts come in, by the socket that slurmdbd is told of.
    place = f"--socket={_socket(folder)}"
    extra = [
        "--skip-networking",
        "--innodb-buffer-pool-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    _start(["/usr/sbin/mariadbd", *options, place, *extra], folder, stack, user="mysql", env={})
    grant = (
        "CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;"
        "GRANT ALL ON slurm_accounting.* TO slurm@localhost"
    )
    asks = ["/usr/bin/mariadb", "--no-defaults", place, "-u", "root", "-e", grant]
    until(
        lambda: subprocess.run(asks, capture_output=True, timeout=10, check=False).returncode == 0,
        seconds=30,
        what="MariaDB answers",
    )


def _socket(folder: Path) -> Path:
    return folder / "socket/mariadb"


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _start(
    argv: list[str], folder: Path, stack: ExitStack, *, env: dict[str, str], user: str | None = None
) -> None:
    account = None if user is None else pwd.getpwnam(user)
    with (folder / "daemons.log").open("ab") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            cwd="/",
            user=user,
            group=account and account.pw_gid,
            extra_groups=None if user is None else [],
        )
    stack.callback(_end, process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
