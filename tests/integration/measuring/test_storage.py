"""fio in real jobs over two nodes: what is reported, and what is left behind."""

import json
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports import storage as storage_report
from reports import usage
from tests.instance import FOLDER_NAME, LIMITED, PREFIX, ROOT, USERS, Instance
from tests.onefs import LOGIN, StandIn
from tests.waiting import until

pytestmark = pytest.mark.long

PROGRAM = ROOT / "notebook_templates" / "benchmarks" / "storage.py"
DROP = f"/usr/local/sbin/portal-{PREFIX}-drop-caches"
SCHEMA = json.loads(PROGRAM.with_name("schema.json").read_text())
SMALL: dict[str, Any] = {
    "processes": 2,
    "files": 3,
    "size_mib": 6,
    "seconds": 1,
    "ramp": 0,
    "other_seconds": 1,
    "other_ramp": 0,
    "repeats": 1,
    "rate_iops": 20,
    # The files stay small also where O_DIRECT does not work.
    "most_hits": 0,
}


@dataclass
class Desk:
    """A user with two mounts to measure."""

    portal: Instance
    name: str
    home: Path

    @property
    def mounts(self) -> list[Path]:
        return [self.home / "measured" / name for name in ("nas1", "nas2")]

    @property
    def results(self) -> Path:
        return self.home / "measured" / "results"

    def program(self, **options: object) -> list[str]:
        mounts = ",".join(map(str, self.mounts))
        chosen = {"results": self.results, "mounts": mounts, **SMALL, **options}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items()]
        return ["/usr/bin/python3", "-B", str(PROGRAM), *words]

    def submit(self, *, nodes: int = 2, **options: object) -> str:
        argv = ["sbatch", "--parsable", f"--nodes={nodes}", "--ntasks-per-node=1", "--time=5"]
        argv += ["--mem=1G", "--output=measured.log", "--open-mode=truncate"]
        argv += [f"--wrap=exec {shlex.join(self.program(**options))}"]
        return self.portal.slurm(*argv, user=self.name, home=str(self.home)).strip()

    def wait(self, job: str) -> None:
        until(lambda: job not in self.portal.jobs(), seconds=120, what="the measurement is over")

    @property
    def log(self) -> str:
        return (self.home / "measured.log").read_text()

    def summary(self) -> dict[str, Any]:
        file = self.results / "summary.json"
        assert file.exists(), self.log
        summary = dict(json.loads(file.read_text()))
        jsonschema.validate(summary, SCHEMA)
        return summary

    def parts(self) -> list[dict[str, Any]]:
        """Return what is measured so far."""
        file = self.results / "progress.jsonl"
        text = file.read_text() if file.exists() else ""
        lines = [json.loads(line) for line in text.splitlines(keepends=True) if "\n" in line]
        return [line for line in lines if "part" in line]

    def left(self) -> list[Path]:
        """Return what is on the mounts."""
        return [entry for mount in self.mounts for entry in mount.iterdir()]


@pytest.fixture
def desk(portal: Instance) -> Iterator[Desk]:
    account = pwd.getpwnam(USERS[0])
    one = Desk(portal, USERS[0], Path(account.pw_dir))
    shutil.rmtree(one.home / "measured", ignore_errors=True)
    for folder in (one.home / "measured", *one.mounts):
        folder.mkdir()
        shutil.chown(folder, account.pw_uid, account.pw_gid)
    yield one
    shutil.rmtree(one.home / "measured")


