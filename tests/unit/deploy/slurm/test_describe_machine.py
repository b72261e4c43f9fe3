"""What Slurm is told of a machine."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from jupyterhub_gpu_slurm.outlook.availability import label

ROOT = Path(__file__).resolve().parents[4]
V100 = "GPU {}: Tesla V100-SXM2-32GB (UUID: GPU-5a3b)\n"
H200 = "GPU {}: NVIDIA H200 (UUID: GPU-77aa)\n"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy/ansible/roles/slurm/files/describe_machine.py"))


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        pytest.param("", [], id="none"),
        pytest.param(
            H200.format(0),
            [{"type": "h200", "count": 1, "files": "/dev/nvidia0"}],
            id="one",
        ),
        pytest.param(
            "".join(V100.format(number) for number in range(4)),
            [{"type": "v100-sxm2-32gb", "count": 4, "files": "/dev/nvidia[0-3]"}],
            id="four of a type",
        ),
        pytest.param(
            V100.format(0) + V100.format(1) + H200.format(2),
            [
                {"type": "v100-sxm2-32gb", "count": 2, "files": "/dev/nvidia[0-1]"},
                {"type": "h200", "count": 1, "files": "/dev/nvidia2"},
            ],
            id="two types",
        ),
        pytest.param(
            "GPU 0: NVIDIA RTX A6000 (UUID: GPU-5a3b)\n"
            "GPU 1: NVIDIA RTX 6000 Ada Generation (UUID: GPU-5a3c)\n",
            [
                {"type": "rtx_a6000", "count": 1, "files": "/dev/nvidia0"},
                {"type": "rtx_6000_ada_generation", "count": 1, "files": "/dev/nvidia1"},
            ],
            id="two that begin alike",
        ),
        pytest.param(
            "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-5a3b)\n"
            "GPU 1: NVIDIA A100 80GB PCIe (UUID: GPU-5a3c)\n",
            [
                {"type": "a100-pcie-40gb", "count": 1, "files": "/dev/nvidia0"},
                {"type": "a100_80gb_pcie", "count": 1, "files": "/dev/nvidia1"},
            ],
            id="two sizes",
        ),
        pytest.param(
            "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5a3b)\n"
            "  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4)\n",
            [{"type": "a100-sxm4-40gb", "count": 1, "files": "/dev/nvidia0"}],
            id="of a slice the driver does not say more",
        ),
        pytest.param(
            "Failed to initialize NVML: Driver/library version mismatch\n", [], id="broken"
        ),
    ],
)
def test_gpus_are_grouped_by_type(
    script: dict[str, Any], listed: str, found: list[dict[str, object]]
) -> None:
    assert script["gpus"](listed, {}, {}) == found


# As nvidia-smi prints it today, and as it did before it told the placement.
SLICES = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   1     13       MIG 1g.5gb           0         0          0:1     |
+--------------------------------------------------------------------+
|   1      2       MIG 1c.3g.20gb       0         0          0:1     |
+--------------------------------------------------------------------+
|   1      2       MIG 1c.3g.20gb       0         1          1:1     |
+--------------------------------------------------------------------+
|   3     10       MIG 1g.5gb+me        0         0          0:1     |
+--------------------------------------------------------------------+
"""
OLDER = """\
+-------------------------------------------------------+
| Compute instances:                                    |
| GPU     GPU       Name             Profile   Instance |
|       Instance                       ID        ID     |
|         ID                                            |
|=======================================================|
|   0      1       MIG 3g.20gb          2         0     |
+-------------------------------------------------------+
"""


@pytest.fixture
def capabilities(tmp_path: Path) -> Path:
    """What the driver says of each slice; a stand-in, as there is none here."""
    for place, number in {
        **{"gpu0/mig/gi1": 12, "gpu0/mig/gi1/ci0": 13},
        **{"gpu1/mig/gi13": 255, "gpu1/mig/gi13/ci0": 256},
        **{"gpu1/mig/gi2": 156, "gpu1/mig/gi2/ci0": 157, "gpu1/mig/gi2/ci1": 158},
        **{"gpu3/mig/gi10": 498, "gpu3/mig/gi10/ci0": 499},
    }.items():
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        text = f"DeviceFileMinor: {number}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
        (tmp_path / place / "access").write_text(text)
    return tmp_path


