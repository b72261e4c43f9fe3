from pathlib import Path

import pytest

from dsportal.session.usage.memory import (
    JobMemory,
    MemoryFolders,
    limit_bytes,
    memory_folders,
    oom_kills,
)

# Linux 6, cgroup v1 with Slurm 22.05's task/cgroup.
V1 = """\
9:name=systemd:/
8:pids:/
4:memory:/slurm/uid_10001/job_7/step_batch/task_0
3:cpuset:/slurm/uid_10001/job_7/step_batch
0::/
"""
V2 = "0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n"
ROOT = Path("/cg")


def test_version_1_has_a_folder_of_its_own_for_memory() -> None:
    folders = memory_folders(V1, ROOT)
    assert folders.version == 1
    assert folders.paths[0] == ROOT / "memory/slurm/uid_10001/job_7/step_batch/task_0"
    assert folders.paths[-1] == ROOT / "memory/slurm"


def test_version_2_has_one_folder_for_all() -> None:
    folders = memory_folders(V2, ROOT)
    assert folders.version == 2
    assert folders.paths[0] == ROOT / "system.slice/slurmstepd.scope/job_7/step_batch/user/task_0"


@pytest.mark.parametrize("text", ["", "4:memory:/\n", "nonsense"])
def test_a_process_in_no_group_has_no_folders(text: str) -> None:
    assert memory_folders(text, ROOT).paths == ()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        ("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n", 1),
        ("oom_kill_disable 0\nunder_oom 0\n", 0),
        ("", 0),
    ],
)
def test_kills_are_counted_in_both_versions(text: str, count: int) -> None:
    assert oom_kills(text) == count


@pytest.mark.parametrize(
    ("text", "limit"),
    [("103079215104\n", 96 * 2**30), ("max\n", None), ("9223372036854771712\n", None), ("", None)],
)
def test_a_limit_is_a_number_or_none(text: str, limit: int | None) -> None:
    assert limit_bytes(text) == limit


def test_the_smallest_limit_around_the_process_counts(tmp_path: Path) -> None:
    task, job = tmp_path / "job/task", tmp_path / "job"
    task.mkdir(parents=True)
    (task / "memory.limit_in_bytes").write_text("9223372036854771712")
    (task / "memory.oom_control").write_text("oom_kill 2")
    (job / "memory.limit_in_bytes").write_text(str(96 * 2**30))
    memory = JobMemory(MemoryFolders(1, (task, job)))
    assert (memory.limit_gib(), memory.kills()) == (96, 2)


def test_a_machine_without_groups_has_no_limit() -> None:
    memory = JobMemory(MemoryFolders(2, ()))
    assert (memory.limit_gib(), memory.kills()) == (None, 0)


STAT = "cache 900\nrss 100\ninactive_file 7\ntotal_inactive_file 800\ntotal_active_file 100\n"


@pytest.mark.parametrize(
    ("version", "name", "used"),
    [(1, "memory.usage_in_bytes", 1000 - 800), (2, "memory.current", 1000 - 7)],
)
def test_the_whole_jobs_memory_is_used_without_what_linux_gives_back(
    tmp_path: Path, version: int, name: str, used: int
) -> None:
    task, job = tmp_path / "job_7/step_batch/task_0", tmp_path / "job_7"
    task.mkdir(parents=True)
    (task / name).write_text("1")
    (job / name).write_text("1000\n")
    (job / "memory.stat").write_text(STAT)
    folders = MemoryFolders(version, (task, task.parent, job, tmp_path))
    assert JobMemory(folders).used_bytes() == used


def test_without_a_group_of_the_jobs_own_its_memory_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "memory.current").write_text("123456789")
    assert JobMemory(MemoryFolders(2, (tmp_path,))).used_bytes() is None
