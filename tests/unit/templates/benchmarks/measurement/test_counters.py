"""What Linux counts, on texts with known figures."""

from pathlib import Path

import pytest

from measurement.counters import (
    Counters,
    busy_seconds,
    disk_bytes,
    is_disk,
    network_bytes,
    nfs_bytes,
    rates,
    rdma_bytes,
    used_memory_mb,
)

STAT = """\
cpu  600 60 600 6000 600 60 60 0 0 0
cpu0 100 10 200 5000 300 20 30 7 50 0
cpu1 500 50 400 1000 300 40 30 0 0 0
cpu10 1 1 1 1 1 1 1 0 0 0
intr 12345
"""
MEMINFO = "MemTotal:       16384 kB\nMemFree: 1024 kB\nMemAvailable:   10240 kB\n"
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo: 9999 1 0 0 0 0 0 0 9999 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
  ib0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
"""
DISKSTATS = """\
 259       0 nvme0n1 10 0 2000 5 20 0 4000 5 0 10 10 0 0 0 0 0 0
 259       1 nvme0n1p1 10 0 2000 5 20 0 4000 5 0 10 10 0 0 0 0 0 0
 253       0 dm-0 10 0 2000 5 20 0 4000 5 0 10 10 0 0 0 0 0 0
"""
MOUNTSTATS = """\
device proc mounted on /proc with fstype proc
device nas:/ifs mounted on /mnt/isilon1 with fstype nfs statvers=1.1
\tbytes:\t10 20 30 40 5000 600 70 80
device nas:/ifs mounted on /mnt/again with fstype nfs statvers=1.1
\tbytes:\t10 20 30 40 5000 600 70 80
device nas2:/ifs mounted on /mnt/isilon2 with fstype nfs statvers=1.1
\tbytes:\t1 2 3 4 1000 100 7 8
"""
MOUNTINFO = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
70 27 0:45 / /mnt/isilon1 rw,relatime shared:9 - nfs nas:/ifs rw,vers=3
71 27 0:45 / /mnt/again rw,relatime shared:9 - nfs nas:/ifs rw,vers=3
72 27 0:46 / /mnt/isilon2 rw,relatime shared:9 - nfs nas2:/ifs rw,vers=3
"""


def test_cores_are_busy_when_they_neither_idle_nor_wait() -> None:
    assert busy_seconds(STAT, {0}, 100) == pytest.approx((100 + 10 + 200 + 20 + 30) / 100)
    assert busy_seconds(STAT, {0, 1}, 100) == pytest.approx((360 + 1020) / 100)


def test_used_memory_is_what_no_other_program_can_have() -> None:
    assert used_memory_mb(MEMINFO) == 6


def test_only_the_named_interfaces_are_counted() -> None:
    assert network_bytes(NET_DEV, ["eth0", "ib0"]) == (1100, 2200)


def test_a_disk_is_counted_once_without_its_partitions_and_maps() -> None:
    assert disk_bytes(DISKSTATS, ["nvme0n1"]) == (2000 * 512, 4000 * 512)
    assert [name for name in ("sda", "md0", "zram0", "vda") if is_disk(name)] == ["sda", "vda"]


def test_mounts_of_one_file_system_are_counted_once() -> None:
    assert nfs_bytes(MOUNTSTATS, MOUNTINFO) == (6000, 700)
    assert nfs_bytes("", "") == (0, 0)


def test_mounts_of_one_file_system_are_counted_once_while_they_are_read() -> None:
    # The kernel adds the counters up for each mount's lines: they have grown at the second.
    first, second = MOUNTSTATS.split("device nas:/ifs mounted on /mnt/again")
    grown = second.replace("5000 600", "5512 601", 1)
    later = f"{first}device nas:/ifs mounted on /mnt/again{grown}"
    assert later != MOUNTSTATS
    assert nfs_bytes(later, MOUNTINFO) == (6000, 700)


def test_a_trace_of_known_speed_gives_that_speed() -> None:
    before = Counters(10.0, 100, 1_000_000, 0, 5_000_000, 0)
    now = Counters(13.0, 200, 5_000_000, 2_000_000, 25_000_000, 1_000_000, (97.0, 50.0), (10, 20))
    assert rates(before, now, 2.0, 2) == {
        "cpu_share": 0.75,
        "memory_mb": 200,
        "received_mb_per_second": 2.0,
        "sent_mb_per_second": 1.0,
        "read_mb_per_second": 10.0,
        "written_mb_per_second": 0.5,
        "gpu_shares": [0.97, 0.5],
        "gpu_memory_mb": [10, 20],
    }


def test_a_file_system_that_is_unmounted_meanwhile_was_not_read_backwards() -> None:
    before = Counters(0.0, 0.0, 0, 0, 5_000_000, 3_000_000)
    now = Counters(0.0, 0.0, 0, 0, 1_000_000, 0)
    found = rates(before, now, 1.0, 2)
    assert (found["read_mb_per_second"], found["written_mb_per_second"]) == (0, 0)


def test_what_passes_by_linux_own_network_is_counted_in_four_bytes(tmp_path: Path) -> None:
    for card, received, sent in (("mlx5_0", 1000, 10), ("mlx5_1", 500, 5)):
        folder = tmp_path / card / "ports/1/counters"
        folder.mkdir(parents=True)
        (folder / "port_rcv_data").write_text(f"{received}\n")
        (folder / "port_xmit_data").write_text(f"{sent}\n")
    assert rdma_bytes(tmp_path) == (6000, 60)
    assert rdma_bytes(tmp_path / "none") == (0, 0)
