"""What is read of GPUs. A stand-in takes the place of NVIDIA's library: tests/nvml."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dsportal.session.usage import gpus
from dsportal.session.usage.gpus import devices_of
from tests import nvml
from tests.checkout import PYTHONPATH

PROGRAM = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from dsportal.session.usage.gpus import GpuReader

async def main():
    devices, seconds, folder, *late = sys.argv[1:]
    reader = GpuReader(tuple(filter(None, devices.split(","))), float(seconds))
    look = await reader.read()
    print(json.dumps(dataclasses.asdict(look)))
    for figures in late:
        Path(folder, "figures").write_text(figures)
        while look.state != "known":
            await asyncio.sleep(0.02)
            look = await reader.read()
        print(json.dumps(dataclasses.asdict(look)))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> nvml.StandIn:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


def read(
    library: nvml.StandIn | None, devices: str, *late: str, seconds: float = 30
) -> list[dict[str, Any]]:
    """Read the GPUs in a process of its own: whoever has loaded the library keeps it.

    With ``late`` figures, they are written after that, and awaited.
    """
    folder = str(library.folder) if library else "/nonexistent"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, devices, str(seconds), folder, *late],
        env={**os.environ, "LD_LIBRARY_PATH": folder, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_jobs_gpus_are_read_in_its_own_order(library: nvml.StandIn) -> None:
    library.tell("97 12000 32768 61 280400\n0 3 32768 35 24000\n50 1 1 1 1\n")
    (look,) = read(library, "1,0")
    assert look["state"] == "known"
    idle, busy = look["gpus"]
    assert busy == {
        "name": "Stand-in V100",
        "percent": 97,
        "memory_bytes": 12000 << 20,
        "memory_total_bytes": 32768 << 20,
        "celsius": 61,
        "watts": 280,
    }
    assert (idle["percent"], idle["watts"]) == (0, 24)


def test_a_gpu_is_found_by_its_name(library: nvml.StandIn) -> None:
    library.tell("1 1 1 1 1\n42 1 1 1 1\n")
    assert read(library, "GPU-stand-in-1")[0]["gpus"][0]["percent"] == 42


def test_what_a_slice_does_not_tell_is_not_known(library: nvml.StandIn) -> None:
    library.tell("- 100 5000 - -\n")
    (gpu,) = read(library, "MIG-stand-in-0")[0]["gpus"]
    assert (gpu["percent"], gpu["celsius"], gpu["watts"]) == (None, None, None)
    assert gpu["memory_bytes"] == 100 << 20


@pytest.mark.parametrize(
    ("figures", "state"),
    [
        pytest.param("none", "no_driver", id="the driver is not loaded"),
        pytest.param("1 1 1 1 1\n", "no_answer", id="the GPU is not there"),
    ],
)
def test_without_gpus_that_answer_the_state_says_why(
    library: nvml.StandIn, figures: str, state: str
) -> None:
    library.tell(figures)
    assert read(library, "5") == [{"state": state, "gpus": []}]


def test_a_node_without_the_library_has_no_driver() -> None:
    assert read(None, "0") == [{"state": "no_driver", "gpus": []}]


def test_a_driver_that_hangs_holds_nobody_up_and_is_heard_when_it_is_back(
    library: nvml.StandIn,
) -> None:
    library.tell("hang")
    # The process also ends, with its last question still open.
    silent, back = read(library, "0", "7 1 1 1 1\n", seconds=0.1)
    assert (silent["state"], back["state"]) == ("no_answer", "known")
    assert back["gpus"][0]["percent"] == 7
    library.tell("hang")
    assert read(library, "0", seconds=0.1)[0]["state"] == "no_answer"


@pytest.mark.parametrize(
    ("devices", "found"),
    [
        ("0", ("0",)),
        ("0,1,11", ("0", "1", "11")),
        ("GPU-5e4f-1,GPU-5e4f-2", ("GPU-5e4f-1", "GPU-5e4f-2")),
        ("MIG-5e4f", ("MIG-5e4f",)),
        ("", ()),
        ("NoDevFiles", ()),
        ("-1", ()),
        ("0;1", ()),
        ("0 1", ()),
    ],
)
def test_devices_are_those_that_cuda_names(devices: str, found: tuple[str, ...]) -> None:
    assert devices_of({"CUDA_VISIBLE_DEVICES": devices}) == found


def test_a_job_without_gpus_asks_nobody(library: nvml.StandIn) -> None:
    library.tell("1 1 1 1 1\n")
    assert read(library, "") == [{"state": "none", "gpus": []}]


class NoSuchDeviceError(Exception):
    """An error of a stand-in for NVIDIA's library."""


class NoPermissionError(NoSuchDeviceError):
    """The card is another job's."""


def library_with_slices() -> SimpleNamespace:
    """Stand in for the library where the first card is cut, and the job sees two of its slices.

    The second card is whole, the third another job's, the fourth is broken, the fifth whole.

    The stand-in in C has cards only.
    """
    slices = {("card 0", 0): "slice 0", ("card 0", 2): "slice 2"}

    def card(number: int) -> str:
        if number == 2:
            raise NoPermissionError
        if number == 3:
            raise NoSuchDeviceError("it is lost")
        return f"card {number}"

    def places(card: str) -> int:
        if card != "card 0":
            raise NoSuchDeviceError("it knows no slices")
        return 7

    def slice_at(card: str, place: int) -> str:
        if (card, place) not in slices:
            raise NoSuchDeviceError("there is none")
        return slices[card, place]

    return SimpleNamespace(
        NVMLError=NoSuchDeviceError,
        NVML_ERROR_NOT_FOUND=6,
        NVMLError_NoPermission=NoPermissionError,
        nvmlDeviceGetCount=lambda: 5,
        nvmlDeviceGetHandleByIndex=card,
        nvmlDeviceGetHandleByUUID="handle of {}".format,
        nvmlDeviceGetMaxMigDeviceCount=places,
        nvmlDeviceGetMigDeviceHandleByIndex=slice_at,
    )


def test_slices_are_counted_in_the_place_of_their_card() -> None:
    library = library_with_slices()
    assert gpus._handles(library, ("0", "1", "2")) == ["slice 0", "slice 2", "card 1"]
    assert gpus._handles(library, ("MIG-5e", "GPU-7a")) == ["handle of MIG-5e", "handle of GPU-7a"]
    # What is another job's has no number; what is broken keeps its own.
    assert gpus._handles(library, ("4", "2")) == ["card 4", "card 1"]
    for number in ("3", "5"):
        with pytest.raises(NoSuchDeviceError):
            gpus._handles(library, (number,))
