"""A node's health: what is found on a host, and what becomes of its nodes."""

import os
from pathlib import Path
from types import ModuleType

import pytest

from tests import roles

FILE = roles.ROLES / "slurm_node/files/health.py"
WANTED = [48, 79]
FELL_OFF = (
    "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)
LOG = f"""\
6,10,100,-;Linux version 6.1.0
4,11,200,-;NVRM: Xid (PCI:0000:41:00): 13, pid=4242, name=python, Graphics Exception
 SUBSYSTEM=pci
4,12,300,-;{FELL_OFF}
4,13,400,c;{FELL_OFF}
6,14,500,-;user says NVRM: Xid (PCI:0000:99:00): 79, that is no word of the driver
"""


@pytest.fixture(scope="module")
def health() -> ModuleType:
    return roles.loaded(FILE)


def test_a_fault_of_a_gpu_is_found_once_and_a_programs_mistake_is_none(
    health: ModuleType, tmp_path: Path
) -> None:
    found, seen = health.xids(LOG, WANTED, health.LogPosition("boot"))
    assert found == ["Xid 79 of GPU 0000:41:00"]
    assert seen == health.LogPosition("boot", 14)
    assert health.xids(LOG, WANTED, seen) == ([], seen)
    later = f"4,15,600,-;{FELL_OFF.replace('41', '42')}\n"
    assert health.xids(LOG + later, WANTED, seen)[0] == ["Xid 79 of GPU 0000:42:00"]


def test_what_the_driver_itself_asks_for_is_found_whatever_the_cause(health: ModuleType) -> None:
    changed = "NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from"
    lines = (
        f"4,20,1,-;{changed} 0x1 (GPU Reset Required) to 0x0 (None)",
        f"4,21,2,-;{changed} 0x0 (None) to 0x1 (GPU Reset Required)",
        f"4,22,3,-;{changed} 0x1 (GPU Reset Required) to 0x2 (Node Reboot Required)",
    )
    found, _ = health.xids("\n".join(lines), WANTED, health.LogPosition("boot"))
    assert found == [
        "Xid 154 of GPU 0000:41:00: GPU Reset Required",
        "Xid 154 of GPU 0000:41:00: Node Reboot Required",
    ]
    assert health.xids(lines[1], WANTED, health.LogPosition("boot", 21))[0] == []
    # Without a list nobody wants to know.
    assert health.xids(lines[1], [], health.LogPosition("boot"))[0] == []


def test_what_was_seen_counts_until_the_host_restarts(
    health: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("first\n")
    monkeypatch.setattr(health, "BOOT", boot)
    file = tmp_path / "seen.json"
    assert health.LogPosition.read(file) == health.LogPosition("first")
    health.LogPosition("first", 7).write(file)
    assert health.LogPosition.read(file) == health.LogPosition("first", 7)
    boot.write_text("second\n")
    assert health.LogPosition.read(file) == health.LogPosition("second")
    file.write_text("{")
    assert health.LogPosition.read(file) == health.LogPosition("second")


def test_the_kernels_own_log_is_read_to_its_end(health: ModuleType, tmp_path: Path) -> None:
    assert health.kernel_log(tmp_path / "missing") == ""
    recorded = tmp_path / "kmsg"
    recorded.write_text(LOG * 200)
    assert health.kernel_log(recorded) == LOG * 200


@pytest.mark.root
def test_the_kernel_of_this_machine_ends_its_log(health: ModuleType) -> None:
    _, seen = health.xids(health.kernel_log(), WANTED, health.LogPosition("boot"))
    assert seen.number > 0


def test_a_folder_with_too_little_room_is_full_and_so_is_a_missing_one(
    health: ModuleType, tmp_path: Path
) -> None:
    assert health.full_folders([str(tmp_path)], 0) == []
    room = os.statvfs(tmp_path)
    free = room.f_bavail * room.f_frsize // 2**20
    (words,) = health.full_folders([str(tmp_path)], free * 2 + 1000)
    assert words.startswith(f"{tmp_path} has ")
    missing = tmp_path / "missing"
    assert health.full_folders([str(missing)], 0) == [f"{missing}: No such file or directory"]


def bus(folder: Path, *devices: tuple[str, str]) -> Path:
    for number, (vendor, kind) in enumerate(devices):
        place = folder / f"0000:{number:02x}:00.0"
        place.mkdir(parents=True)
        (place / "vendor").write_text(f"{vendor}\n")
        (place / "class").write_text(f"{kind}\n")
    return folder


def driver(file: Path, *lines: str) -> list[str]:
    """A stand-in for NVIDIA's program, which is not here; it fails as the real one does."""
    words = "".join(f"echo '{line}'\n" for line in lines)
    file.write_text(f"#!/bin/sh\n{words}exit 15\n")
    file.chmod(0o755)
    return [str(file)]


GPU, SOUND, OTHER = ("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x1234", "0x030000")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["0", "1"], []),
        (
            ["0", "Unable to determine the device handle for GPU1: 0000:41:00.0: Unknown Error"],
            ["the driver shows 1 of 2 GPUs"],
        ),
        (["No devices were found"], ["the driver shows 0 of 2 GPUs"]),
    ],
)
def test_a_gpu_that_the_driver_has_lost_is_missed(
    health: ModuleType, tmp_path: Path, lines: list[str], words: list[str]
) -> None:
    devices = bus(tmp_path / "bus", GPU, SOUND, GPU, OTHER)
    assert health.missing_gpus(devices, driver(tmp_path / "smi", *lines)) == words


