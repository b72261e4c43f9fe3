"""What is measured of storage, and what comes out, without storage."""

import argparse
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import scaling
import storage
import training
from filesystem import caches, fio, own_folder
from filesystem import parts as storage_parts
from filesystem.client import Client, StoragePlan
from filesystem.own_folder import OwnFolderError, open_own, remove_own
from filesystem.parts import StorageCase, counts, mounts_of, parts, rates_of, seconds_of
from measurement.choices import SettingError
from measurement.site_program import SiteProgramError
from measurement.steps import Nodes
from reports import storage as storage_report
from trials import trial

# Written by fio 3.33 for two processes with rate_iops=83; what is not read was taken out.
REPORT = Path(__file__).parents[3] / "data" / "training_of_fio_3.33.json"
DEFAULTS = {
    "flush_nas": "",
    "loads": "training,read",
    "repeats": 2,
    "depth": 32,
    "rate_iops": 83,
    "seconds": 600.0,
    "ramp": 60.0,
    "other_seconds": 60.0,
    "other_ramp": 5.0,
    "storage_cache_gb": 0.0,
}
HOW = {"engine": "libaio", "direct": True, "fs_cache": None}


def settings(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**{**DEFAULTS, **more})


def plan(**more: Any) -> StoragePlan:
    how = {f"/nas{number}": HOW for number in (1, 2, 3)}
    return StoragePlan(**{**_PLAN, "how": how, **more})


_PLAN: dict[str, Any] = {
    "run": "run-1",
    "mounts": ("/nas1", "/nas2", "/nas3"),
    "processes": 4,
    "files": 30,
    "bytes": 64 * fio.GIB,
    "drop": "/nowhere",
}


def test_the_figures_are_fios_own() -> None:
    report = fio.read_report(REPORT.read_text())
    first, second = fio.figures(report, fio.LOADS["training"])
    assert first == {
        "mb_per_second": 87.337751,
        "iops": 83.291771,
        "latency_ms": 2.267964826347,
        "latency_99_ms": 7.962624,
    }
    both = fio.together([first, second])
    assert both["mb_per_second"] == pytest.approx(87.337751 + 87.424958)
    assert both["iops"] == pytest.approx(83.291771 + 83.374938)
    assert both["latency_ms"] == pytest.approx(2.2042988658)
    assert both["latency_99_ms"] == 12.910592


def test_remarks_before_fios_report_are_passed_over() -> None:
    text = "note: both iodepth >= 1 and synchronous I/O engine\n" + REPORT.read_text()
    assert fio.read_report(text)["fio version"] == "fio-3.33"
    with pytest.raises(fio.FioError, match="no report: fio: out of memory"):
        fio.read_report("fio: out of memory\n")


def test_a_process_that_had_no_io_is_reported_and_the_others_count() -> None:
    report = json.loads(REPORT.read_text())
    idle = {"mb_per_second": 0.0, "iops": 0.0, "latency_ms": None, "latency_99_ms": None}
    assert fio.figures(report, fio.LOADS["write"]) == [idle, idle]
    working = fio.figures(report, fio.LOADS["training"])[0]
    both = fio.together([working, idle])
    assert both == {**working, "idle_processes": 1}
    none = fio.together([idle, idle])
    assert none == {**idle, "idle_processes": 2}


def test_a_process_that_failed_is_an_error() -> None:
    report = json.loads(REPORT.read_text())
    report["jobs"][0]["error"] = 5
    with pytest.raises(fio.FioError, match="process0: error 5"):
        fio.figures(report, fio.LOADS["training"])


def test_a_part_without_io_is_a_row_of_the_report() -> None:
    part = {"load": "read", "mounts": ["/nas"], "clients": 1, "mb_per_second": 0.0, "iops": 0.0}
    rates = rates_of([{**part, "latency_ms": None, "asked_mb_per_second": 100.0}])
    line = storage_report._line(rates[0])
    assert "| no I/O | 100 | 0% of it |" in line


def test_the_training_like_load_is_the_papers() -> None:
    processes = [fio.FioProcess(number, f"/nas{number}", "libaio", True) for number in range(4)]
    pace = storage_parts.pace_of(settings(), "training")
    files = fio.Files(30, 64 * fio.GIB)
    words = fio.command(fio.LOADS["training"], files, pace, processes, "report.json")
    for word in (
        "--rw=read",
        "--bs=1048576",
        "--iodepth=32",
        "--nrfiles=30",
        "--size=68719476736",
        "--rate_iops=83",
        "--runtime=600",
        "--ramp_time=60",
        "--time_based=1",
    ):
        assert words.count(word) == 1
    assert words.count("--ioengine=libaio") == words.count("--direct=1") == 4
    assert [word for word in words if word.startswith("--name=process")] == [
        f"--name=process{number}" for number in range(4)
    ]


