"""What Linux counts of a host, read from the texts of /proc and /sys."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

# /proc/diskstats counts in these, whatever the disk's own are (Documentation/admin-guide/iostats).
_SECTOR_BYTES = 512
# Not disks of their own, or seen a second time: maps over disks, and memory.
_NO_DISK = re.compile(r"(loop|ram|zram|dm-|md|sr|fd)\d*")


@dataclass(frozen=True)
class Counters:
    """All of it at one moment. Counters only grow; what is ``now_`` is of this moment."""

    cpu_busy_seconds: float
    """Of the cores that are asked for, together."""
    now_memory_mb: float
    """Used on the whole host: what cannot be given to another program."""
    received_bytes: int = 0
    sent_bytes: int = 0
    read_bytes: int = 0
    """From storage: disks of the host, and file servers (NFS)."""
    written_bytes: int = 0
    now_gpu_percents: tuple[float, ...] = ()
    now_gpu_memory_mb: tuple[float, ...] = ()


def busy_seconds(stat: str, cores: Collection[int], ticks_a_second: int) -> float:
    """Return for how long these cores were not idle, from /proc/stat (proc(5))."""
    busy = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name[:3] == "cpu" and name[3:].isdecimal() and int(name[3:]) in cores:
            # user nice system idle iowait irq softirq steal; guest is in user.
            user, nice, system, _idle, _wait, irq, softirq = map(int, fields[:7])
            busy += user + nice + system + irq + softirq
    return busy / ticks_a_second


def used_memory_mb(meminfo: str) -> float:
    """Return the memory that is in use, MiB, from /proc/meminfo."""
    kib = {name: int(rest.split()[0]) for name, rest in _pairs(meminfo).items()}
    return (kib["MemTotal"] - kib["MemAvailable"]) / 1024


def network_bytes(net_dev: str, interfaces: Collection[str]) -> tuple[int, int]:
    """Return the bytes received and sent by these interfaces, from /proc/net/dev."""
    counted = {name: rest.split() for name, rest in _pairs(net_dev).items() if name in interfaces}
    return sum(int(f[0]) for f in counted.values()), sum(int(f[8]) for f in counted.values())


def rdma_bytes(infiniband: Path) -> tuple[int, int]:
    """Return the bytes that RDMA received and sent, which pass by Linux's own network.

    ``infiniband`` is /sys/class/infiniband; its ports count in four bytes
    (Documentation/ABI/stable/sysfs-class-infiniband).
    """
    found = []
    for name in ("port_rcv_data", "port_xmit_data"):
        files = infiniband.glob(f"*/ports/*/counters/{name}")
        found.append(4 * sum(int(file.read_text()) for file in files))
    return found[0], found[1]


def disk_bytes(diskstats: str, disks: Collection[str]) -> tuple[int, int]:
    """Return the bytes read from and written to these disks, from /proc/diskstats."""
    rows = [line.split() for line in diskstats.splitlines()]
    counted = [row for row in rows if len(row) > 9 and row[2] in disks]
    return (
        sum(int(row[5]) for row in counted) * _SECTOR_BYTES,
        sum(int(row[9]) for row in counted) * _SECTOR_BYTES,
    )


def is_disk(name: str) -> bool:
    """Say whether a name of /sys/block is a disk's.

    >>> [is_disk(name) for name in ("nvme0n1", "sda", "dm-0", "loop7")]
    [True, True, False, False]
    """
    return not _NO_DISK.fullmatch(name)


def nfs_bytes(mountstats: str, mountinfo: str) -> tuple[int, int]:
    """Return the bytes that NFS servers sent and were sent, from /proc/self/mountstats.

    Of the eight numbers of a ``bytes:`` line the fifth and sixth are what went over the network
    (Linux, fs/nfs/super.c: serverreadbytes, serverwrittenbytes). Mounts of the same file system
    share their counters: each is counted once. /proc/self/mountinfo tells which do, as the counters
    grow from one mount's lines to the next one's.
    """
    # By newlines and spaces alone: names of mounts may have any other white space.
    fields = [line.split(" ") for line in mountinfo.split("\n")]
    systems = {field[4]: field[2] for field in fields if len(field) > 4}
    found: dict[str, list[str]] = {}
    place = ""
    for line in mountstats.split("\n"):
        if not line.startswith("\t"):
            place = line.partition(" mounted on ")[2].partition(" ")[0]
        name, _, rest = line.strip().partition(":")
        if name == "bytes":
            found.setdefault(systems.get(place, place), rest.split())
    counted = found.values()
    return sum(int(one[4]) for one in counted), sum(int(one[5]) for one in counted)


def rates(before: Counters, now: Counters, seconds: float, cores: int) -> dict[str, object]:
    """Return what happened between two moments, in shares and MB/s (1 MB: a million bytes)."""

    def speed(name: str) -> float:
        grown: int = getattr(now, name) - getattr(before, name)
        # What was unmounted or unplugged meanwhile took its counter away.
        return round(max(0, grown) / seconds / 1e6, 3)

    busy = (now.cpu_busy_seconds - before.cpu_busy_seconds) / seconds / cores
    return {
        "cpu_share": round(min(1.0, max(0.0, busy)), 4),
        "memory_mb": round(now.now_memory_mb, 1),
        "received_mb_per_second": speed("received_bytes"),
        "sent_mb_per_second": speed("sent_bytes"),
        "read_mb_per_second": speed("read_bytes"),
        "written_mb_per_second": speed("written_bytes"),
        "gpu_shares": [round(percent / 100, 2) for percent in now.now_gpu_percents],
        "gpu_memory_mb": list(now.now_gpu_memory_mb),
    }


def _pairs(text: str) -> Mapping[str, str]:
    split = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip(): rest for name, _, rest in split}
