"""After a job, on its node, as root: clear up what it left behind, and look at its GPUs' memory.

Slurm's ``Epilog``. The job's GPUs are free for others when this ends, so nothing here takes long.
It ends with 0 whatever happens, because Slurm drains the node otherwise; only where the settings
(a JSON file beside this one) ask for it does memory that is still held end it with 1.

Slurm ends all processes of the job's cgroup by itself. What is left was started for the job by
something outside (a daemon, at, a terminal multiplexer of the user's). A process counts as left
behind only if

- its user is the job's, and not root; and
- it is in the job's own cgroup, or in none of any job and its environment says that this very node
  of this very cluster started it in this very job, or in the portal's session that is this job; and
- it is in no login session of the machine.

A session whose server was killed leaves its folder for sockets in the temporary directory
(``portal/dsportal/session/files/home.py``), which is named by the job. The job's user removes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

PROC = Path("/proc")
LONGEST_SECONDS = 15
# The child's word; Python itself ends with 1 when something is wrong.
DRAIN = 3
NVIDIA_SMI = ("/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi")
NVIDIA_SMI_SECONDS = 8
CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
REMOVAL_SECONDS = 5
NOBODY = 65534
SCRATCH = Path("/tmp")  # noqa: S108  removed from as the user only
ROUNDS = 20
PAUSE_SECONDS = 0.1
LOG_BYTES = 10_000_000
# Below it is what a driver keeps for itself.
HELD_MB = 512

# Version 1: /slurm_NODE/uid_U/job_J/..., version 2: /.../NODE_slurmstepd.scope/job_J/...
JOB_GROUP = re.compile(
    r"/(?:slurm_(?P<v1>[^/]+)/uid_\d+|(?P<v2>[^/]+)_slurmstepd\.scope)/job_(?P<job>\d+)"
)
OF_SLURMD = ("SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_CLUSTER_NAME")
OF_SESSION = ("PORTAL_JOB_ID", "PORTAL_JOB_NODE", "PORTAL_JOB_CLUSTER")
LOGIN_GROUP = re.compile(r"/session-[^/]+\.scope")
GPU_NUMBERS = re.compile(r"\d+(,\d+)*", re.ASCII)


@dataclass(frozen=True)
class EndedJob:
    """The job that has ended."""

    number: str
    uid: int
    node: str
    cluster: str
    gpus: str = ""
    """Numbers of its GPUs on the node, with commas; empty for none."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> EndedJob:
        """Read what slurmd gives to an epilog; raises `KeyError` and `ValueError`."""
        gpus = environment.get("SLURM_JOB_GPUS", "")
        return cls(
            number=str(int(environment["SLURM_JOB_ID"])),
            uid=int(environment["SLURM_JOB_UID"]),
            node=environment["SLURMD_NODENAME"],
            cluster=environment["SLURM_CLUSTER_NAME"],
            gpus=gpus if GPU_NUMBERS.fullmatch(gpus) else "",
        )


def is_left_behind(job: EndedJob, uid: int, cgroups: str, environment: Mapping[str, str]) -> bool:
    """Say whether a process is of the job."""
    if uid != job.uid or uid == 0 or LOGIN_GROUP.search(cgroups):
        return False
    groups = [(m["v1"] or m["v2"], m["job"]) for m in JOB_GROUP.finditer(cgroups)]
    if groups:
        # Variables can be set by anybody; which job's group a process is in cannot.
        return all(group == (job.node, job.number) for group in groups)
    # What a session's user starts has none of Slurm's variables (dsportal/session/environment.py),
    # unless it is a job again: that one's slurmd has set them.
    names = OF_SLURMD if "SLURMD_NODENAME" in environment else OF_SESSION
    return tuple(map(environment.get, names)) == (job.number, job.node, job.cluster)


@dataclass(frozen=True)
class Stray:
    """A process that was left behind."""

    pid: int
    handle: int
    """A file descriptor of the process itself: its number may be given to another."""
    name: str


def strays(job: EndedJob, proc: Path = PROC) -> Iterator[Stray]:
    """Find what the job left behind; the caller closes the handles."""
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if real_uid(folder) != job.uid:
                continue
            handle = os.pidfd_open(int(folder.name))
        except (OSError, ValueError):
            continue
        try:
            # Read after the handle was taken, so that it is of the process that was looked at.
            cgroups = (folder / "cgroup").read_text(errors="replace")
            environment = variables((folder / "environ").read_bytes())
            name = (folder / "comm").read_text(errors="replace").strip()
            if not has_ended(folder) and is_left_behind(
                job, real_uid(folder), cgroups, environment
            ):
                yield Stray(int(folder.name), handle, name)
                handle = -1
        except (OSError, ValueError):
            pass
        finally:
            if handle >= 0:
                os.close(handle)


def has_ended(folder: Path) -> bool:
    """Say whether a process only waits for its parent to take note of its end."""
    return (folder / "stat").read_text(errors="replace").rpartition(") ")[2][:1] in "ZX"