def test_only_the_training_like_load_is_paced_and_only_writes_are_flushed() -> None:
    files, pace = fio.Files(1, fio.MIB), fio.FioLoad(32, 83, 1, 0)
    for name, load in fio.LOADS.items():
        words = " ".join(fio.command(load, files, pace, [], "report.json"))
        assert ("--rate_iops" in words) == (name == "training")
        assert ("--end_fsync" in words) == ("write" in name)


def test_a_process_uses_the_mount_of_its_number_modulo_mounts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders = [
        own_folder.OwnFolder(Path(f"/nas{number}"), "run", 0, number) for number in (1, 2, 3)
    ]
    used = []
    for client in range(2):
        monkeypatch.setenv("SLURM_PROCID", str(client))
        processes = Client(plan(), Path("/nowhere")).processes(folders)
        used += [(one.number, one.folder) for one in processes]
    assert used == [(number, folders[number % 3].path) for number in range(8)]


def test_clients_double_until_all_work() -> None:
    assert counts("", 1) == [1]
    assert counts("", 8) == [1, 2, 4, 8]
    assert counts("", 6) == [1, 2, 4, 6]
    assert counts("4,2", 6) == [2, 4]
    with pytest.raises(SettingError, match="clients is 8, and there are 6 nodes"):
        counts("8", 6)


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1,", "1.5"])
def test_clients_are_whole_numbers(wrong: str) -> None:
    with pytest.raises(SettingError, match=r"clients is .*whole number, at least 1"):
        counts(wrong, 6)


def test_each_mount_is_measured_alone_and_then_all_in_turn() -> None:
    todo = parts(settings(), ("/nas1", "/nas2"), [1, 2])
    assert len(todo) == len({part.name for part in todo}) == len({part.folder for part in todo})
    assert len(todo) == 3 * 2 * 2 * 2
    assert [part.mounts for part in todo[::8]] == [("/nas1",), ("/nas2",), ("/nas1", "/nas2")]
    assert len(parts(settings(), ("/nas1",), [1])) == 2 * 2
    # 12 parts as a GPU trains, of 11 minutes, and 12 of 65 s.
    assert seconds_of(settings(), todo) == 12 * 660 + 12 * 65


def test_unknown_loads_and_mounts_that_are_named_twice_are_refused() -> None:
    with pytest.raises(SettingError, match=r"'erase'.*there are training, read"):
        parts(settings(loads="read,erase"), ("/nas1",), [1])
    with pytest.raises(SettingError, match="each once"):
        mounts_of("/nas1,/nas1")
    with pytest.raises(SettingError, match="name folders"):
        mounts_of("")


def test_a_part_says_what_was_asked_and_what_caches_can_answer() -> None:
    part = StorageCase("training", 2, ("/nas1",), 1)
    answer = {
        "caches_dropped": True,
        "processes": [
            {"mb_per_second": 80.0, "iops": 80.0, "latency_ms": 1.0, "latency_99_ms": 3.0},
        ],
    }
    other = {**answer, "caches_dropped": False}
    values = storage.values_of(settings(storage_cache_gb=1000), plan(), part, [answer, other])
    assert values["mb_per_second"] == 160
    assert values["by_client_mb_per_second"] == [80, 80]
    # 2 clients x 4 processes x 83 requests of 1,048,576 bytes.
    assert values["asked_mb_per_second"] == pytest.approx(696.254464)
    assert not values["caches_dropped"]
    assert values["expected_hit_rate"] == 0
    # 1 TB over 8 x 64 GiB is more than there is.
    assert values["storage_hit_rate"] == 1
    through = plan(how={"/nas1": {**HOW, "engine": "psync", "direct": False}})
    values = storage.values_of(settings(), through, part, [answer])
    mine = 4 * 64 * fio.GIB
    assert values["expected_hit_rate"] == min(1.0, caches.memory_bytes() / mine)
    assert values["storage_hit_rate"] is None


