"""Slurm's ``HealthCheckProgram``: drain a node on which jobs would fail, and say why.

slurmd runs it as root, every few minutes and before it registers. It looks at

- folders of this host that are full;
- NVIDIA's GPUs: whether the driver still shows as many as the PCI bus has;
- the kernel's log since the last look, for Xid errors after which a GPU must be reset
  (https://docs.nvidia.com/deploy/xid-errors/).

What it finds is the host's, so all nodes of the host are drained, which lets their jobs end in
order. A node that somebody else has drained keeps their reason. One that was drained for full
folders alone resumes when there is room again; after a GPU's fault an administrator resumes it.

It ends with 0 whatever happens: where it does not, a newer slurmd does not register. A JSON file
beside it has the settings.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

KERNEL_LOG = Path("/dev/kmsg")
BOOT = Path("/proc/sys/kernel/random/boot_id")
PCI_DEVICES = Path("/sys/bus/pci/devices")
DRIVER = Path("/proc/driver/nvidia/version")
NVIDIA_SMI = ("/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi")
# Slurm ends this program after 60 s.
NVIDIA_SMI_SECONDS = 20
SCONTROL_SECONDS = 15
RECORD_BYTES = 8192  # CONSOLE_EXT_LOG_MAX of the kernel
FULL = "health: full: "
"""What the reason begins with where a node resumes by itself."""
FAULT = "health: "

# 6,1234,567,-;NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen ...
XID = re.compile(r"^\d+,(?P<number>\d+),[^;]*;NVRM: Xid \(PCI:(?P<gpu>[^)]+)\): (?P<xid>\d+),")
# ...: 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
RECOVERY = re.compile(r" to 0x0*(?P<action>[0-9a-f]+) \((?P<words>[^)]*)\)")
RECOVERY_XID = 154


@dataclass(frozen=True)
class HealthSettings:
    """What the deployment has written down."""

    nodes: list[str]
    """Of this host."""
    slurm_conf: str
    folders: list[str]
    free_mb: int
    """MiB that each folder must have left."""
    xids: list[int]
    seen: str
    """The file that says how far the kernel's log has been read."""


@dataclass(frozen=True)
class LogPosition:
    """How far the kernel's log has been read."""

    boot: str = ""
    number: int = -1
    """Of the last record."""

    @classmethod
    def read(cls, file: Path) -> "LogPosition":
        """Read it from a file; nothing has been seen where there is none of this boot."""
        boot = BOOT.read_text().strip()
        try:
            found = cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            return cls(boot)
        return found if found.boot == boot else cls(boot)

    def write(self, file: Path) -> None:
        """Keep it for the next run."""
        file.write_text(json.dumps({"boot": self.boot, "number": self.number}))


def full_folders(folders: Iterable[str], free_mb: int) -> list[str]:
    """Say which folders have less room than that; one that is missing has none."""
    found = []
    for folder in folders:
        try:
            room = os.statvfs(folder)
        except OSError as error:
            found.append(f"{folder}: {error.strerror}")
            continue
        free = room.f_bavail * room.f_frsize // 2**20
        if free < free_mb:
            found.append(f"{folder} has {free} MiB left")
        elif room.f_files and not room.f_favail:
            found.append(f"{folder} has no inodes left")
    return found


def gpus_of_bus(devices: Path = PCI_DEVICES) -> int:
    """Count NVIDIA's display controllers on the PCI bus."""
    count = 0
    for device in devices.iterdir() if devices.exists() else ():
        vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
        count += vendor == "0x10de" and kind.startswith("0x03")
    return count


