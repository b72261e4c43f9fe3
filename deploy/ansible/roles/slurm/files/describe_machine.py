"""Print what Slurm must be told of this machine, as JSON.

`cgroup_v1`: whether the kernel's memory controller is of version 1. `gpus`: what nvidia-smi lists,
in groups of one type. `nvml`: whether this build of Slurm can ask NVIDIA's library by itself.
`hardware`: what slurmd sees, as words for slurm.conf; empty where there is no slurmd.
"""

import json
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

GPU = re.compile(r"^GPU (\d+): (?:NVIDIA )?(?:Tesla )?([A-Za-z0-9][A-Za-z0-9 _.-]*?) \(UUID:", re.M)
MEMORY_CONTROLLER = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
PLUGINS = ("usr/lib/*/slurm*/gpu_nvml.so", "usr/lib64/slurm/gpu_nvml.so")


def gpus(listed: str) -> list[dict[str, object]]:
    """Read `nvidia-smi -L`: `GPU 0: Tesla V100-SXM2-32GB (UUID: ...)`.

    A type is the model's whole name, as Slurm itself writes it where it asks NVIDIA's library, but
    for the maker: an RTX A6000 is no RTX 6000 Ada, nor has every A100 the same memory.
    """
    found = [(int(number), name.lower().replace(" ", "_")) for number, name in GPU.findall(listed)]
    groups: list[dict[str, object]] = []
    for kind, members in groupby(found, key=lambda gpu: gpu[1]):
        numbers = [number for number, _ in members]
        span = f"[{numbers[0]}-{numbers[-1]}]" if len(numbers) > 1 else str(numbers[0])
        groups.append({"type": kind, "count": len(numbers), "files": f"/dev/nvidia{span}"})
    return groups


def hardware(described: str) -> str:
    """Read `slurmd -C`: `NodeName=vm CPUs=2 Boards=1 ... RealMemory=24077`, then `UpTime=...`."""
    words = described.partition("\n")[0].split()
    return " ".join(word for word in words if not word.startswith("NodeName="))


def answer(*argv: str) -> str:
    """Return what a program prints; nothing where it is missing or fails."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def main() -> None:
    """Look, and print."""
    facts = {
        "cgroup_v1": MEMORY_CONTROLLER.exists(),
        "gpus": gpus(answer("nvidia-smi", "-L")),
        "nvml": any(True for pattern in PLUGINS for _ in Path("/").glob(pattern)),
        "hardware": hardware(answer("/usr/sbin/slurmd", "-C")),
    }
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