def test_larger_files_do_not_lower_the_storages_hit_rate() -> None:
    how = settings(storage_cache_gb=1000)
    part = StorageCase("read", 32, ("/nas1",), 1)
    for there in (64 * fio.GIB, 256 * fio.GIB):
        # 18.9 GB/s (the papers') for as long as a part reads.
        found = storage.storage_hits(how, part, 32 * 4 * there, 18_924)
        pace = storage_parts.pace_of(how, "read")
        assert found == pytest.approx(1e12 / (18_924e6 * (pace.seconds + pace.ramp_seconds)))


def test_the_expected_hit_rate_is_the_papers() -> None:
    assert round(caches.hit_rate(768e9, 22.2e12), 3) == 0.035
    assert round(caches.hit_rate(1e12, 22.2e12), 3) == 0.045
    assert caches.hit_rate(10, 5) == 1
    assert caches.outgrown(100, 0.25) == 400


def test_files_outgrow_the_cache_only_where_it_is_in_the_way() -> None:
    found = [{"may_drop_caches": False, "memory_bytes": 2**40}]
    mounts = {"mounts": ("/nas1",), "bytes": fio.GIB}
    cached = plan(how={"/nas1": {**HOW, "direct": False}}, **mounts)
    # 1 TiB of memory, a quarter of reads: 4 TiB for 4 processes.
    assert storage.outgrown(cached, found, 0.25).bytes == 2**40
    assert storage.outgrown(cached, [{**found[0], "may_drop_caches": True}], 0.25) == cached
    assert storage.outgrown(cached, found, 0) == cached
    direct = plan(how={"/nas1": HOW}, **mounts)
    assert storage.outgrown(direct, found, 0.25) == direct


def runs(*speeds: float, **more: object) -> list[dict[str, Any]]:
    one = {"load": "read", "mounts": ["/nas1"], "clients": 1, "asked_mb_per_second": None}
    return [{**one, "mb_per_second": s, "iops": s, "latency_ms": 1.0, **more} for s in speeds]


def test_runs_of_a_part_come_together() -> None:
    line, other = rates_of([*runs(90, 110, 100), *runs(7, clients=2)])
    assert (line["mb_per_second"], line["runs"]) == (100, 3)
    assert (line["mb_per_second_lowest"], line["mb_per_second_highest"]) == (90, 110)
    assert (other["clients"], other["mb_per_second"], other["runs"]) == (2, 7, 1)


def summary(rates: list[dict[str, Any]], **part: object) -> dict[str, Any]:
    how = {"engines": ["libaio"], "direct": True, "caches_dropped": False}
    return {
        "configuration": {"processes": 4, "depth": 32},
        "versions": {"fio": "fio-3.33"},
        "date": "2026-11-22T03:00:00+00:00",
        "figures": {"rates": rates_of(rates)},
        "parts": [{**how, "expected_hit_rate": 0.0, "storage_hit_rate": None, **part}],
    }


def test_the_report_has_the_papers_figures_and_says_whether_storage_keeps_up() -> None:
    kept = runs(347.0, load="training", asked_mb_per_second=348.1)
    behind = runs(174.05, load="training", asked_mb_per_second=348.1, clients=2)
    said = storage_report.markdown(summary([*runs(90, 110), *kept, *behind]))
    assert "| read | /nas1 | 1 | 100 | 90 to 110 | 100 | 1.00 |  |  |" in said
    assert "| 348 | keeps up |" in said
    assert "| 348 | 50% of it |" in said
    assert "| read | papers: the NAS | 4 | 18,924 |" in said
    assert "Past the clients' caches" in said
    assert "libaio but" not in said


def test_the_report_states_the_expected_hit_rate_and_another_engine() -> None:
    seen = {"direct": False, "expected_hit_rate": 0.035, "storage_hit_rate": 0.045}
    said = storage_report.markdown(summary(runs(1), engines=["psync"], **seen))
    assert "Not libaio but psync" in said
    assert "not dropped: up to 3.5% of reads" in said
    assert "4.5% can come from the storage's own cache" in said


def test_caches_that_were_not_dropped_before_each_part_are_not_said_to_be() -> None:
    told = summary(runs(1), direct=False, expected_hit_rate=0.5)
    one, two = ({**told["parts"][0], "caches_dropped": is_so} for is_so in (True, False))
    for several, words in (
        ([one, one], "were dropped before each part: up to 50.0%"),
        ([one, two], "were dropped before 1 of 2 parts only: up to 50.0%"),
        ([two, two], "were not dropped: up to 50.0%"),
    ):
        assert words in storage_report.markdown({**told, "parts": several})