def test_slices_take_the_place_of_their_gpu(script: dict[str, Any], capabilities: Path) -> None:
    a100 = "GPU {}: NVIDIA A100-SXM4-40GB (UUID: GPU-5a3b)\n"
    slices = (
        "  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4)\n",
        "  MIG 1c.3g.20gb  Device  1: (UUID: MIG-c6d5)\n",
        "  MIG 1c.3g.20gb  Device  2: (UUID: MIG-c6d6)\n",
    )
    listed = "".join([a100.format(0), a100.format(1), *slices, a100.format(2), a100.format(3)])
    found = script["gpus"](listed, {}, script["slices"](SLICES, {}, capabilities))
    caps = "/dev/nvidia-caps/nvidia-cap"
    assert [(gpu["type"], gpu["count"], gpu["files"]) for gpu in found] == [
        ("a100-sxm4-40gb", 1, "/dev/nvidia0"),
        ("a100-sxm4-40gb_1g.5gb", 1, f"/dev/nvidia1,{caps}255,{caps}256"),
        ("a100-sxm4-40gb_1c.3g.20gb", 1, f"/dev/nvidia1,{caps}156,{caps}157"),
        ("a100-sxm4-40gb_1c.3g.20gb", 1, f"/dev/nvidia1,{caps}156,{caps}158"),
        ("a100-sxm4-40gb", 1, "/dev/nvidia2"),
        ("a100-sxm4-40gb_1g.5gb+me", 1, f"/dev/nvidia3,{caps}498,{caps}499"),
    ]


def test_devices_are_told_by_the_drivers_numbers_and_not_by_nvidia_smis(
    script: dict[str, Any], capabilities: Path, tmp_path: Path
) -> None:
    a100 = "GPU {0}: NVIDIA A100-SXM4-40GB (UUID: GPU-{0})\n"
    listed = "".join(a100.format(number) for number in range(4))
    for number, minor in enumerate((2, 3, 0, 1)):
        file = tmp_path / f"0000:{number}1:00.0/information"
        file.parent.mkdir()
        told = f"Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-{number}\nDevice Minor: \t {minor}\n"
        file.write_text(told)
    minors = script["minors"](listed, tmp_path)
    assert minors == {0: 2, 1: 3, 2: 0, 3: 1}
    # In nvidia-smi's order: so Slurm's numbers are nvidia-smi's.
    assert [gpu["files"] for gpu in script["gpus"](listed, minors, {})] == [
        "/dev/nvidia[2-3]",
        "/dev/nvidia[0-1]",
    ]
    (sliced,) = script["slices"](OLDER, {0: 0, 1: 0}, capabilities).values()
    (moved,) = script["slices"](OLDER.replace("|   0", "|   1"), {1: 0}, capabilities).values()
    assert sliced == moved
    # Without the driver's files both count alike.
    assert script["minors"](listed, tmp_path / "none") == {0: 0, 1: 1, 2: 2, 3: 3}


def test_slices_are_read_as_older_drivers_list_them(
    script: dict[str, Any], capabilities: Path
) -> None:
    files = "/dev/nvidia0,/dev/nvidia-caps/nvidia-cap12,/dev/nvidia-caps/nvidia-cap13"
    assert script["slices"](OLDER, {}, capabilities) == {0: [("3g.20gb", files)]}


@pytest.mark.parametrize("listed", ["", "No MIG-enabled devices found.\n", OLDER])
def test_without_the_drivers_files_there_are_no_slices(
    script: dict[str, Any], listed: str, tmp_path: Path
) -> None:
    assert script["slices"](listed, {}, tmp_path) == {}


def test_the_form_knows_the_memory_of_what_slices_are_called() -> None:
    words = "MIG slice 1g.5gb+me of A100-SXM4-40GB (5 GB)"
    assert label("a100-sxm4-40gb_1g.5gb+me") == words


def test_hardware_is_what_slurmd_says_without_the_name(script: dict[str, Any]) -> None:
    said = (
        "NodeName=vm CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1"
        " RealMemory=24105\nUpTime=0-08:12:45\n"
    )
    assert script["hardware"](said) == (
        "CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=24105"
    )


def test_a_program_that_is_missing_says_nothing(script: dict[str, Any]) -> None:
    assert script["answer"]("/no/such/program") == ""