def test_two_clients_measure_at_once_and_the_report_is_fios_own(desk: Desk) -> None:
    one: dict[str, Any] = {
        "mounts": desk.mounts[0],
        "loads": "training,random-write",
        "caches_program": DROP,
    }
    desk.wait(desk.submit(**one))
    summary = desk.summary()
    assert [host["name"] for host in summary["hosts"]] == [f"{PREFIX}node001", f"{PREFIX}node002"]
    assert summary["versions"]["fio"].startswith("fio-3")
    # Two loads, from one client and from two.
    assert len(summary["parts"]) == len(summary["figures"]["rates"]) == 4
    for part in summary["parts"]:
        side = "write" if "write" in part["load"] else "read"
        (folder,) = (desk.results / "fio").glob(f"{part['load']}-{part['clients']}-clients-*")
        clients = [[job[side] for job in report["jobs"]] for report in _reports(folder)]
        assert [len(jobs) for jobs in clients] == [2] * part["clients"]
        by_client = [sum(job["bw_bytes"] for job in jobs) / 1e6 for jobs in clients]
        assert part["by_client_mb_per_second"] == pytest.approx(by_client)
        assert part["mb_per_second"] == pytest.approx(sum(by_client))
        assert part["iops"] == pytest.approx(sum(job["iops"] for jobs in clients for job in jobs))
        assert part["caches_dropped"]
    paced = [part for part in summary["parts"] if part["load"] == "training"]
    # Two processes on each client, 20 reads of 1 MiB a second; fio may be late, but never early.
    assert all(part["mb_per_second"] <= 1.1 * part["asked_mb_per_second"] for part in paced)
    assert {part["clients"]: round(part["asked_mb_per_second"]) for part in paced} == {1: 42, 2: 84}
    assert sorted(summary["samples"]) == [f"{PREFIX}node001", f"{PREFIX}node002"]
    assert usage.picture(summary).startswith(b"\x89PNG")
    assert desk.left() == []


def _reports(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("fio-*.json"))]


def test_in_turn_every_mount_has_the_files_of_its_processes(desk: Desk) -> None:
    job = desk.submit(loads="read", clients=2, other_seconds=600)
    until(lambda: len(_files(desk)) == 2 * 2 * 2 * 3, seconds=60, what="all files are there")
    # Each mount alone needs all: two clients with two processes with three files each.
    names = {f"process{process}.{number}" for process in range(4) for number in range(3)}
    for mount in desk.mounts:
        assert {file.name for file in _files(desk) if file.is_relative_to(mount)} == names
    desk.portal.slurm("scancel", job)
    desk.wait(job)
    until(lambda: desk.left() == [], seconds=30, what="the files are gone")


def test_what_the_nas_says_of_itself_is_beside_what_fio_measured(
    nas: StandIn, tmp_path: Path
) -> None:
    small = {**SMALL, "loads": "read", "mounts": nas.folder, "results": tmp_path / "r"}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in small.items()]
    argv = [sys.executable, "-B", str(PROGRAM), *words, f"--nas-api={nas.url}"]
    began = time.time()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    jsonschema.validate(summary, SCHEMA)
    assert summary["configuration"]["nas_api"] == nas.url
    assert {line["read_mb_per_second"] for line in summary["nas"]} == {2680.0}
    assert {line["disk_reads_per_second"] for line in summary["nas"]} == {20_000.0}
    assert {line["disk_read_kib"] for line in summary["nas"]} == {64.0}
    assert all(began < line["time"] < time.time() for line in summary["nas"])
    assert LOGIN[1] not in json.dumps(summary) + done.stdout + done.stderr


def _files(desk: Desk) -> list[Path]:
    return [file for mount in desk.mounts for file in mount.glob("*/*/process*")]