def real_uid(folder: Path) -> int:
    """Return a process's user."""
    for line in (folder / "status").read_text(errors="replace").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    raise ValueError(folder)


def variables(environ: bytes) -> dict[str, str]:
    """Read ``/proc/PID/environ``: the environment that the program was started with."""
    pairs = (entry.decode(errors="replace").partition("=") for entry in environ.split(b"\0"))
    return {name: value for name, _, value in pairs}


def end_strays(job: EndedJob) -> tuple[dict[int, str], int]:
    """End them: asked once, then killed until none is left.

    Return those that were found, and how many are still there.
    """
    found: dict[int, str] = {}
    left = 0
    for attempt in range(ROUNDS):
        left = 0
        # A half of the rounds to end in order.
        is_patient = attempt < ROUNDS // 2
        for stray in strays(job):
            left += 1
            is_new = stray.pid not in found
            found[stray.pid] = stray.name
            try:
                if not is_patient:
                    signal.pidfd_send_signal(stray.handle, signal.SIGKILL)
                elif is_new:
                    signal.pidfd_send_signal(stray.handle, signal.SIGTERM)
            except ProcessLookupError:
                pass
            finally:
                os.close(stray.handle)
        if not left:
            break
        time.sleep(PAUSE_SECONDS)
    return found, left


def remove_folders(job: EndedJob) -> None:
    """Remove the job's session's folder, with no more rights than the job's user had."""
    folders = list(SCRATCH.glob(f"session-{job.number}-*"))
    if not folders or job.uid == 0:
        return
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        # Whatever the user has put there, it keeps the GPUs from others for this long at most.
        signal.alarm(REMOVAL_SECONDS)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(job.uid, job.uid, job.uid)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)


def held_mb(text: str) -> dict[str, int]:
    """Read nvidia-smi's ``index,memory.used``: ``0, 14563``; what is not a number is left out."""
    held = {}
    for line in text.splitlines():
        index, _, used = (part.strip() for part in line.partition(","))
        if used.isdecimal() and int(used) > HELD_MB:
            held[index] = int(used)
    return held


def gpu_memory(job: EndedJob) -> dict[str, int]:
    """Return MiB still held on the job's GPUs, by number; nothing where there is no nvidia-smi."""
    program = next((path for path in NVIDIA_SMI if os.access(path, os.X_OK)), None)
    # Of GPUs in slices Slurm counts the slices, and nvidia-smi the GPUs, which others have, too.
    if program is None or not job.gpus or any(CAPABILITIES.glob("gpu*/mig/gi*")):
        return {}
    argv = [program, "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
    done = subprocess.run(
        [*argv, "-i", job.gpus],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=NVIDIA_SMI_SECONDS,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        check=True,
    )
    return held_mb(done.stdout)


def note(log: str, line: str) -> None:
    """Append a line to the log, which stays small."""
    stamped = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n"
    try:
        with open(log, "a", encoding="utf-8", errors="replace") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.tell() > LOG_BYTES:
                os.replace(log, f"{log}.1")
            file.write(stamped)
    except OSError:
        sys.stderr.write(stamped)


def printable(text: str) -> str:
    """Keep what a user chose from looking like another line of the log."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def clean_up(job: EndedJob, log: str) -> dict[str, int]:
    """Do it all; return the memory still held, by GPU."""
    found, left = end_strays(job)
    on = f"job {job.number} of user {job.uid} on {job.node}"
    if found:
        names = ", ".join(f"{pid} ({printable(name)})" for pid, name in sorted(found.items())[:20])
        note(log, f"{on} left {len(found)} processes behind, ended: {names}")
    if left:
        note(log, f"{on}: {left} processes could not be ended")
    remove_folders(job)
    held = gpu_memory(job)
    for gpu, used in held.items():
        note(log, f"{on}: {used} MiB are still held on GPU {gpu}")
    return held


def work(settings: Mapping[str, object]) -> int:
    """Return `DRAIN` to have the node drained, else 0."""
    log = str(settings["log"])
    try:
        held = clean_up(EndedJob.of(os.environ), log)
    except Exception as error:  # noqa: BLE001  whatever it is, the node stays in use
        note(log, f"the epilog failed: {type(error).__name__}: {error}")
        return 0
    return DRAIN if held and settings["drain"] else 0


def main() -> int:
    """Have a child do the work: what hangs in the kernel cannot be interrupted, only left."""
    settings = json.loads(Path(sys.argv[0]).with_suffix(".json").read_text())
    child = os.fork()
    if child == 0:
        # slurmd waits until nobody writes to it any more.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os._exit(work(settings))

    def give_up(_: int, __: FrameType | None) -> None:
        os.kill(child, signal.SIGKILL)
        note(settings["log"], f"gave up after {LONGEST_SECONDS} s: something on this node hangs")
        os._exit(0)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST_SECONDS)
    _, status = os.waitpid(child, 0)
    return 1 if os.waitstatus_to_exitcode(status) == DRAIN else 0


if __name__ == "__main__":
    os.umask(0o027)
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.stderr.write(f"the epilog failed: {error}\n")
