"""End every job of a cluster: SLURM_CONF ADDRESS PORT NODE...

Asks the scheduler where it runs. Processes of jobs that nobody answers for any more, because a
daemon was killed, are found by their cgroup and killed. Prints what it ended.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
LIMIT_SECONDS = 60


def scheduler_listens(address: str, port: int) -> bool:
    """Tell at once, where a client command would try for 18 s."""
    try:
        socket.create_connection((address, port), timeout=3).close()
    except OSError:
        return False
    return True


def slurm(*argv: str) -> str:
    """Run one of Slurm's commands."""
    result = subprocess.run(
        argv, capture_output=True, text=True, timeout=30, check=True, stdin=subprocess.DEVNULL
    )
    return result.stdout


def jobs() -> list[str]:
    """Return the numbers of the jobs that hold or may come to hold anything."""
    return slurm("/usr/bin/squeue", "--noheader", "--states=all", "--format=%A %T").splitlines()


def living(lines: list[str]) -> list[str]:
    """Return the jobs that are not over."""
    states = {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT"}
    return sorted({line.split()[0] for line in lines if line.split()[1] in states})


def end_by_scheduler() -> None:
    """Cancel all jobs and wait until they are gone."""
    found = living(jobs())
    if not found:
        return
    print(f"cancelled {len(found)} jobs")
    slurm("/usr/bin/scancel", *found)
    deadline = time.monotonic() + LIMIT_SECONDS
    while living(jobs()) and time.monotonic() < deadline:
        time.sleep(0.3)


def processes(nodes: list[str]) -> set[int]:
    """Return the processes in the cgroups of these nodes' jobs."""
    found: set[int] = set()
    for node in nodes:
        # Version 1 has a tree for each controller, version 2 has one.
        for pattern in (f"*/slurm_{node}/uid_*/job_*", f"*/{node}_slurmstepd.scope/job_*"):
            for job in CGROUPS.glob(pattern):
                for tasks in job.rglob("cgroup.procs"):
                    found.update(map(int, read(tasks).split()))
    return found


def read(path: Path) -> str:
    """Read a cgroup's file; it may go away at any time."""
    try:
        return path.read_text()
    except OSError:
        return ""


def end_by_cgroup(nodes: list[str]) -> None:
    """Kill what is left."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while (found := processes(nodes)) and time.monotonic() < deadline:
        print(f"killed {len(found)} processes")
        for number in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.3)


def main() -> None:
    """End the jobs by the scheduler, and what is left by force."""
    conf, address, port, *nodes = sys.argv[1:]
    os.environ.update(SLURM_CONF=conf, LC_ALL="C")
    if Path(conf).exists() and scheduler_listens(address, int(port)):
        try:
            end_by_scheduler()
        except (subprocess.SubprocessError, OSError) as error:
            print(f"the scheduler does not answer: {error}")
    end_by_cgroup(nodes)


main()
