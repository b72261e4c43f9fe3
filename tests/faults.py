"""Faults of the real parts, and their repair."""

import fcntl
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import httpx

from tests.instance import FILLER, PREFIX, ROOT, SETTINGS, Instance, trust
from tests.waiting import until

SYSTEMD = Path("/run/systemd/system")
"""It is there where systemd runs (sd_booted(3)); elsewhere supervisor runs the services."""

_SMALL_DISK_BYTES = 64 << 20


@cache
def _venv() -> str:
    return subprocess.run(
        [str(ROOT / "deploy" / "venv"), "deploy"], check=True, capture_output=True, text=True
    ).stdout.strip()


def service(verb: str, name: str, settings: Path = SETTINGS.parent) -> str:
    """Start, stop or restart a service of the test instance, or ask for its ``pid``."""
    if SYSTEMD.is_dir():
        unit = f"{settings.name.removeprefix('data-scientist-')}-{name}.service"
        words = ["show", "--property=MainPID", "--value"] if verb == "pid" else [verb]
        argv = ["/bin/systemctl", *words, unit]
    else:
        conf = settings / "supervisor" / "supervisord.conf"
        argv = [f"{_venv()}/bin/supervisorctl", "-c", str(conf), verb, name]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def pid_of(name: str) -> int:
    """Return the number of a service's process, once it has one: 0 would be our own group."""
    return until(lambda: int(service("pid", name)), seconds=30, what=f"{name} runs")


def kill(name: str) -> None:
    """End a service with SIGKILL; what supervises it starts it again."""
    pid = pid_of(name)
    os.kill(pid, signal.SIGKILL)
    until(lambda: service("pid", name) not in ("0", str(pid)), seconds=30, what=f"{name} is back")


def service_of_hub(module: str) -> int:
    """Return the number of the process that the hub runs for one of its services; 0 for none."""
    for child in children_of(pid_of("hub")):
        with suppress(OSError):
            if module.encode() in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return child
    return 0


def children_of(pid: int) -> list[int]:
    """Return the processes that one has made, and not those that they have made."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_hub(portal: Instance) -> None:
    """Wait until the hub answers, through the proxy too, and the proxy has its routes."""

    def answers() -> bool:
        try:
            answers = [portal.hub("GET", "/api/", timeout=5)]
            # A proxy that was started anew leads all to the hub, which does not know this page.
            for path in ("/hub/api/", "/services/cluster/"):
                address = f"{portal.url}{path}"
                answers.append(httpx.get(address, timeout=5, follow_redirects=True, verify=trust()))
            return all(answer.status_code == 200 for answer in answers)
        # A hub that starts writes its authorities' files anew (OSError: one is half there).
        except (httpx.HTTPError, OSError):
            return False

    until(answers, seconds=60, what="the hub answers")


def restart_hub(portal: Instance) -> None:
    """Restart the hub as an administrator does."""
    service("restart", "hub")
    wait_for_hub(portal)


def wait_for_nodes(portal: Instance) -> None:
    """Wait until every node has registered with a slurmctld that was started anew.

    A job with GPUs that is started before (seen with 22.05) leaves its node's GPUs counted as used
    for good.
    """

    def have_registered() -> bool:
        nodes = portal.slurm("scontrol", "--oneliner", "show", "node").splitlines()
        return bool(nodes) and not any("BootTime=None" in node for node in nodes)

    until(have_registered, seconds=60, what="the nodes have registered")


@contextmanager
def frozen(name: str) -> Iterator[None]:
    """Let a service stop answering (SIGSTOP), and go on."""
    with _stopped(pid_of(name)):
        yield


@contextmanager
def frozen_service_of_hub(module: str) -> Iterator[None]:
    """Let a process that the hub runs for one of its services stop, and go on."""
    pid = until(lambda: service_of_hub(module), seconds=60, what=f"the hub runs {module}")
    with _stopped(pid):
        yield


@contextmanager
def frozen_with_children(name: str) -> Iterator[None]:
    """Let a service whose children do its work say nothing: the machine still takes connections.

    PostgreSQL has a process for each connection; nginx has workers where systemd runs.
    """
    server = pid_of(name)
    with ExitStack() as stopped:
        # The server first: it makes the others.
        stopped.enter_context(_stopped(server))
        for child in children_of(server):
            stopped.enter_context(_stopped(child))
        yield


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    try:
        stop(pid)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def stop(pid: int) -> None:
    """Send SIGSTOP and wait until all threads of a process have stopped."""
    os.kill(pid, signal.SIGSTOP)

    def has_stopped() -> bool:
        stats = (file.read_text() for file in Path("/proc", str(pid), "task").glob("*/stat"))
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    until(has_stopped, seconds=10, what=f"{pid} has stopped", every=0.005)


EXHAUST_MEMORY = """
import os, subprocess
# Linux ends the process that is worst; this makes it the server, not the hungry program.
open(f'/proc/{os.getppid()}/oom_score_adj', 'w').write('1000')
hungry = ['/usr/bin/python3', '-c', 'x = b"x" * (4 << 30)']
subprocess.Popen(hungry, start_new_session=True)
"""
"""A cell that lets its session use more memory than it has."""


@contextmanager
def node_state(portal: Instance, node: str, state: str) -> Iterator[None]:
    """Set a node's state as an administrator does."""
    portal.slurm("scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=a test")
    try:
        yield
    finally:
        # A node that was set down may have come back by itself.
        until(lambda: _is_back(portal, node), seconds=60, what=f"{node} is back")


