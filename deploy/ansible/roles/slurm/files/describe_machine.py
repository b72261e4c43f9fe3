"""Print what Slurm must be told of this machine, as JSON.

`cgroup_v1`: whether the kernel's memory controller is of version 1. `gpus`: what nvidia-smi lists,
in groups of one type; in the place of a GPU that is cut into slices (MIG), each slice. `nvml`:
whether this build of Slurm can ask NVIDIA's library by itself. `hardware`: what slurmd sees, as
words for slurm.conf; empty where there is no slurmd.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

GPU = re.compile(
    r"^GPU (\d+): (?:NVIDIA )?(?:Tesla )?([A-Za-z0-9][A-Za-z0-9 _.-]*?) \(UUID: ([^)]*)\)", re.M
)
# Of /proc/driver/nvidia/gpus/BUS/information.
FIELD = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.M)
# GPU, GPU instance, profile, and, after the profile's number, compute instance.
SLICE = re.compile(r"^\|\s+(\d+)\s+(\d+)\s+MIG (\S+)\s+\d+\s+(\d+)\s", re.M)
MINOR = re.compile(r"^DeviceFileMinor: (\d+)$", re.M)
CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
DRIVERS_GPUS = Path("/proc/driver/nvidia/gpus")
MEMORY_CONTROLLER = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
PLUGINS = ("usr/lib/*/slurm*/gpu_nvml.so", "usr/lib64/slurm/gpu_nvml.so")


def minors(listed: str, drivers_gpus: Path = DRIVERS_GPUS) -> dict[int, int]:
    """Return of each GPU in `nvidia-smi -L` the number of its device: the order may be another.

    Where the driver does not tell, both are the same.
    """
    told = [dict(FIELD.findall(file.read_text())) for file in drivers_gpus.glob("*/information")]
    by_uuid = {fields.get("GPU UUID"): fields.get("Device Minor") for fields in told}
    return {
        int(number): int(by_uuid.get(uuid) or number) for number, _, uuid in GPU.findall(listed)
    }


def slices(
    listed: str, minor: Mapping[int, int], capabilities: Path = CAPABILITIES
) -> dict[int, list[tuple[str, str]]]:
    """Read `nvidia-smi mig -lci`: of each GPU the profiles of its slices, and their devices.

    Who may use a slice may open the GPU's device and those of its two instances, whose numbers the
    driver gives (NVIDIA's MIG User Guide, "Device Nodes and Capabilities"). ``minor``: of each GPU
    the number of its device.
    """
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for gpu, instance, profile, compute in SLICE.findall(listed):
        device = minor.get(int(gpu), int(gpu))
        folder = capabilities / f"gpu{device}/mig/gi{instance}"
        files = (folder / "access", folder / f"ci{compute}/access")
        numbers = [MINOR.search(file.read_text()) for file in files if file.exists()]
        if len(numbers) == len(files) and all(numbers):
            devices = [f"/dev/nvidia-caps/nvidia-cap{number[1]}" for number in numbers if number]
            found[int(gpu)].append((profile, ",".join([f"/dev/nvidia{device}", *devices])))
    return found


def gpus(
    listed: str, minor: Mapping[int, int], sliced: Mapping[int, Sequence[tuple[str, str]]]
) -> list[dict[str, object]]:
    """Read `nvidia-smi -L`: `GPU 0: Tesla V100-SXM2-32GB (UUID: ...)`.

    In its order, so that the numbers that Slurm gives them, without NVML, are nvidia-smi's.

    A type is the model's whole name, as Slurm itself writes it where it asks NVIDIA's library, but
    for the maker: an RTX A6000 is no RTX 6000 Ada, nor has every A100 the same memory. That of a
    slice ends with its profile, which has the memory: `a100-sxm4-40gb_1g.5gb`.
    """
    found = [
        (int(number), name.lower().replace(" ", "_")) for number, name, _ in GPU.findall(listed)
    ]
    groups: list[dict[str, object]] = []
    alike = groupby(found, key=lambda gpu: (gpu[1], gpu[0] if gpu[0] in sliced else None))
    for (kind, cut), members in alike:
        numbers = [number for number, _ in members]
        if cut is not None:
            for profile, files in sliced[cut]:
                groups.append({"type": f"{kind}_{profile}", "count": 1, "files": files})
            continue
        for run in _runs([minor.get(number, number) for number in numbers]):
            span = f"[{run[0]}-{run[-1]}]" if len(run) > 1 else str(run[0])
            groups.append({"type": kind, "count": len(run), "files": f"/dev/nvidia{span}"})
    return groups


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Divide numbers where the next one does not follow: ``[[4, 5], [0, 1]]`` of 4, 5, 0, 1."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return found


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
    listed = answer("nvidia-smi", "-L")
    minor = minors(listed)
    facts = {
        "cgroup_v1": MEMORY_CONTROLLER.exists(),
        "gpus": gpus(listed, minor, slices(answer("nvidia-smi", "mig", "-lci"), minor)),
        "nvml": any(True for pattern in PLUGINS for _ in Path("/").glob(pattern)),
        "hardware": hardware(answer("/usr/sbin/slurmd", "-C")),
    }
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main()
