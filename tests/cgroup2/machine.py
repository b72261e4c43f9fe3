"""What runs inside the kernel of ``tests.uml``: a Slurm of one node, with cgroups of version 2.

Standard library only; the tests look at what is found here. The folder of the one argument holds
what the role says in ``cgroup.conf``.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.waiting import until  # noqa: E402 - from this clone

PLACE = Path("/srv/slurm")
OUTPUT = PLACE / "output/out"
ADDRESS = "10.99.0.1"
NODE = "node001"
CLUSTER = "portal"
NOBODY = 65534
MEMORY_MB = 200
# Devices that every kernel has, and no program needs; in the place of GPUs.
DEVICES = {"gpu0": (1, 7), "gpu1": (1, 11)}
CONF = f"""\
ClusterName={CLUSTER}
SlurmctldHost={NODE}({ADDRESS})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={PLACE}/munge.socket
CredType=cred/munge
StateSaveLocation={PLACE}/state
SlurmdSpoolDir={PLACE}/spool
SlurmctldPidFile={PLACE}/slurmctld.pid
SlurmdPidFile={PLACE}/slurmd.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/none
Epilog={PLACE}/epilog
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={NODE} NodeAddr={ADDRESS} CPUs=2 RealMemory=400 Gres=gpu:v100:2 State=UNKNOWN
PartitionName=all Nodes={NODE} Default=YES State=UP
"""
# There is no systemd in this kernel, which slurmd would ask for a scope of its own.
NO_SYSTEMD = "IgnoreSystemd=yes\n"
JOB = f"""\
#!/usr/bin/python3 -B
import json, os, sys
sys.path.insert(0, {str(ROOT / "portal")!r})
from pathlib import Path
from dsportal.session.usage.memory import JobMemory
from dsportal.session.usage.processes import job_of

memory = JobMemory.of_this_process()
before = memory.used_bytes()
held = b"x" * 50_000_000
found = {{
    "limit_gib": memory.limit_gib(),
    "grown": memory.used_bytes() - before,
    "job": job_of(Path("/proc/self/cgroup").read_text()),
    "cgroups": Path("/proc/self/cgroup").read_text(),
    "opened": [],
}}
for name in {list(DEVICES)}:
    try:
        os.close(os.open(f"{PLACE}/dev/{{name}}", os.O_RDONLY | os.O_NONBLOCK))
        found["opened"].append(name)
    except PermissionError:
        pass
if os.fork() == 0:
    too_much = b"x" * {2 * MEMORY_MB * 1_000_000}
    os._exit(0)