def _is_back(portal: Instance, node: str) -> bool:
    state = portal.slurm("sinfo", "-h", "-n", node, "-o", "%t").split()[0]
    if state.startswith(("drain", "drng", "down")):
        portal.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
    return state in ("idle", "mix", "alloc")


@contextmanager
def drained(portal: Instance) -> Iterator[None]:
    """Take all nodes out of service, as an administrator does before a maintenance."""
    names = portal.slurm("sinfo", "--noheader", "--Node", "-o", "%N").split()
    nodes = f"nodename={','.join(sorted(set(names)))}"
    portal.slurm("scontrol", "update", nodes, "state=drain", "reason=test")
    try:
        yield
    finally:
        portal.slurm("scontrol", "update", nodes, "state=resume")


@contextmanager
def node_cut_off(portal: Instance, node: str) -> Iterator[None]:
    """Let nothing pass between a virtual node and the others (nftables).

    All share one address: its slurmd is known by the port, and its jobs by their users.
    """
    shown = portal.slurm("scontrol", "--oneliner", "show", "node", node)
    port = re.findall(r" Port=(\d+)", shown)[0]
    users = portal.slurm("squeue", "--noheader", f"--nodelist={node}", "--format=%U").split()
    dropped = [f"tcp {end} {port} drop" for end in ("sport", "dport")]
    dropped += [f"meta skuid {user} drop" for user in sorted(set(users))]
    table = f"inet {PREFIX}_cut_off"
    chain = "\n".join(["type filter hook output priority 0;", *dropped])
    try:
        _nft(f"table {table} {{\nchain output {{\n{chain}\n}}\n}}\n")
        yield
    finally:
        _nft(f"table {table}\ndelete table {table}\n")


def _nft(rules: str) -> None:
    subprocess.run(["/usr/sbin/nft", "-f", "-"], input=rules, check=True, text=True)


@contextmanager
def jobs_hidden(portal: Instance) -> Iterator[None]:
    """Let Slurm show a job to nobody but its user and its own operators, as some sites do."""
    file = Path(portal.settings["slurm"]["config_file"])
    before = file.read_text(encoding="utf-8")
    file.write_text(f"PrivateData=jobs,usage\n{before}", encoding="utf-8")
    try:
        portal.slurm("scontrol", "reconfigure")
        yield
    finally:
        file.write_text(before, encoding="utf-8")
        portal.slurm("scontrol", "reconfigure")


@contextmanager
def only_backfill_starts(portal: Instance) -> Iterator[None]:
    """Put a job first in the queue that must wait: the backfill scheduler starts what comes next.

    slurmctld does not write of itself that it has started that.
    """
    asks = ["sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--wrap=exec sleep 1800"]
    job_ids: list[str] = []
    try:
        for nodes, minutes in ((1, 720), (3, 1)):
            shape = (f"--nodes={nodes}", f"--time={minutes}")
            job_ids.append(portal.slurm(*asks, *shape, user=FILLER).strip())
        first = job_ids[0]
        until(lambda: portal.job(first)["JobState"] == "RUNNING", seconds=20, what="the first runs")
        wait_for_written_jobs(portal)
        yield
    finally:
        for job_id in job_ids:
            portal.slurm("scancel", job_id)
        until(lambda: not set(job_ids) & set(portal.jobs()), seconds=30, what="nodes are free")


