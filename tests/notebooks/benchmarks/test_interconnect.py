"""All-reduces between real processes on this machine, in the kernels' own environment."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from links import bus
from tests.instance import ROOT

pytestmark = pytest.mark.usefixtures("without_gpu")
BENCHMARKS = ROOT / "notebook_templates" / "benchmarks"
SCHEMA = json.loads((BENCHMARKS / "schema.json").read_text())
SMALL = ("--processes=2", "--least=4096", "--most=65536", "--iterations=3", "--repeats=1")
# The sum of one process is its own number; a network that adds something is found out.
WRONG = """
import sys, tempfile
import torch, torch.distributed as dist
from links import allreduce
from ranks import place

allreduce.join(place({}), f"file://{tempfile.mkdtemp()}/meeting")
device = torch.device("cpu")
assert allreduce.microseconds(4096, device, 1, 2) > 0
right = dist.all_reduce
dist.all_reduce = lambda numbers: numbers[7:10].add_(1)
try:
    allreduce.microseconds(4096, device, 1, 2)
except RuntimeError as error:
    print(error)
dist.destroy_process_group()
"""

# There is no GPU here: streams that note what they are told stand in for those of two.
THROUGH_HOST = """
import json
import torch
from links import peers

told, events = [], iter(range(100))

class Stream:
    def __init__(self, name):
        self.name = name

    def record_event(self):
        event = next(events)
        told.append(f"{self.name} records {event}")
        return event

    def wait_event(self, event):
        told.append(f"{self.name} waits for {event}")

streams = iter([Stream("source"), Stream("target")])
torch.cuda.current_stream = lambda device: next(streams)
peers.PIECE = 4
source, target = torch.arange(10, dtype=torch.uint8), torch.zeros(10, dtype=torch.uint8)
peers.through_host(source, target, [torch.empty(4, dtype=torch.uint8) for _ in range(2)])
print(json.dumps([target.tolist(), told]))
"""


@pytest.fixture(scope="module")
def run(python_of: Callable[[str], Path]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program among the benchmarks."""
    python = str(python_of("pytorch"))

    def start(*arguments: object) -> subprocess.CompletedProcess[str]:
        argv = [python, "-B", *map(str, arguments)]
        return subprocess.run(
            argv, cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=120
        )

    return start


def test_two_processes_are_measured_and_what_was_measured_is_not_measured_again(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    done = run("interconnect.py", "--results", tmp_path, *SMALL)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "summary.json").read_text())
    jsonschema.validate(summary, SCHEMA)
    (part,) = summary["parts"]
    assert (part["name"], part["engine"]) == ("2 processes on 1 node, run 1", "gloo")
    for size in part["sizes"]:
        worked_out = bus.bus_gb_per_second(size["bytes"], size["microseconds"], 2)
        assert size["bus_gb_per_second"] == pytest.approx(worked_out)
    assert [rate["bytes"] for rate in summary["figures"]["rates"]] == [4096, 16384, 65536]

    again = run("interconnect.py", "--results", tmp_path, *SMALL)
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "summary.json").read_text())["parts"] == summary["parts"]


def test_a_sum_that_is_wrong_is_no_measurement(run: Callable[..., Any]) -> None:
    done = run("-c", WRONG)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "an all-reduce of 4096 bytes has 3 wrong sums\n"


def test_a_copy_through_the_host_is_whole_and_overwrites_no_piece_that_is_not_read(
    run: Callable[..., Any],
) -> None:
    done = run("-c", THROUGH_HOST)
    assert done.returncode == 0, done.stderr
    arrived, told = json.loads(done.stdout)
    assert arrived == list(range(10))
    assert told == [
        *("source records 0", "target waits for 0", "target records 1"),
        *("source records 2", "target waits for 2", "target records 3"),
        # The first buffer is free when its piece has been read.
        *("source waits for 1", "source records 4", "target waits for 4", "target records 5"),
        # By its own clock the source is done when all has arrived.
        "source waits for 5",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--processes=1",), "an all-reduce needs two processes"),
        (("--nodes=2",), "nodes is '2', and there are 1"),
        (("--least=3",), "the smallest must be a multiple of 4"),
        (("--all-reduce-perf=/nowhere",), "there is no such program"),
    ],
)
def test_what_cannot_be_measured_is_said_in_words(
    run: Callable[..., Any], tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    done = run("interconnect.py", "--results", tmp_path, *SMALL, *options)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert words in (tmp_path / "error.txt").read_text()
