"""A Slurm of one node in a root of its own, which submits a job for each line that it reads.

Run by `benchmarks.portal.job_start` inside that root, with what is there: it imports nothing of the
project. Prints ``ready`` with Slurm's version, then for each line on stdin a JSON object.

    python3 slurm_in_root.py CONTROLLER_PORT NODE_PORT
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

_PLACE = Path("/run/benchmark")
_CONF = """\
ClusterName=benchmark
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=4
PartitionName=all Nodes=ALL Default=YES
"""
_JOB = "#!/bin/sh\nexec date +%s.%N\n"


def _start(*argv: str) -> None:
    with (_PLACE / "daemons.log").open("a") as log:
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _ask(*argv: str, given: str = "") -> str:
    done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _begin(version: str, controller_port: str, node_port: str) -> None:
    for folder in ("state", "spool", "output"):
        (_PLACE / folder).mkdir(parents=True)
    os.environ["SLURM_CONF"] = str(_PLACE / "slurm.conf")
    (_PLACE / "slurm.conf").write_text(
        _CONF.format(
            host=socket.gethostname().split(".")[0],
            controller_port=controller_port,
            node_port=node_port,
            place=_PLACE,
        )
    )
    if not version.startswith("slurm-wlm 22."):
        # What 22.05 does not know, and does without where nothing asks for cgroups.
        (_PLACE / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    Path("/run/munge").mkdir(exist_ok=True)
    subprocess.run(["/bin/chown", "munge", "/run/munge"], check=True)
    _start("/usr/sbin/runuser", "-u", "munge", "--", "/usr/sbin/munged", "--foreground")
    _start("/usr/sbin/slurmctld", "-D")
    _start("/usr/sbin/slurmd", "-D", "-N", "node")
    deadline = time.monotonic() + 60
    while _ask("/usr/bin/sinfo", "-h", "-o", "%T") != "idle":
        if time.monotonic() > deadline:
            sys.exit("\n".join(log.read_text() for log in sorted(_PLACE.glob("*.log"))))
        time.sleep(0.2)


def _submit() -> dict[str, float]:
    began = time.time()
    job = _ask("/usr/bin/sbatch", "--parsable", f"--output={_PLACE}/output/%j", given=_JOB)
    submitted = time.time()
    output = _PLACE / "output" / job
    while not (output.exists() and output.read_text().endswith("\n")):
        time.sleep(0.02)
    # The next one finds an idle node.
    while _ask("/usr/bin/squeue", "-h"):
        time.sleep(0.1)
    return {"sbatch": submitted - began, "first_line": float(output.read_text()) - began}


def main() -> None:
    """Serve until stdin ends."""
    version = _ask("/usr/sbin/slurmd", "-V")
    _begin(version, *sys.argv[1:])
    print("ready", version, flush=True)
    for _ in sys.stdin:
        print(json.dumps(_submit()), flush=True)


if __name__ == "__main__":
    main()
