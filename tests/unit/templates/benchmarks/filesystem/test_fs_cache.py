"""Whether a measured mount has FS-Cache, by the kernel's words, and what reports say of it.

No mount here has it: its lines are those of Linux for a mount without, with ``fsc`` where
fs/nfs/super.c writes it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import storage
from filesystem import caches, fs_cache
from filesystem.client import StoragePlan
from filesystem.parts import StorageCase, rates_of
from measurement.steps import Nodes
from reports import comparison, data_sources, scaling
from reports import storage as storage_report
from reports import training as training_report
from trials import trial

DATA = (
    "nfs 10.2.0.11:/ifs/data rw,vers=3,rsize=524288,wsize=524288,namlen=255,soft,nolock,proto=tcp,"
    "timeo=50,retrans=1,sec=sys,mountaddr=10.2.0.11,mountvers=3,mountport=300,mountproto=udp,"
    "{more}local_lock=all,addr=10.2.0.11"
)
MOUNTINFO = "\n".join(
    [
        "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw",
        "59 24 0:49 / /mnt/somebody\vs rw - fuse.x\v a\vb rw,user_id=1002",
        "60 24 0:50 / /mnt/isilon rw,relatime shared:30 - autofs systemd-1 rw,fd=51,direct",
        "61 60 0:51 / /mnt/isilon rw,relatime shared:31 - nfs4 nas:/ifs/data rw,vers=4.2,hard",
        "62 24 0:52 / /mnt/isilon1 rw,relatime shared:32 - autofs systemd-1 rw,fd=52,direct",
        f"63 62 0:53 / /mnt/isilon1 rw,relatime - {DATA.format(more='fsc,')}",
        f"64 24 0:54 / /mnt/isilon2 rw,relatime - {DATA.format(more='')}",
        f"65 24 0:55 / /mnt/the\\040nas rw,relatime - {DATA.format(more='fsc=node,')}",
        "66 24 0:56 / /mnt/unused rw,relatime - autofs systemd-1 rw,fd=53,direct",
    ]
)


@pytest.mark.parametrize(
    ("folder", "state"),
    [
        ("/mnt/isilon/users/you", False),
        ("/mnt/isilon1", True),
        ("/mnt/isilon1/users/you", True),
        ("/mnt/isilon2", False),
        # The beginning of a name is no folder above it.
        ("/mnt/isilon10", None),
        ("/mnt/the nas/data", True),
        ("/mnt/unused", None),
        ("/scratch", None),
    ],
)
def test_a_folders_mount_says_whether_it_has_it(folder: str, state: bool | None) -> None:
    assert fs_cache.of_folder(Path(folder), MOUNTINFO) is state


def test_several_mounts_or_nodes_have_it_where_all_have() -> None:
    assert fs_cache.agreed([True, True]) is True
    assert fs_cache.agreed([False, False]) is False
    assert fs_cache.agreed([True, False]) is fs_cache.agreed([True, None]) is None
    assert fs_cache.agreed([]) is None


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[bool, Path]:
    """Two folders of which the kernel would say that one has it, and one has not."""
    folders = {True: tmp_path / "with", False: tmp_path / "without"}
    lines = []
    for has_it, folder in folders.items():
        folder.mkdir()
        lines.append(f"1 1 0:1 / {folder} rw - {DATA.format(more='fsc,' if has_it else '')}")
    (tmp_path / "mountinfo").write_text("\n".join(lines))
    monkeypatch.setattr(fs_cache, "_MOUNTINFO", tmp_path / "mountinfo")
    return folders


def test_a_link_leads_to_the_mount_behind_it(mounted: dict[bool, Path], tmp_path: Path) -> None:
    (tmp_path / "isilon").symlink_to(mounted[True])
    assert fs_cache.of_folders([tmp_path / "isilon/users"]) is True
    assert fs_cache.of_folders([tmp_path / "isilon", mounted[False]]) is None


def test_a_node_says_it_in_json_as_it_drops_its_caches(tmp_path: Path) -> None:
    argv = [sys.executable, caches.__file__, str(tmp_path / "none"), str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    here = fs_cache.of_folders([tmp_path])
    assert json.loads(said.stdout) == {"caches_dropped": False, "fs_cache": here}


@pytest.mark.parametrize("has_it", [True, False])
def test_a_training_from_files_records_it(
    mounted: dict[bool, Path], monkeypatch: pytest.MonkeyPatch, has_it: bool
) -> None:
    # In the place of a program on a node, whose mounts cannot be made up.
    def run(argv: list[str], seconds: float) -> str:
        kept = fs_cache.of_folders(map(Path, argv[-2:]))
        return json.dumps({"caches_dropped": True, "fs_cache": kept})

    monkeypatch.setattr(trial, "run", run)
    there = Nodes(count=1, in_job=False)
    asked = argparse.Namespace(
        data="x", mounts=f"{mounted[has_it]},{mounted[has_it]}", flush_nas="", caches_program="drop"
    )
    assert trial.without_caches(asked, there, 1)["fs_cache"] is has_it


def rates(*states: bool | None) -> list[dict[str, Any]]:
    """Return a rate of each of some mounts, as storage.py has it."""
    return rates_of(
        [
            {
                "load": "read", "mounts": [f"/nas{number}"], "clients": 1, "fs_cache": state,
                "mb_per_second": 1.0, "iops": 1.0, "latency_ms": 1.0, "asked_mb_per_second": None,
            }
            for number, state in enumerate(states, 1)
        ]
    )  # fmt: skip


def of_storage(*states: bool | None, direct: bool = False) -> str:
    part = {
        "engines": ["libaio"], "direct": direct, "caches_dropped": True, "expected_hit_rate": 0.0,
        "storage_hit_rate": None,
    }  # fmt: skip
    summary = {
        "configuration": {"processes": 4, "depth": 32},
        "versions": {"fio": "fio-3.33"},
        "date": "2026-11-22T03:00:00+00:00",
        "figures": {"rates": rates(*states)},
        "parts": [part],
    }
    return storage_report.markdown(summary)


def test_storages_report_says_it_of_each_mount() -> None:
    assert "/nas1: FS-Cache on; /nas2: FS-Cache off." in of_storage(True, False)
    assert "pass by FS-Cache" not in of_storage(True, False)
    assert "pass by FS-Cache" in of_storage(True, direct=True)
    assert "FS-Cache" not in of_storage(None, direct=True)


def test_a_part_of_storage_has_what_all_of_its_mounts_have() -> None:
    how = {
        f"/nas{number}": {"engine": "libaio", "direct": True, "fs_cache": state}
        for number, state in enumerate((True, True, False), 1)
    }
    plan = StoragePlan("run-1", tuple(how), 4, 30, 1 << 36, "/nowhere", how)
    rate = {"mb_per_second": 80.0, "iops": 80.0, "latency_ms": 1.0, "latency_99_ms": 3.0}
    answer = {"caches_dropped": True, "processes": [rate]}
    asked = argparse.Namespace(flush_nas="", storage_cache_gb=0.0, rate_iops=83)
    states = [
        storage.values_of(asked, plan, StorageCase("read", 1, mounts, 1), [answer])["fs_cache"]
        for mounts in (("/nas1", "/nas2"), ("/nas3",), ("/nas1", "/nas3"))
    ]
    assert states == [True, False, None]


def of_training(state: bool | None, speed: float) -> dict[str, Any]:
    row = {
        "model": "resnet50", "precision": "bf16", "processes": 4, "nodes": 1, "batch": 64,
        "size": 224, "device": "V100", "images_per_second": speed, "run_variation": 0.01,
        "step_variation": 0.01, "shares": {}, "caches_dropped": True, "expected_hit_rate": 0.1,
        "fs_cache": state,
    }  # fmt: skip
    part = {"name": "resnet50 bf16 run 1", "times": [0, 1], **row}
    return {
        "benchmark": "training",
        "date": "2026-11-22T03:00:00+00:00",
        "configuration": {"data": "/mnt/isilon1/x", "model": "resnet50", "precision": "bf16"},
        "parts": [part],
        "figures": {
            "trainings": [row],
            "points": [{**row, "speed_up": 1.0, "efficiency": 1.0}],
        },
    }


def test_two_trainings_that_differ_in_it_stand_beside_each_other() -> None:
    both = [of_training(False, 1000.0), of_training(True, 1500.0)]
    said = training_report.markdown(both)
    assert "| V100, /mnt/isilon1/x, FS-Cache off | 4 | 64 | 1,000 |" in said
    assert "| V100, /mnt/isilon1/x, FS-Cache on | 4 | 64 | 1,500 |" in said
    (kept,) = [line for line in said.splitlines() if "FS-Cache on: copies" in line]
    assert "caches dropped" in kept
    assert kept.endswith("not dropped.")
    source = data_sources.DataSource("NAS", "JPEG", "/mnt/isilon1/x")
    assert "| NAS, FS-Cache on | JPEG | 1,500 |" in data_sources.markdown({source: both[1]})
    assert [scaling.name_of(one).split(", ")[2] for one in both] == ["FS-Cache off", "FS-Cache on"]


def test_a_comparison_says_which_side_had_it() -> None:
    sides = [
        *comparison.sides("before", of_training(False, 1000.0)),
        *comparison.sides("after", of_training(True, 1500.0)),
        *comparison.sides("disk", of_training(None, 2000.0)),
    ]
    said = comparison.markdown("images/s", {}, sides)
    assert "- before: FS-Cache off; after: FS-Cache on.\n" in said


def test_results_of_before_this_was_recorded_are_still_read() -> None:
    old = of_training(None, 1000.0)
    for row in (*old["parts"], *old["figures"]["trainings"], *old["figures"]["points"]):
        del row["fs_cache"]
    assert "| V100, /mnt/isilon1/x | 4 |" in training_report.markdown([old])
    assert "FS-Cache" not in scaling.name_of(old)
    (side,) = comparison.sides("before", old)
    assert side.fs_cache is None