def test_the_figure_is_drawn() -> None:
    rates = [*runs(90, 110), *runs(200, clients=2), *runs(5000, load="random-read")]
    assert storage_report.figure(summary(rates)).startswith(b"\x89PNG")


def test_the_own_folder_is_made_and_goes_with_the_last_run(tmp_path: Path) -> None:
    first, second = open_own(tmp_path, "run-1"), open_own(tmp_path, "run-2")
    top = tmp_path / own_folder.name()
    assert top.stat().st_mode & 0o777 == 0o700
    Path(first.path, "process0.0").write_bytes(b"x" * 1000)
    assert first.used_bytes() == 1000
    first.remove()
    assert [one.name for one in top.iterdir()] == ["run-2"]
    second.remove()
    assert list(tmp_path.iterdir()) == []


def test_clients_remove_and_make_at_the_same_time(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for _ in range(200):
            folder = open_own(tmp_path, f"run-{number % 2}")
            folder.close()
            remove_own(tmp_path, f"run-{number % 2}")

    with ThreadPoolExecutor(4) as clients:
        assert list(clients.map(work, range(4))) == [None] * 4
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_removed_already_but_a_mount_must_be(tmp_path: Path) -> None:
    remove_own(tmp_path, "run-1")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OwnFolderError, match="nowhere cannot be measured on: No such file"):
        remove_own(tmp_path / "nowhere", "run-1")


@pytest.fixture
def misled(tmp_path: Path) -> tuple[Path, Path]:
    """A mount on which a link has the own folder's name, and where it leads."""
    precious, mount = tmp_path / "precious", tmp_path / "mount"
    precious.mkdir()
    mount.mkdir()
    (mount / own_folder.name()).symlink_to(precious)
    return mount, precious


def test_what_is_removed_is_ones_own(misled: tuple[Path, Path]) -> None:
    mount, precious = misled
    (precious / "run-1").mkdir()
    with pytest.raises(OwnFolderError, match="is not a folder"):
        remove_own(mount, "run-1")
    assert [one.name for one in precious.iterdir()] == ["run-1"]


def test_a_link_in_the_place_of_the_own_folder_is_refused(misled: tuple[Path, Path]) -> None:
    mount, precious = misled
    (precious / "thesis").write_text("mine")
    with pytest.raises(OwnFolderError, match="is not a folder"):
        open_own(mount, "run-1")
    assert [one.name for one in precious.iterdir()] == ["thesis"]


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    top = tmp_path / own_folder.name()
    top.mkdir()
    top.chmod(0o770)
    with pytest.raises(OwnFolderError, match=r"is not yours alone \(owner \d+, mode drwxrwx---\)"):
        open_own(tmp_path, "run-1")
    top.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(top, 4242, -1)
        with pytest.raises(OwnFolderError, match="owner 4242"):
            open_own(tmp_path, "run-1")


def test_a_folder_that_is_swapped_meanwhile_gets_nothing(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "run-1").mkdir(parents=True)
    (precious / "run-1" / "thesis").write_text("mine")
    folder = open_own(tmp_path, "run-1")
    (tmp_path / own_folder.name()).rename(tmp_path / "away")
    (tmp_path / own_folder.name()).symlink_to(precious)
    Path(folder.path, "process0.0").write_bytes(b"x")
    folder.remove()
    assert [one.name for one in (precious / "run-1").iterdir()] == ["thesis"]
    assert list((tmp_path / "away").iterdir()) == []


def test_a_mount_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(OwnFolderError, match="nowhere cannot be measured on: No such file"):
        open_own(tmp_path / "nowhere", "run-1")