def backfilled(portal: Instance) -> int:
    """Return how many jobs the backfill scheduler has started since slurmctld was."""
    found = re.search(r"backfilled jobs \(since last slurm start\): (\d+)", portal.slurm("sdiag"))
    assert found
    return int(found[1])


def wait_for_written_jobs(portal: Instance) -> None:
    """Wait until slurmctld has written its jobs and is at rest.

    It writes at most every five seconds: now it writes the next submission at once, and therefore
    not that the job has started.
    """
    file = Path(portal.settings["backup"]["slurm_state_dir"], "job_state")
    until(lambda: time.time() - file.stat().st_mtime > 6, seconds=60, what="jobs are written")


@contextmanager
def site_file(portal: Instance, text: str) -> Iterator[None]:
    """Run the hub with a file of the site's own in ``conf.d``."""
    file = SETTINGS.parent / "conf.d" / "test.py"
    made_folder = not file.parent.exists()
    file.parent.mkdir(exist_ok=True)
    try:
        file.write_text(text, encoding="utf-8")
        restart_hub(portal)
        yield
    finally:
        file.unlink(missing_ok=True)
        if made_folder:
            file.parent.rmdir()
        restart_hub(portal)


@contextmanager
def setting(portal: Instance, line: str, other: str) -> Iterator[None]:
    """Run the hub with a line of its settings changed."""
    with settings(portal, {line: other}):
        yield


@contextmanager
def settings(portal: Instance, changes: Mapping[str, str]) -> Iterator[None]:
    """Run the hub with lines of its settings changed."""
    text = before = SETTINGS.read_text(encoding="utf-8")
    for line, other in changes.items():
        assert before.splitlines().count(line) == 1, f"not one line {line!r} in {SETTINGS}"
        text = text.replace(f"{line}\n", f"{other}\n")
    try:
        SETTINGS.write_text(text, encoding="utf-8")
        restart_hub(portal)
        yield
    finally:
        SETTINGS.write_text(before, encoding="utf-8")
        restart_hub(portal)


