"""Samples of this very machine, taken by the program as a measurement starts it."""

import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from measurement import machine, sampling
from measurement.sampling import thinned, within
from measurement.steps import Nodes
from reports.usage import course, figure
from tests.waiting import until


def test_a_block_that_computes_and_writes_is_seen_to(tmp_path: Path) -> None:
    with sampling.NodeSampler(Nodes(1, in_job=False), tmp_path, every=0.2) as sampler:
        until(lambda: sampler.samples(), seconds=20, what="the first sample")
        ends = time.monotonic() + 1.5
        # On a disk: /tmp may be in memory.
        with tempfile.TemporaryFile(dir="/var/tmp") as file:
            while time.monotonic() < ends:
                file.write(bytes(10**6))
                file.flush()
                os.fsync(file.fileno())
    ((node, lines),) = sampler.samples().items()
    assert node == os.uname().nodename
    assert len(lines) > 2
    assert max(line["cpu_share"] for line in lines) > 0.05
    assert max(line["written_mb_per_second"] for line in lines) > 1
    assert all(line["memory_mb"] > 10 for line in lines)
    moments = [line["time"] for line in lines]
    assert moments == sorted(moments)


def test_the_sample_after_a_moment_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    with sampling.NodeSampler(Nodes(1, in_job=False), tmp_path, every=0.2) as sampler:
        # Two of these are waited for: a busy machine has time for the sample, which comes earlier.
        sampler._every = 4.0
        now = time.time()
        sampler.wait_for(now)
        (lines,) = sampler.samples().values()
        assert lines[-1]["time"] > now
        sampler._every = 0.2
        sampler.wait_for(now + 3600)


def test_the_program_ends_with_the_block(tmp_path: Path) -> None:
    with sampling.NodeSampler(Nodes(1, in_job=False), tmp_path, every=0.1) as sampler:
        until(lambda: sampler.samples(), seconds=20, what="the first sample")
    before = sampler.samples()
    time.sleep(0.5)
    assert sampler.samples() == before


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"time": 1}) + '\n{"time": 2, "cpu')
    assert sampling.read(tmp_path) == {"a": [{"time": 1}]}


def test_long_series_are_thinned_evenly() -> None:
    lines = [{"time": number} for number in range(2500)]
    found = thinned({"a": lines, "b": lines[:10], "c": []}, most=1000)
    assert [line["time"] for line in found["a"]] == list(range(0, 2500, 3))
    assert len(found["b"]) == 10
    assert found["c"] == []


def test_only_the_samples_of_some_times_are_taken() -> None:
    lines = [{"time": float(second)} for second in range(10)]
    assert [line["time"] for line in within(lines, [(1, 3), (6, 7)])] == [2, 3, 7]
    # One that is over before the next sample, and one that none was taken after.
    assert [line["time"] for line in within(lines, [(4.2, 4.7), (9.5, 9.9)])] == [5]


def test_what_a_run_reached_is_drawn_part_by_part() -> None:
    trained = {"images_per_second": 100.0, "throughput": [(10.0, 0.0), (11.0, 100.0)]}
    read = {"images_per_second": 400.0, "times": [20.0, 25.0]}
    copied = {"peers": [], "times": [30.0, 31.0]}
    assert course([trained, read, copied], "images_per_second") == [
        (10.0, 0.0), (11.0, 100.0), (20.0, 400.0), (25.0, 400.0), (25.0, 0.0),
    ]  # fmt: skip


def test_throughput_and_use_share_one_axis_of_time() -> None:
    one = {
        "cpu_share": 0.5,
        "memory_mb": 2048,
        "received_mb_per_second": 1.0,
        "sent_mb_per_second": 2.0,
        "read_mb_per_second": 3.0,
        "written_mb_per_second": 4.0,
        "gpu_shares": [1.0, 0.5],
        "gpu_memory_mb": [1, 1],
    }
    samples = {"a": [{"time": 1000.0, **one}, {"time": 1010.0, **one}]}
    drawn = figure([(1005.0, 700.0), (1010.0, 710.0)], samples)
    first, gpus, cores, *_ = drawn.axes
    assert np.asarray(first.lines[0].get_xdata()).tolist() == [5, 10]
    assert np.asarray(gpus.lines[0].get_ydata()).tolist() == [75, 75]
    assert np.asarray(cores.lines[0].get_xdata()).tolist() == [0, 10]


def test_what_the_network_cards_carry_is_added_up(tmp_path: Path) -> None:
    # Mb/s; a virtual card says -1, and one without a cable nothing.
    for name, speed in {"eth0": "25000\n", "eth1": "25000\n", "veth": "-1\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed").write_text(speed)
    (tmp_path / "eth2/speed").mkdir(parents=True)
    assert machine.link_mb_per_second(tmp_path) == 6250
    assert machine.link_mb_per_second(tmp_path / "veth") is None


def test_a_bond_is_counted_once(tmp_path: Path) -> None:
    for name, speed in {"eth0": 25000, "eth1": 25000, "bond0": 50000, "lo": -1}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed").write_text(f"{speed}\n")
    for lower in ("eth0", "eth1"):
        (tmp_path / "bond0" / f"lower_{lower}").symlink_to(tmp_path / lower)
    assert machine.interfaces(tmp_path) == ["eth0", "eth1"]
    assert machine.link_mb_per_second(tmp_path) == 6250


def test_a_part_of_a_gpu_has_no_figures_and_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text('#!/bin/sh\necho "[N/A], [N/A]"\necho "50, 1024"\n')
    smi.chmod(0o755)
    monkeypatch.setattr(sampling, "_SMI", [str(smi)])
    assert sampling.gpus_now() == ((50.0,), (1024.0,))
    smi.write_text('#!/bin/sh\necho "NVIDIA A100 MIG 1g.5gb, [N/A], 580.1"\n')
    monkeypatch.setattr(machine, "_NVIDIA_SMI", str(smi))
    assert machine.gpus() == [
        {"name": "NVIDIA A100 MIG 1g.5gb", "memory_mb": None, "driver": "580.1"}
    ]