def test_files_that_do_not_fit_are_refused_before_any_is_written(tmp_path: Path) -> None:
    folder = open_own(tmp_path, "run-1")
    free = shutil.disk_usage(tmp_path).free
    folder.need(free // 2)
    with pytest.raises(OwnFolderError, match=r"GB left for you, and the files take .* GB more"):
        folder.need(free * 2)
    assert folder.used_bytes() == 0


def test_a_quota_leaves_its_limit_less_the_use() -> None:
    # quota --no-wrap --raw-grace: KiB used, soft, hard, grace; files.
    head = ["Disk quotas for user you (uid 1000):", "Filesystem blocks quota limit grace files"]
    line = "nas:/ifs {used} {soft} {hard} 0 12 0 0 0"
    assert own_folder.left_of([*head, line.format(used=100, soft=400, hard=500)]) == 400 * 1024
    assert own_folder.left_of([*head, line.format(used=100, soft=400, hard=0)]) == 300 * 1024
    assert own_folder.left_of([*head, line.format(used="600*", soft=400, hard=500)]) == 0
    assert own_folder.left_of([*head, line.format(used=100, soft=0, hard=0)]) is None
    assert own_folder.left_of(["Disk quotas for user you (uid 1000): none"]) is None


def test_files_that_a_quota_does_not_leave_room_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no file system with quotas here: a program that answers as quota(1) does.
    quota = tmp_path / "quota"
    quota.write_text("#!/bin/sh\necho nas:/ifs 100 0 300 0 12 0 0 0\n")
    quota.chmod(0o755)
    monkeypatch.setattr(own_folder, "_QUOTA", (str(quota),))
    folder = open_own(tmp_path, "run-1")
    assert folder.free_bytes() == 200 * 1024
    folder.need(200 * 1024)
    with pytest.raises(OwnFolderError, match="GB left for you"):
        folder.need(200 * 1024 + 1)


@pytest.fixture
def flush(tmp_path: Path) -> Path:
    """Make a stand-in for a site's program that flushes its NAS: none is at hand."""
    program = tmp_path / "flush"
    program.write_text(f"#!/bin/sh\necho flushed >> {tmp_path}/calls\n")
    program.chmod(0o755)
    return program


def test_the_nas_is_flushed_only_where_a_program_is_named(
    flush: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["storage.py", "--results=r", "--mounts=/nas1"])
    assert storage.settings().flush_nas == "", "off by default"
    for program in (training, scaling):
        monkeypatch.setattr("sys.argv", ["program", "--results=r"])
        assert program.settings().flush_nas == "", "off by default"
    caches.flush_nas(str(flush))
    assert flush.with_name("calls").read_text() == "flushed\n"


def test_a_training_from_files_flushes_the_nas_where_a_program_is_named(
    flush: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = flush.with_name("calls")
    by_nodes = {"caches_dropped": True, "fs_cache": None}
    monkeypatch.setattr(trial, "_drop_caches", lambda *_: by_nodes)
    there = Nodes(count=1, tasks=1, in_job=False)

    def said(data: str, program: str) -> dict[str, Any]:
        asked = argparse.Namespace(data=data, mounts="", flush_nas=program, caches_program="drop")
        return trial.without_caches(asked, there, 1)

    not_flushed = {**by_nodes, "nas_flushed_by": None}
    assert said("/nas/jpeg", "") == not_flushed
    assert said("synthetic", str(flush)) == {**not_flushed, "caches_dropped": False}
    assert not calls.exists()
    assert said("/nas/jpeg", str(flush)) == {**by_nodes, "nas_flushed_by": str(flush)}
    assert calls.read_text() == "flushed\n"
    with pytest.raises(SiteProgramError):
        said("/nas/jpeg", str(flush.with_name("none")))


def test_a_nas_that_was_not_flushed_ends_the_measurement(flush: Path) -> None:
    flush.write_text("#!/bin/sh\necho no right to >&2\nexit 3\n")
    with pytest.raises(SiteProgramError, match=r"ended with 3: no right to"):
        caches.flush_nas(str(flush))
    with pytest.raises(SiteProgramError, match="No such file"):
        caches.flush_nas(str(flush.with_name("none")))


def test_a_result_names_what_flushed_the_nas() -> None:
    part = StorageCase("read", 1, ("/nas1",), 1)
    rates = {"mb_per_second": 80.0, "iops": 80.0, "latency_ms": 1.0, "latency_99_ms": 3.0}
    answer = {"caches_dropped": True, "processes": [rates]}
    flushed = storage.values_of(settings(flush_nas="/opt/flush"), plan(), part, [answer])
    assert flushed["nas_flushed_by"] == "/opt/flush"
    assert storage.values_of(settings(), plan(), part, [answer])["nas_flushed_by"] is None
    said = storage_report.markdown(summary(runs(1), nas_flushed_by="/opt/flush"))
    assert "flushed before each part by /opt/flush." in said
    assert "flushed" not in storage_report.markdown(summary(runs(1)))
