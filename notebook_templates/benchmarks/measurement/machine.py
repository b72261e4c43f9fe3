"""What a host is: said with each measurement, so that figures can be compared."""

import csv
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

_NVIDIA_SMI = "/usr/bin/nvidia-smi"
_ASKED = "name,memory.total,driver_version"
_SECONDS = 30


def host() -> dict[str, Any]:
    """Describe this host: its processor, the cores and memory, and the GPUs seen by this process.

    ``cores`` are those that this process may use; memory is the host's, in MiB.
    """
    return {
        "name": node_name(),
        "processor": _first_field(Path("/proc/cpuinfo"), "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "system": f"{platform.system()} {platform.release()}",
        "gpus": gpus(),
        "link_mb_per_second": link_mb_per_second(),
        "infiniband": infiniband(),
        "has_gpu_direct_rdma": has_gpu_direct_rdma(),
    }


def node_name() -> str:
    """Return this host's name, as Slurm calls it in a job."""
    return os.environ.get("SLURMD_NODENAME", platform.node())


def gpus() -> list[dict[str, Any]]:
    """Describe the NVIDIA GPUs; none where there is no driver."""
    argv = [_NVIDIA_SMI, f"--query-gpu={_ASKED}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [
        {"name": name, "memory_mb": number(memory), "driver": driver}
        for name, memory, driver in csv.reader(done.stdout.splitlines(), skipinitialspace=True)
    ]


def device() -> str:
    """Name what computes here: the kinds of GPU that this process sees, else the processor."""
    kinds = sorted({str(gpu["name"]) for gpu in gpus()})
    return ", ".join(kinds) or _first_field(Path("/proc/cpuinfo"), "model name")


def number(said: str) -> int | None:
    """Read a number of nvidia-smi's; ``None`` for "[N/A]", which it says of parts of GPUs (MIG)."""
    return int(said) if said.strip().isdecimal() else None


def interfaces(network: Path = Path("/sys/class/net")) -> list[str]:
    """Return the network interfaces, each once.

    What stands on others (a bond, a VLAN, a bridge) has links to them, and what goes through it
    goes through them.
    """
    return sorted(
        path.name
        for path in network.iterdir()
        if path.name != "lo" and not any(path.glob("lower_*"))
    )


def link_mb_per_second(network: Path = Path("/sys/class/net")) -> float | None:
    """Return what the host's network cards carry one way, all together: a million bytes a second.

    ``None`` where none tells, as virtual ones do not.
    """
    megabits = []
    for name in interfaces(network) if network.is_dir() else ():
        try:
            megabits.append(int((network / name / "speed").read_text()))
        except (OSError, ValueError):  # a card without a cable does not let it be read
            continue
    known = [speed for speed in megabits if speed > 0]
    return sum(known) / 8 if known else None


def infiniband(devices: Path = Path("/sys/class/infiniband")) -> list[dict[str, str]]:
    """Describe the ports of InfiniBand and RoCE adapters, as ``NCCL_IB_HCA`` names them.

    The kernel's words (Documentation/ABI/stable/sysfs-class-infiniband), such as rate
    "100 Gb/sec (4X EDR)" and state "4: ACTIVE".
    """
    found = []
    for port in sorted(devices.glob("*/ports/*")):
        words = {name: _line(port / name) for name in ("rate", "state", "link_layer")}
        found.append({"port": f"{port.parents[1].name}:{port.name}", **words})
    return found


def has_gpu_direct_rdma(modules: Path = Path("/sys/module")) -> bool:
    """Say whether adapters may read a GPU's memory: NVIDIA's module for it is loaded.

    ``nvidia_peermem`` comes with the driver from 470 on, ``nv_peer_mem`` did before. Kernels from
    5.12 on can do without (DMA-BUF): what NCCL uses, ``NCCL_DEBUG=INFO`` tells.
    """
    return any((modules / name).is_dir() for name in ("nvidia_peermem", "nv_peer_mem"))


def _line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def physical_cores(cpuinfo: str, allowed: Iterable[int]) -> int:
    """Count the cores behind the processors that are ``allowed``: two threads may be one core.

    ``cpuinfo`` is the text of /proc/cpuinfo. Where that does not tell the cores apart, as on Arm,
    each processor counts.
    """
    found: dict[int, tuple[str, str]] = {}
    for block in cpuinfo.split("\n\n"):
        fields = dict(_fields(block))
        if "processor" in fields:
            number = fields["processor"]
            core = fields.get("physical id", "0"), fields.get("core id", f"of {number}")
            found[int(number)] = core
    return len({found.get(number, ("", str(number))) for number in allowed})


def own_cores() -> int:
    """Count the physical cores that this process may use."""
    return physical_cores(Path("/proc/cpuinfo").read_text(), os.sched_getaffinity(0))


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _first_field(file: Path, name: str) -> str:
    found = [value for field, value in _fields(file.read_text()) if field == name]
    return found[0] if found else platform.machine()


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


if __name__ == "__main__":
    print(json.dumps(host()))
