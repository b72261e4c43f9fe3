"""End batch jobs that the scheduler remembers and nobody runs any more: SLURM_CONF NODE...

After daemons were killed, and then the jobs' processes, slurmctld would show such a job as running
until its node registers anew, and hold its GPUs. A job counts as lost when its script's node is one
of these, it started a while ago, and no cgroup of it there has a process. Prints what it ended.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
WIDTHS = {"JobID": 20, "BatchFlag": 10, "TimeUsed": 20, "BatchHost": 64}
YOUNG_SECONDS = 10


def seconds(text: str) -> int:
    """Read squeue's [DAYS-][HOURS:]MINUTES:SECONDS."""
    days, _, clock = text.rpartition("-")
    total = int(days or 0) * 86400
    for weight, part in zip((1, 60, 3600), reversed(clock.split(":"))):
        total += weight * int(part)
    return total


def lost(nodes: list[str]) -> set[str]:
    """Return the numbers of the jobs whose script is on none of the nodes it should be on."""
    fields = ",".join(f"{name}:{width}" for name, width in WIDTHS.items())
    argv = ["/usr/bin/squeue", "--noheader", "--states=RUNNING", f"--Format={fields}"]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode:
        sys.exit(f"the scheduler does not answer: {result.stderr.strip()}")
    found = set()
    for line in result.stdout.splitlines():
        job, batch, used, node = line.split()
        established = batch == "1" and node in nodes and seconds(used) > YOUNG_SECONDS
        if established and not has_processes(node, job):
            found.add(job)
    return found


def has_processes(node: str, job: str) -> bool:
    """Look into the job's cgroups, of version 1 or 2; empty ones may outlive it."""
    for place in (f"*/slurm_{node}/uid_*/job_{job}", f"*/{node}_slurmstepd.scope/job_{job}"):
        for folder in CGROUPS.glob(place):
            try:
                if any(tasks.read_text() for tasks in folder.rglob("cgroup.procs")):
                    return True
            except OSError:
                continue
    return False


def main() -> None:
    """Look twice: a job may be ending just now."""
    conf, *nodes = sys.argv[1:]
    os.environ.update(SLURM_CONF=conf, LC_ALL="C")
    first = lost(nodes)
    if not first:
        return
    time.sleep(3)
    for job in sorted(first & lost(nodes)):
        subprocess.run(["/usr/bin/scancel", job], timeout=30, check=True)
        print(f"ended lost job {job}")


main()
