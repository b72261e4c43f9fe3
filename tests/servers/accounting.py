"""A small Slurm with an accounting: real slurmdbd and MariaDB, in a folder that goes at the end.

The test instance has no accounting, as many sites have none. Munge is the instance's.
"""

import json
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

from jinja2 import Environment

from tests.instance import ROOT, Instance
from tests.network.sockets import free_ports
from tests.waiting import until

NAME = "accounted"
NODE = "accounted001"

_SLURM_CONF = """\
ClusterName=accounted
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
{accounting}
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
MpiDefault=none
DefMemPerCPU=1024
KillWait=2
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=2
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

    def enrol(self, user: str, *, high_in: str) -> None:
        """Put a user into two accounts, physics (the default) and teaching; one has QOS high."""
        for change in (
            ("add", "qos", "high"),
            ("add", "account", "physics", "teaching"),
            ("add", "user", user, "account=physics", "defaultaccount=physics"),
            ("add", "user", user, "account=teaching"),
            ("modify", "user", user, "where", f"account={high_in}", "set", "qos=normal,high"),
        ):
            self.slurm("sacctmgr", "--immediate", *change)

    @property
    def database_socket(self) -> Path:
        """Where MariaDB listens."""
        return _socket(self.conf.parent)

    def register(self, **wanted: object) -> str:
        """Register what the role does, in its way; return what it changed."""
        script = ROOT / "deploy/ansible/roles/slurm_accounting/files/register.py"
        return self.slurm("/usr/bin/python3", str(script), json.dumps({"cluster": NAME, **wanted}))


@contextmanager
def running(portal: Instance, *lines: str) -> Iterator[AccountedCluster]:
    """Start MariaDB, slurmdbd, slurmctld and one slurmd; end them, and what they started.

    ``lines``: more of slurm.conf.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="accounted-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        cluster = AccountedCluster(folder / "slurm.conf")
        _write_configuration(folder, portal)
        with cluster.conf.open("a") as conf:
            conf.writelines(f"{line}\n" for line in lines)
        _start_database(folder, stack)
        environment = {"SLURM_CONF": str(cluster.conf), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        # slurmdbd has no setting for the socket; its client library reads this.
        at = {"MYSQL_UNIX_PORT": str(_socket(folder))}
        _start(["/usr/sbin/slurmdbd", "-D"], folder, stack, user="slurm", env=environment | at)
        with _log_in_errors(folder):
            until(lambda: _knows_cluster(cluster), seconds=30, what="slurmdbd answers")
        _start(["/usr/sbin/slurmctld", "-D"], folder, stack, user="slurm", env=environment)
        _start(["/usr/sbin/slurmd", "-D", "-N", NODE], folder, stack, env=environment)
        with _log_in_errors(folder):
            until(lambda: _is_idle(cluster), seconds=30, what=f"{NODE} is idle")
        stack.callback(_end_jobs, cluster)
        yield cluster


@contextmanager
def _log_in_errors(folder: Path) -> Iterator[None]:
    """Say what the daemons wrote where they do not come up."""
    try:
        yield
    except AssertionError as error:
        error.add_note((folder / "daemons.log").read_text(errors="replace")[-5000:])
        raise


def _end_jobs(cluster: AccountedCluster) -> None:
    """Leave no job: what a Slurm has not ended when it is taken down goes on."""
    if left := cluster.slurm("squeue", "--noheader", "--format=%A").split():
        cluster.slurm("scancel", *left)
    until(lambda: not cluster.slurm("squeue", "--noheader"), seconds=60, what="no job is left")


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
    dbd_port, ctld_port, slurmd_port = free_ports(3)
    words: dict[str, object] = {
        "folder": folder,
        "munge": munge.removeprefix("socket="),
        "host": socket.gethostname().split(".")[0],
        "node": NODE,
        "dbd_port": dbd_port,
        "ctld_port": ctld_port,
        "slurmd_port": slurmd_port,
    }
    site = {
        "slurm_munge_socket": words["munge"],
        "slurm_controller_host": words["host"],
        "slurm_controller_address": "127.0.0.1",
        "slurm_accounting_port": dbd_port,
        "slurm_accounting_enforce": ["limits", "qos"],
        "slurm_accounting_database": "slurm_accounting",
        "slurm_accounting_keep_months": 24,
        "instance_run": folder / "run",
    }
    words["accounting"] = _from_role("slurm/templates/accounting.conf.j2", site)
    (folder / "slurm.conf").write_text(_SLURM_CONF.format(**words))
    (folder / "run/slurmdbd").mkdir()
    shutil.chown(folder / "run/slurmdbd", "slurm")
    dbd = folder / "slurmdbd.conf"
    dbd.write_text(_from_role("slurm_accounting/templates/slurmdbd.conf.j2", site))
    dbd.chmod(0o600)
    os.chown(dbd, slurm.pw_uid, slurm.pw_gid)
    (folder / "gres.conf").write_text(
        f"AutoDetect=off\nName=gpu Type=v100 File={folder}/gpu[0-3]\n"
    )
    for number in range(4):
        # As /dev/null: Slurm counts a GPU only where there is a device.
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def _start_database(folder: Path, stack: ExitStack) -> None:
    for name in ("database", "socket"):
        (folder / name).mkdir()
        shutil.chown(folder / name, "mysql")
    settings = folder / "mariadb.cnf"
    site = {
        "slurm_accounting_database": "slurm_accounting",
        "slurm_accounting_database_folder": folder / "database",
        "slurm_accounting_socket": _socket(folder),
        "slurm_accounting_socket_folder": folder / "socket",
        "slurm_accounting_buffer_pool": "16M",
    }
    settings.write_text(_from_role("slurm_accounting/templates/mariadb.cnf.j2", site))
    options = f"--defaults-file={settings}"
    subprocess.run(
        ["/usr/bin/mariadb-install-db", options, "--user=mysql", "--skip-test-db"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    quick = "--innodb-flush-log-at-trx-commit=0"
    _start(["/usr/sbin/mariadbd", options, quick], folder, stack, user="mysql", env={})
    # Nobody but the machine's own accounts come in, by the socket that slurmdbd is told of.
    grant = _from_role("slurm_accounting/templates/grants.sql.j2", site)
    asks = ["/usr/bin/mariadb", "--no-defaults", f"--socket={_socket(folder)}", "--user=root"]
    asks += ["-e", grant]
    until(
        lambda: subprocess.run(asks, capture_output=True, timeout=10, check=False).returncode == 0,
        seconds=30,
        what="MariaDB answers",
    )


def _from_role(template: str, variables: dict[str, object]) -> str:
    """Write a file as the deployment does."""
    text = (ROOT / "deploy/ansible/roles" / template).read_text(encoding="utf-8")
    given = {"ansible_managed": "by a test", **variables}
    return Environment(trim_blocks=True, autoescape=False).from_string(text).render(given)  # noqa: S701


def _socket(folder: Path) -> Path:
    return folder / "socket/mariadb"


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