_, status = os.wait()
found["ended_by"] = os.WTERMSIG(status)
found["kills"] = memory.kills()
print(json.dumps(found), flush=True)
"""


def run(*argv: str | Path, **options: Any) -> str:
    """Run a program; its words are the error."""
    words = [str(word) for word in argv]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
    return str(done.stdout)


def prepare(folder: Path) -> None:
    """Mount what a machine has, and write the settings."""
    for kind, place in (("sysfs", "/sys"), ("tmpfs", "/run")):
        run("mount", "-t", kind, kind, place)
    run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
    # As systemd sets them up, for its scopes.
    groups = Path("/sys/fs/cgroup")
    (groups / "system.slice").mkdir()
    for group in (groups, groups / "system.slice"):
        (group / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    socket.sethostname(NODE)
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", "lo")
    for each in ("state", "spool", "dev"):
        (PLACE / each).mkdir(parents=True)
    OUTPUT.parent.mkdir()
    OUTPUT.parent.chmod(0o777)
    for name, numbers in DEVICES.items():
        run("mknod", "-m", "666", PLACE / "dev" / name, "c", *map(str, numbers))
    (PLACE / "slurm.conf").write_text(CONF)
    lines = [f"Name=gpu Type=v100 File={PLACE}/dev/{name}\n" for name in DEVICES]
    (PLACE / "gres.conf").write_text("".join(lines))
    (PLACE / "cgroup.conf").write_text((folder / "cgroup.conf").read_text() + NO_SYSTEMD)
    program = ROOT / "deploy/ansible/roles/slurm_node/files/epilog.py"
    # slurmd gives it none of its own variables, and without this one it may not end (`tests.uml`).
    tunables = f"GLIBC_TUNABLES={os.environ['GLIBC_TUNABLES']}"
    argv = f"/usr/bin/env {tunables} /usr/bin/python3 -ISB {PLACE}/epilog.py"
    (PLACE / "epilog").write_text(f"#!/bin/sh\nexec {argv}\n")
    (PLACE / "epilog").chmod(0o755)
    (PLACE / "epilog.py").write_text(program.read_text())
    settings = {"log": str(PLACE / "epilog.log"), "drain": False}
    (PLACE / "epilog.json").write_text(json.dumps(settings))
    (PLACE / "job").write_text(JOB)


def serve() -> None:
    """Start munge and Slurm."""
    key = PLACE / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    places = [f"--{what}-file={PLACE}/munge.{what}" for what in ("key", "pid", "log", "seed")]
    run("munged", "--force", f"--socket={PLACE}/munge.socket", *places)
    for name in ("slurmctld", "slurmd"):
        log = (PLACE / f"{name}.log").open("w")
        subprocess.Popen([name, "-D"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def is_idle() -> bool:
    """Say whether the node takes jobs."""
    try:
        return run("sinfo", "--noheader", "--format=%T").strip() == "idle"
    except (OSError, RuntimeError):
        return False


def state(job: str) -> str:
    """Return the state of a job."""
    (found,) = (
        word for word in run("scontrol", "show", "job", job).split() if word.startswith("JobState=")
    )
    return found.removeprefix("JobState=")


def as_nobody(*argv: str | Path, **variables: str) -> subprocess.Popen[bytes]:
    """Start a program as an ordinary user, outside of every job."""
    return subprocess.Popen(
        [
            "/usr/bin/setpriv",
            f"--reuid={NOBODY}",
            f"--regid={NOBODY}",
            "--clear-groups",
            *map(str, argv),
        ],
        env={**os.environ, **variables},
        cwd=OUTPUT.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def find() -> dict[str, Any]:
    """Run a job, and see what becomes of it."""
    submit = ("sbatch", "--parsable", "--gres=gpu:1", f"--mem={MEMORY_MB}", f"--output={OUTPUT}")
    said, _ = as_nobody(*submit, PLACE / "job").communicate(timeout=60)
    job = said.decode().strip()
    ours = {"SLURM_JOB_ID": job, "SLURMD_NODENAME": NODE, "SLURM_CLUSTER_NAME": CLUSTER}
    stray = as_nobody("/bin/sleep", "1000", **ours)
    others = as_nobody("/bin/sleep", "1000", **ours | {"SLURM_JOB_ID": "9999"})
    going = ("PENDING", "RUNNING", "COMPLETING")
    until(lambda: state(job) not in going, seconds=90, what="it ended")
    until(lambda: stray.poll() is not None, seconds=30, what="what it left behind was ended")
    return {
        "job_id": job,
        "said": json.loads(OUTPUT.read_text().splitlines()[0]),
        "state": state(job),
        "stray": stray.poll(),
        "others": others.poll(),
        "log": (PLACE / "epilog.log").read_text(),
    }


def main() -> None:
    """Leave what is found in the folder."""
    folder = Path(sys.argv[1])
    os.environ["SLURM_CONF"] = str(PLACE / "slurm.conf")
    prepare(folder)
    serve()
    try:
        until(is_idle, seconds=60, what="the node is idle")
        found = find()
    except (AssertionError, OSError, RuntimeError):
        for log in PLACE.glob("*.log"):
            sys.stdout.write(f"{log}: {log.read_text(errors='replace')[-5000:]}\n")
        raise
    (folder / "found.json").write_text(json.dumps(found))


main()
