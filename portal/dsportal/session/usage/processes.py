"""The processes of the session's job on this node, from ``/proc`` (proc(5))."""

import os
import re
from dataclasses import replace
from pathlib import Path

from dsportal.session.usage.last_use import Process, ProcessKey, Terminal

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_JOB = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)
# TensorBoard reads its folder again and again, whether somebody looks at it or not.
_TENSORBOARD = os.fsencode(str(Path(__file__).parents[1] / "tensorboard/server.py"))


def of_job(job_id: str, server_pid: int, proc: Path = _PROC) -> dict[ProcessKey, Process]:
    """Return this user's processes of the job; the server itself and its TensorBoard are marked.

    A user may have several sessions on one node. Slurm's cgroup tells whose a process is, and
    where there are none, the variables that it was started with: Slurm's own where slurmd began it,
    as the server itself and the steps of other jobs, and the session's.
    """
    found = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if folder.stat().st_uid != os.getuid() or not _is_of_job(folder, job_id):
                continue
            process = _read(folder)
            if int(folder.name) == server_pid or (
                process.parent == server_pid and _is_tensorboard(folder)
            ):
                process = replace(process, is_the_portals=True)
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        found[process.key] = process
    return found


def job_of(cgroups: str) -> str | None:
    """Return the job that a ``/proc/PID/cgroup`` names."""
    match = _JOB.search(cgroups)
    return match[1] if match else None


def _is_of_job(folder: Path, job_id: str) -> bool:
    job = job_of((folder / "cgroup").read_text(errors="replace"))
    if job is not None:
        return job == job_id
    entries = (folder / "environ").read_bytes().split(b"\0")
    is_slurmds = any(entry.startswith(b"SLURMD_NODENAME=") for entry in entries)
    name = "SLURM_JOB_ID" if is_slurmds else "PORTAL_JOB_ID"
    return f"{name}={job_id}".encode() in entries


def _is_tensorboard(folder: Path) -> bool:
    return _TENSORBOARD in (folder / "cmdline").read_bytes().split(b"\0")


def _read(folder: Path) -> Process:
    text = (folder / "stat").read_text(errors="replace")
    pid = int(folder.name)
    # The name, in brackets, may hold anything; fields are counted from the third one.
    fields = text[text.rindex(")") + 2 :].split()
    _, parent, group, session, terminal, foreground = fields[:6]
    cpu_ticks = sum(int(number) for number in fields[11:15])
    is_first_in_terminal = int(session) == pid and int(terminal) != 0
    read_bytes, written_bytes = _storage_bytes(folder)
    return Process(
        key=(pid, int(fields[19])),
        parent=int(parent),
        cpu_seconds=cpu_ticks / _TICKS,
        terminal=_terminal(folder, group == foreground) if is_first_in_terminal else None,
        read_bytes=read_bytes,
        written_bytes=written_bytes,
        resident_bytes=int(fields[21]) * _PAGE_BYTES,
    )


def _storage_bytes(folder: Path) -> tuple[int, int]:
    """Read what storage was asked to read and write; nothing where a program hides it."""
    try:
        text = (folder / "io").read_text()
    except PermissionError:
        return 0, 0
    counters = dict(line.split(": ") for line in text.splitlines())
    return int(counters["read_bytes"]), int(counters["write_bytes"])


def _terminal(folder: Path, is_at_prompt: bool) -> Terminal | None:
    """Read the times of the device, which are those of its last input and output."""
    try:
        device = os.readlink(folder / "fd/0")
        if not device.startswith("/dev/pts/"):
            return None
        times = os.stat(device)
    except OSError:
        return None
    return Terminal(times.st_atime, times.st_mtime, is_at_prompt)