def test_without_gpus_or_driver_nothing_is_missed(health: ModuleType, tmp_path: Path) -> None:
    program = driver(tmp_path / "smi", "No devices were found")
    assert health.missing_gpus(bus(tmp_path / "bus", OTHER), program) == []
    assert health.missing_gpus(tmp_path / "none", program) == []
    assert health.missing_gpus(bus(tmp_path / "gpus", GPU), [str(tmp_path / "missing")]) == []


FULL, FAULT = ["/tmp has 3 MiB left"], ["the driver shows 7 of 8 GPUs"]  # noqa: S108
OF_FULL, OF_FAULT = f"health: full: {FULL[0]}", f"health: {FAULT[0]}"


@pytest.mark.parametrize(
    ("state", "reason", "full", "faults", "words"),
    [
        pytest.param("IDLE", "", [], [], [], id="well"),
        pytest.param("MIXED", "", FULL, [], ["State=DRAIN", f"Reason={OF_FULL}"], id="full"),
        pytest.param("IDLE", "", [], FAULT, ["State=DRAIN", f"Reason={OF_FAULT}"], id="fault"),
        pytest.param(
            "IDLE", "", FULL, FAULT, ["State=DRAIN", f"Reason={OF_FAULT}; {FULL[0]}"], id="both"
        ),
        pytest.param("IDLE+DRAIN", OF_FULL, FULL, [], [], id="still full"),
        pytest.param("IDLE+DRAIN", OF_FULL, [], [], ["State=RESUME"], id="room again"),
        pytest.param(
            "MIXED+DRAIN", OF_FULL, [], FAULT, ["State=DRAIN", f"Reason={OF_FAULT}"], id="worse"
        ),
        pytest.param("IDLE+DRAIN", OF_FAULT, [], [], [], id="a fault waits for somebody"),
        pytest.param("IDLE+DRAIN", "new fan", FULL, FAULT, [], id="another's reason stays"),
        pytest.param("IDLE+DRAIN", "new fan", [], [], [], id="another's drain stays"),
        pytest.param("IDLE", OF_FULL, [], [], [], id="an old reason is none"),
    ],
)
def test_a_node_is_drained_for_what_is_found_and_resumes_only_from_full(
    health: ModuleType,
    state: str,
    reason: str,
    full: list[str],
    faults: list[str],
    words: list[str],
) -> None:
    assert health.decision(state, reason, full, faults) == words
