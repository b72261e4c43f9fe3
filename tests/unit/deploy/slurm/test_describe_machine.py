"""What Slurm is told of a machine."""

import runpy
from pathlib import Path
from typing import Any

import pytest

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
            id="a slice is no GPU of its own without NVML",
        ),
        pytest.param(
            "Failed to initialize NVML: Driver/library version mismatch\n", [], id="broken"
        ),
    ],
)
def test_gpus_are_grouped_by_type(
    script: dict[str, Any], listed: str, found: list[dict[str, object]]
) -> None:
    assert script["gpus"](listed) == found


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
