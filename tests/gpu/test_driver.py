"""What asks NVIDIA's driver: the session, the node's programs, and the measurements' sampler."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsportal.session.usage.gpus import GpuReader, GpuState, Nvml
from tests.checkout import ROOT
from tests.roles import ROLES, loaded

MEGABYTES = 2048
BUSY = f"""
import time, torch
held = torch.empty({MEGABYTES} * 2**20, dtype=torch.uint8, device="cuda")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("ready", flush=True)
while True:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
"""


def smi(fields: str) -> list[list[str]]:
    """Ask nvidia-smi of each GPU."""
    argv = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    return [[word.strip() for word in line.split(",")] for line in said.splitlines()]


@pytest.fixture(scope="module")
def busy() -> Iterator[None]:
    """A program that keeps the first GPU and some of its memory."""
    program = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    try:
        # What the driver says is of the last second or so.
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(3)
        yield
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize("is_named", [False, True], ids=["by number", "by name"])
def test_a_session_is_told_what_its_gpu_does(busy: None, is_named: bool) -> None:
    name, uuid = smi("name,uuid")[0]
    reader = GpuReader((uuid if is_named else "0",))
    reading = asyncio.run(reader.read())
    assert reading.state is GpuState.KNOWN
    (gpu,) = reading.gpus
    assert gpu.name == name
    assert gpu.percent is not None
    assert gpu.percent > 80
    assert gpu.memory_bytes is not None
    assert gpu.memory_total_bytes is not None
    assert MEGABYTES * 2**20 < gpu.memory_bytes < gpu.memory_total_bytes
    assert gpu.celsius is not None
    assert 10 < gpu.celsius < 110
    assert gpu.watts is not None
    assert 100 < gpu.watts < 1500


def test_a_gpu_that_is_not_there_is_no_answer() -> None:
    assert Nvml(("99",)).read().state is GpuState.NO_ANSWER


def test_the_epilog_sees_memory_that_is_still_held(busy: None) -> None:
    epilog = loaded(ROLES / "slurm_node/files/epilog.py")
    job = epilog.EndedJob("12", 1000, "node001", "portal", gpus="0")
    held = epilog.gpu_memory(job)
    assert list(held) == ["0"]
    assert held["0"] > MEGABYTES


def test_the_health_check_finds_all_gpus(tmp_path: Path) -> None:
    health = loaded(ROLES / "slurm_node/files/health.py")
    assert health.DRIVER.exists()
    assert health.gpus_of_bus() == len(smi("index"))
    assert health.missing_gpus() == []
    # One more on the bus than the driver shows: as when one has fallen off.
    for device in health.PCI_DEVICES.iterdir():
        (tmp_path / device.name).symlink_to(device)
    lost = tmp_path / "0000:ff:00.0"
    lost.mkdir()
    (lost / "vendor").write_text("0x10de\n")
    (lost / "class").write_text("0x030200\n")
    there = len(smi("index"))
    assert health.missing_gpus(tmp_path) == [f"the driver shows {there} of {there + 1} GPUs"]


def test_slurm_is_told_each_gpu_with_its_device_file() -> None:
    program = ROLES / "slurm/files/describe_machine.py"
    argv = [sys.executable, str(program)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    groups = json.loads(said)["gpus"]
    assert sum(group["count"] for group in groups) == len(smi("index"))
    assert groups[0]["files"].startswith("/dev/nvidia")
    assert groups[0]["type"] == smi("name")[0][0].removeprefix("NVIDIA ").lower().replace(" ", "_")
    first = groups[0]["files"].replace("[0-", "0;").partition(";")[0]
    assert Path(first).is_char_device()


def test_measurements_say_which_gpu_and_how_busy(busy: None) -> None:
    sys.path.append(str(ROOT / "notebook_templates/benchmarks"))
    from measurement import machine, sampling

    name, memory, driver = smi("name,memory.total,driver_version")[0]
    first = machine.gpus()[0]
    assert first == {"name": name, "memory_mb": int(memory), "driver": driver}
    shares, held = sampling.gpus_now()
    assert shares[0] > 80
    assert held[0] > MEGABYTES