@contextmanager
def stand_in_for_squeue(portal: Instance, words: str) -> Iterator[Path]:
    """Let the hub ask a stand-in for squeue: it prints ``words`` while the file given exists.

    Slurm's own squeue cannot be made to print garbage.
    """
    # Where the hub's user gets to.
    programs = Path(portal.settings["hub"]["state_dir"], "stand-in")
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir(mode=0o755)
    flag = programs / "squeue-is-broken"
    for name in ("sinfo", "scontrol"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    (programs / "words").write_text(words, encoding="utf-8")
    squeue = programs / "squeue"
    squeue.write_text(
        f"#!/bin/bash\nif [ -e {flag} ]; then exec /bin/cat {programs}/words; fi\n"
        'exec /usr/bin/squeue "$@"\n'
    )
    squeue.chmod(0o755)
    try:
        with site_file(portal, f"c.GpuSlurmSpawner.slurm_bin_dir = {str(programs)!r}\n"):
            yield flag
    finally:
        shutil.rmtree(programs)


@contextmanager
def counted(portal: Instance, program: str) -> Iterator[Callable[[], list[str]]]:
    """Count how often the hub runs one of Slurm's programs; give the argvs so far."""
    programs = Path(portal.settings["hub"]["state_dir"], "counted")
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir(mode=0o755)
    for name in ("squeue", "sinfo", "scontrol"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    calls = programs / "calls"
    calls.touch()
    calls.chmod(0o666)
    (programs / program).unlink()
    (programs / program).write_text(
        f'#!/bin/bash\necho "$*" >> {calls}\nexec /usr/bin/{program} "$@"\n'
    )
    (programs / program).chmod(0o755)
    try:
        with site_file(portal, f"c.GpuSlurmSpawner.slurm_bin_dir = {str(programs)!r}\n"):
            yield lambda: calls.read_text(encoding="utf-8").splitlines()
    finally:
        shutil.rmtree(programs)


@contextmanager
def account_deleted(name: str) -> Iterator[None]:
    """Take an account from the machine's own files, as its deletion does, and bring it back.

    userdel, too, refuses while the user's processes run, or takes the home with it.
    """
    with _accounts() as accounts:
        (line,) = (line for line in accounts if line.startswith(f"{name}:"))
        accounts.remove(line)
    try:
        yield
    finally:
        with _accounts() as accounts:
            accounts.append(line)


@contextmanager
def _accounts() -> Iterator[list[str]]:
    """Change the lines of the machine's accounts, under the lock of useradd: see lckpwdf(3)."""
    file, new = Path("/etc/passwd"), Path("/etc/passwd.of-a-test")
    with Path("/etc/.pwd.lock").open("a") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        yield lines
        new.write_text("".join(lines), encoding="utf-8")
        new.chmod(0o644)
        new.replace(file)


@contextmanager
def session_program(portal: Instance, text: str, more: str = "") -> Iterator[Path]:
    """Let sessions run a program of ours in the place of JupyterLab; give its file."""
    # Where every user gets to.
    program = Path(portal.settings["session"]["folders"]["isilon"]).with_name("session-program")
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    try:
        with site_file(portal, f"c.GpuSlurmSpawner.session_python = {str(program)!r}\n{more}"):
            yield program
    finally:
        program.unlink()


@contextmanager
def database_locked(portal: Instance) -> Iterator[None]:
    """Hold the hub's database, as a backup or a slow disk would."""
    path = Path(portal.settings["hub"]["state_dir"], "jupyterhub.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield
        database.execute("ROLLBACK")


@contextmanager
def hub_on_a_small_disk(portal: Instance) -> Iterator[None]:
    """Run the hub with its folder on a file system of its own, which `hub_disk_full` may fill.

    A tmpfs stands in for the disk, since the instance shares its own with the machine.
    """
    folder = Path(portal.settings["hub"]["state_dir"])
    disk = folder.with_name("small-disk")
    service("stop", "hub")
    disk.mkdir(exist_ok=True)
    size = f"size={_SMALL_DISK_BYTES},mode=0755"
    _run("/bin/mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk))
    try:
        _run("/bin/cp", "--archive", str(folder), str(disk))
        _run("/bin/mount", "--bind", str(disk / folder.name), str(folder))
        try:
            service("start", "hub")
            wait_for_hub(portal)
            yield
        finally:
            service("stop", "hub")
            # The hub's services, which work in it, notice its end a moment later.
            argv = ["/bin/umount", str(folder)]
            until(lambda: subprocess.call(argv) == 0, seconds=30, what="the disk is free")
        # Whole: a log of writes ahead that stays behind would be read as the new file's.
        shutil.rmtree(folder)
        _run("/bin/cp", "--archive", str(disk / folder.name), str(folder))
    finally:
        _run("/bin/umount", str(disk))
        disk.rmdir()
        service("start", "hub")
        wait_for_hub(portal)


@contextmanager
def hub_disk_full(portal: Instance) -> Iterator[None]:
    """Fill the disk of a hub that is on a small one, and make room again."""
    filler = Path(portal.settings["hub"]["state_dir"], "filler")
    try:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            # No more than the small disk has, should the folder be on another.
            for _ in range(_SMALL_DISK_BYTES // 4096):
                file.write(bytes(4096))
        assert shutil.disk_usage(filler).free == 0
        yield
    finally:
        filler.unlink(missing_ok=True)


@contextmanager
def hub_with_its_own_clock(portal: Instance) -> Iterator[None]:
    """Run the hub, and what it starts, by a clock that `hub_clock_ahead` may set (libfaketime).

    The clock of the machine, which is everybody's, cannot be set for one instance.
    """
    offset = _hub_clock(portal)
    offset.write_text("+0\n", encoding="utf-8")
    offset.chmod(0o644)
    file = SETTINGS.parent / "proxy.env"
    before = file.read_text(encoding="utf-8")
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    # Delays are counted by the other clock, which nobody sets.
    more = f"""\
LD_PRELOAD={library}
FAKETIME_TIMESTAMP_FILE={offset}
FAKETIME_CACHE_DURATION=1
FAKETIME_DONT_FAKE_MONOTONIC=1
"""
    try:
        file.write_text(f"{before}{more}", encoding="utf-8")
        restart_hub(portal)
        yield
    finally:
        file.write_text(before, encoding="utf-8")
        restart_hub(portal)
        offset.unlink()


@contextmanager
def hub_clock_ahead(portal: Instance, seconds: int = 3600) -> Iterator[None]:
    """Set the clock of a hub that has its own forward, and right again."""
    offset = _hub_clock(portal)
    try:
        offset.write_text(f"+{seconds}\n", encoding="utf-8")
        yield
    finally:
        offset.write_text("+0\n", encoding="utf-8")


def _hub_clock(portal: Instance) -> Path:
    return Path(portal.settings["hub"]["state_dir"]).with_name("hub-clock")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True)