def test_a_measurement_that_is_cancelled_leaves_no_files_and_goes_on_later(desk: Desk) -> None:
    options: dict[str, Any] = {"loads": "read", "other_seconds": 3, "clients": 2}
    job = desk.submit(**options)
    until(lambda: len(desk.parts()) == 1, seconds=60, what="a part is measured")
    desk.portal.slurm("scancel", job)
    desk.wait(job)
    until(lambda: desk.left() == [], seconds=30, what="the files are gone")
    first = desk.parts()
    assert len(first) < 3
    assert "stopped by SIGTERM; what was measured is kept" in desk.log
    desk.wait(desk.submit(**options))
    assert desk.parts()[: len(first)] == first
    assert len(desk.summary()["parts"]) == 3
    assert not (desk.results / "error.txt").exists()
    assert desk.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_in_a_shell_a_signal_ends_it_and_its_files_go(number: signal.Signals, desk: Desk) -> None:
    argv = desk.program(other_seconds=600, loads="read")
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, user=desk.name, cwd=desk.home, stderr=pipe) as process:
        until(lambda: len(_files(desk)) == 12, seconds=60, what="the files are there")
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"stopped by {number.name}" in said.decode()
    assert "Traceback" not in said.decode()
    assert desk.left() == []


def test_what_is_not_the_users_own_is_not_touched(desk: Desk) -> None:
    precious = desk.home / "measured" / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("mine")
    uid = pwd.getpwnam(desk.name).pw_uid
    (desk.mounts[0] / f"measuring-{uid}").symlink_to(precious)
    done = subprocess.run(
        desk.program(), user=desk.name, cwd=desk.home, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "is not a folder" in done.stderr
    assert "is not a folder" in (desk.results / "error.txt").read_text()
    assert [one.name for one in precious.iterdir()] == ["thesis"]


def test_files_that_do_not_fit_are_refused(desk: Desk) -> None:
    size = 2 * shutil.disk_usage(desk.home).free // 2**20
    done = subprocess.run(
        desk.program(size_mib=size),
        user=desk.name,
        cwd=desk.home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "GB left for you" in done.stderr
    assert desk.left() == []


# As in a container that forbids asynchronous requests, on a file system without O_DIRECT:
# seccomp(2) refuses io_setup and io_uring_setup, and openat with that flag.
SEALED = """
import ctypes, errno, os, struct, sys

LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
IO_SETUP, IO_URING_SETUP, OPENAT = 206, 425, 257
lines = [
    (LOAD, 0, 0, 0),
    (EQUAL, 5, 0, IO_SETUP),
    (EQUAL, 4, 0, IO_URING_SETUP),
    (EQUAL, 0, 2, OPENAT),
    (LOAD, 0, 0, 32),
    (ANY_BIT, 2, 0, os.O_DIRECT),
    (RETURN, 0, 0, ALLOW),
    (RETURN, 0, 0, REFUSE | errno.EPERM),
    (RETURN, 0, 0, REFUSE | errno.EINVAL),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_without_its_engine_and_past_no_cache_fio_still_measures_and_it_is_said(desk: Desk) -> None:
    plain = desk.program(loads="read", mounts=desk.mounts[0])
    argv = ["/usr/bin/python3", "-c", SEALED, *plain]
    done = subprocess.run(
        argv, user=desk.name, cwd=desk.home, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (part,) = desk.summary()["parts"]
    assert (part["engines"], part["direct"]) == (["psync"], False)
    assert part["expected_hit_rate"] == 1
    said = storage_report.markdown(desk.summary())
    assert "Not libaio but psync" in said
    assert "not dropped: up to 100.0% of reads can come from memory" in said


def test_caches_are_dropped_by_one_program_without_arguments(portal: Instance) -> None:
    def may(user: str, *argv: str) -> bool:
        sudo = ["/usr/sbin/runuser", "-u", user, "--", "/usr/bin/sudo", "-n", "-l", *argv]
        return subprocess.run(sudo, capture_output=True, timeout=30, check=False).returncode == 0

    assert may(USERS[0], DROP)
    assert may(LIMITED, DROP)
    assert not may(USERS[0], DROP, "1")
    assert not may(USERS[0], "/bin/sh")
    assert not may(f"jupyterhub-{PREFIX}", DROP)
    rules = Path(f"/etc/sudoers.d/{FOLDER_NAME}-measuring")
    assert rules.stat().st_mode & 0o777 == 0o440
    program = Path(DROP).stat()
    assert (program.st_uid, program.st_mode & 0o777) == (0, 0o755)