def missing_gpus(devices: Path = PCI_DEVICES, programs: Sequence[str] = NVIDIA_SMI) -> list[str]:
    """Say what is wrong with the GPUs by the driver."""
    program = next((path for path in programs if os.access(path, os.X_OK)), None)
    there = gpus_of_bus(devices)
    if program is None or not there:
        return []
    try:
        done = subprocess.run(
            [program, "--query-gpu=index", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=NVIDIA_SMI_SECONDS,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [f"nvidia-smi does not answer for {NVIDIA_SMI_SECONDS} s"]
    shown = sum(line.strip().isdecimal() for line in done.stdout.splitlines())
    return [f"the driver shows {shown} of {there} GPUs"] if shown < there else []


def kernel_log(file: Path = KERNEL_LOG) -> str:
    """Read all of the kernel's log that is still there: one record for each read.

    A container may have none.
    """
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    records = []
    try:
        while True:
            try:
                record = os.read(handle, RECORD_BYTES)
            except BrokenPipeError:
                # Overwritten before it was read; the next one is there.
                continue
            except BlockingIOError:
                break
            if not record:
                break
            records.append(record)
    finally:
        os.close(handle)
    return b"".join(records).decode(errors="replace")


def xids(log: str, wanted: Iterable[int], seen: LogPosition) -> tuple[list[str], LogPosition]:
    """Say which GPUs had such an error since then, and how far the log goes."""
    codes = set(wanted)
    found: dict[str, None] = {}
    last = seen.number
    for line in log.splitlines():
        words = line.split(",", 2)
        if len(words) == 3 and words[1].isdecimal():
            last = max(last, int(words[1]))
        match = XID.match(line)
        if match is None or int(match["number"]) <= seen.number:
            continue
        error = f"Xid {match['xid']} of GPU {match['gpu']}"
        if int(match["xid"]) in codes:
            found[error] = None
        elif codes and int(match["xid"]) == RECOVERY_XID:
            # The driver's own word, whatever the cause; also when nothing is needed any more.
            needed = RECOVERY.search(line)
            if needed and int(needed["action"], 16):
                found[f"{error}: {needed['words']}"] = None
    return list(found), LogPosition(seen.boot, last)


def decision(state: str, reason: str, full: Sequence[str], faults: Sequence[str]) -> list[str]:
    """Return what scontrol is to set of a node whose state and reason are these; mostly nothing."""
    is_drained = "DRAIN" in state
    if faults and (not is_drained or reason.startswith(FULL)):
        return ["State=DRAIN", f"Reason={FAULT}{'; '.join([*faults, *full])}"]
    if full and not is_drained:
        return ["State=DRAIN", f"Reason={FULL}{'; '.join(full)}"]
    if is_drained and reason.startswith(FULL) and not full:
        return ["State=RESUME"]
    return []


def scontrol(*words: str) -> str:
    """Ask Slurm; raises `subprocess.SubprocessError` where it does not answer."""
    return subprocess.run(
        ["/usr/bin/scontrol", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SCONTROL_SECONDS,
        check=True,
    ).stdout


def apply(nodes: Iterable[str], full: Sequence[str], faults: Sequence[str]) -> None:
    """Drain or resume the nodes as needed."""
    for node in nodes:
        said = scontrol("show", "node", "--oneliner", node)
        state = re.search(r" State=(\S+)", said)
        # " [root@2026-11-26T23:50:12]" follows.
        reason = re.search(r" Reason=(.*?)(?: \[[^][]*\])?(?: Comment=.*)?$", said.strip())
        words = decision(
            state.group(1) if state else "", reason.group(1) if reason else "", full, faults
        )
        if words:
            scontrol("update", f"NodeName={node}", *words)


def look(settings: HealthSettings) -> None:
    """Do it all, as the settings say."""
    os.environ |= {"SLURM_CONF": settings.slurm_conf, "LC_ALL": "C"}
    full = full_folders(settings.folders, settings.free_mb)
    faults = missing_gpus() if DRIVER.exists() else []
    file = Path(settings.seen)
    seen = LogPosition.read(file)
    errors, now = xids(kernel_log(), settings.xids, seen)
    apply(settings.nodes, full, [*faults, *errors])
    # Only now: a Slurm that did not answer is told the next time.
    if now != seen:
        now.write(file)


def main() -> int:
    """Return 0."""
    try:
        look(HealthSettings(**json.loads(Path(sys.argv[0]).with_suffix(".json").read_text())))
    except Exception as error:  # noqa: BLE001  whatever it is, the node stays in use
        sys.stderr.write(f"the health check failed: {type(error).__name__}: {error}\n")
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
