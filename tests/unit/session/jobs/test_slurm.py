import asyncio
import re
from pathlib import Path

import pytest

from dsportal.session.jobs import words
from dsportal.session.jobs.records import UserJob, exit_of, is_job_id
from dsportal.session.jobs.slurm import (
    LogFiles,
    SlurmPrograms,
    SlurmRefused,
    complaint,
    files_from,
    gpus_of,
    jobs_from,
    nodes_from,
)

CAPTURED = Path(__file__).parents[2] / "data/own_jobs_of_slurm_22.05.txt"
SHOWN = """JobId=7 JobName=a
   StdErr=/etc/shadow
   StdIn=/dev/null
   StdOut=/etc/passwd
   UserId=user1(1001) GroupId=users(100) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   Comment=b
   StdOut=/etc/passwd
   StdErr=/home/user1/err of it.txt
   StdIn=/dev/null
   StdOut=/home/user1/log-7.out
   Power=
"""


def jobs() -> dict[str, UserJob]:
    return {job.id: job for job in jobs_from(CAPTURED.read_text())}


def program(folder: Path, name: str, script: str) -> None:
    """Make what stands in for a program of Slurm's; it notes how it was called."""
    file = folder / name
    file.write_text(f'#!/bin/sh\necho "$0 $*" >>"{folder}/calls"\n{script}\n')
    file.chmod(0o755)


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    return [line.replace(f"{folder}/", "") for line in file.read_text().splitlines()]


def test_every_job_is_read_whatever_its_name_holds() -> None:
    assert list(jobs()) == [
        *("12", "17", "18+0", "18+1", "20", "22", "21_[3-5%2]", "27"),
        *("21_1", "21_2", "25", "26", "28", "29+0", "29+1"),
    ]
    assert jobs()["20"].name == "two"


def test_a_job_that_failed_says_how() -> None:
    found = jobs()
    assert (found["22"].state, found["22"].exit_code, found["22"].signal) == ("FAILED", 3, None)
    assert (found["20"].state, found["20"].exit_code, found["20"].signal) == ("FAILED", None, 9)
    assert found["22"].is_over
    assert found["22"].reason is None


def test_a_job_that_never_ran_has_no_start() -> None:
    found = jobs()
    assert found["12"].state == "CANCELLED"
    assert found["12"].started is None
    assert found["12"].ends is not None
    assert found["27"].started is None
    assert found["27"].expected_start is not None
    assert found["27"].ends is None
    assert found["27"].reason == "BeginTime"


def test_a_running_job_says_where_and_until_when() -> None:
    job = jobs()["28"]
    assert job.nodes == ("node001", "node003")
    assert job.started == 1795276824.0
    assert job.ends == job.started + 12 * 3600


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("gpu[1-2],n7", ("gpu1", "gpu2", "n7")),
        ("", ()),
        # Nobody needs so many names, and no memory holds those of the second.
        ("n[1-2000],m1", ("n[1-2000]", "m1")),
        ("n[1-99999999]x[1-99999999]", ("n[1-99999999]", "x[1-99999999]")),
        ("n[a-b]", ("n[a-b]",)),
    ],
)
def test_lists_of_nodes_are_written_out_unless_they_are_long(
    text: str, nodes: tuple[str, ...]
) -> None:
    assert nodes_from(text) == nodes


@pytest.mark.parametrize(
    ("job_id", "gpus"), [("20", 1), ("22", 0), ("25", 1), ("27", 6), ("28", 5), ("26", 0)]
)
def test_gpus_are_counted_over_all_nodes(job_id: str, gpus: int) -> None:
    assert jobs()[job_id].gpus == gpus


@pytest.mark.parametrize(
    ("allocated", "per_job", "per_node", "gpus"),
    [
        ("cpu=1,gres/gpu=3,gres/gpu:v100=3", "N/A", "gres:gpu:3", 3),
        ("cpu=1", "gres/gpu:a100:2", "N/A", 2),
        ("cpu=1", "N/A", "gres/gpu:a100", 2),
        ("cpu=1", "N/A", "gres:shard:3", 0),
    ],
)
def test_gpus_are_read_as_other_versions_write_them(
    allocated: str, per_job: str, per_node: str, gpus: int
) -> None:
    assert gpus_of(allocated, per_job, per_node, "2") == gpus


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-u",
        "--me",
        "7 8",
        "7\n",
        "7;8",
        "7_",
        "7_x",
        "7_[",
        "7_[...]",
        "7_[1...2]",
        "7_1]",
        "user1",
        "7" * 11,
        "\u0667",
    ],
)
def test_a_number_is_a_jobs_and_nothing_else(text: str) -> None:
    assert not is_job_id(text)


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "7_0",
        "7_[1-3,5%2]",
        "7_[0-90:10%2]",
        "7_[1,3,5,7,...%2]",
        "7_[1,12...]",
        "7_[1,3,12",
        "7+1",
    ],
)
def test_jobs_are_numbered_in_four_ways(text: str) -> None:
    assert is_job_id(text)


@pytest.mark.parametrize(
    ("status", "code", "signal"),
    [
        # Printed by Slurm 22.05.
        ("0", 0, None),
        ("768", 3, None),
        ("9", None, 9),
        # Printed by Slurm 24.11; 125 is how it says "out of memory".
        ("0:0", 0, None),
        ("3:0", 3, None),
        ("0:9", None, 9),
        ("0:125", None, 125),
        ("", None, None),
        ("N/A", None, None),
        ("3:", None, None),
        ("3:0:0", None, None),
        ("\u0663", None, None),
    ],
)
def test_a_status_is_an_exit_code_or_a_signal(
    status: str, code: int | None, signal: int | None
) -> None:
    assert exit_of(status) == (code, signal)


def test_a_jobs_words_do_not_say_where_it_writes_to() -> None:
    assert files_from(SHOWN) == LogFiles("/home/user1/log-7.out", "/home/user1/err of it.txt")


def test_a_job_of_srun_has_no_files() -> None:
    assert files_from(re.sub("   Std.*\n", "", SHOWN)) is None


def test_slurm_answers_in_english_and_in_utc_for_its_own_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    program(tmp_path, "squeue", f"/usr/bin/env >{tmp_path}/environment")
    slurm = SlurmPrograms(str(tmp_path), {"SLURM_CONF": "/x.conf", "LC_ALL": "de_DE.UTF-8"})
    assert asyncio.run(slurm.own_jobs()) == ()
    told = set((tmp_path / "environment").read_text().splitlines())
    assert {"TZ=UTC", "LC_ALL=C", "SLURM_CONF=/x.conf"} <= told


def test_the_files_of_anothers_job_are_not_asked_for(tmp_path: Path) -> None:
    program(tmp_path, "squeue", "echo 70")
    program(tmp_path, "scontrol", "echo never")
    with pytest.raises(SlurmRefused, match="You have no job 7"):
        asyncio.run(SlurmPrograms(str(tmp_path), {}).log_files("7"))
    assert calls(tmp_path) == ["squeue --me --states=all --noheader --format=%i"]


def test_tasks_that_wait_are_cancelled_together(tmp_path: Path) -> None:
    program(tmp_path, "scancel", "")
    asyncio.run(SlurmPrograms(str(tmp_path), {}).cancel("21_[3-5%2]"))
    assert calls(tmp_path) == ["scancel 21_[3-5]"]


@pytest.mark.parametrize("job_id", ["21_[0-90:10%2]", "21_[1,3,5,7,...%2]", "21_[1,3,5,7"])
def test_tasks_with_gaps_are_read_and_may_be_cancelled(job_id: str) -> None:
    row = jobs_from(f"{job_id}|PENDING|Priority|sxm2||1||N/A|N/A||||0|sweep|\n")
    assert [(job.id, job.name) for job in row] == [(job_id, "sweep")]
    assert is_job_id(job_id)


def test_tasks_with_a_step_are_cancelled_one_by_one(tmp_path: Path) -> None:
    program(tmp_path, "scancel", "")
    asyncio.run(SlurmPrograms(str(tmp_path), {}).cancel("21_[0-7:3,9,12-20:4%2]"))
    assert calls(tmp_path) == ["scancel 21_[0,3,6,9,12,16,20]"]


def test_of_a_large_array_no_argument_is_longer_than_linux_takes(tmp_path: Path) -> None:
    program(tmp_path, "scancel", "")
    asyncio.run(SlurmPrograms(str(tmp_path), {}).cancel("21_[0-99999:3,100000%10]"))
    (call,) = calls(tmp_path)
    _, *arguments = call.split(" ")
    assert max(map(len, arguments)) < 128 * 1024
    tasks = [task for one in arguments for task in one[len("21_[") : -1].split(",")]
    assert tasks == [*map(str, range(0, 100000, 3)), "100000"]


@pytest.mark.parametrize("shown", ["21_[5,7,...%2]", "21_[5,7"])
def test_more_tasks_than_squeue_shows_are_cancelled_all_and_no_others(
    tmp_path: Path, shown: str
) -> None:
    program(tmp_path, "squeue", '[ "$SLURM_BITSTR_LEN" = 0 ] && echo "21_4 2_[1] 21_[5,7,9,11%2]"')
    program(tmp_path, "scancel", "")
    slurm = SlurmPrograms(str(tmp_path), {})
    asyncio.run(slurm.cancel(shown))
    assert calls(tmp_path)[-1] == "scancel 21_[5,7,9,11]"
    with pytest.raises(SlurmRefused, match="You have no job 20_"):
        asyncio.run(slurm.cancel("20_[5,7,...]"))


def test_slurms_refusal_is_told(tmp_path: Path) -> None:
    complained = "Kill job error on job id 5: Access/permission denied"
    program(tmp_path, "scancel", f"echo 'scancel: error: {complained}' >&2; exit 1")
    with pytest.raises(SlurmRefused, match=words.slurm_says(complained)):
        asyncio.run(SlurmPrograms(str(tmp_path), {}).cancel("5"))
    assert complaint("") == "no reason given"


def test_a_program_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsportal.session.jobs.slurm._SECONDS", 0.2)
    program(tmp_path, "squeue", "exec sleep 60")
    with pytest.raises(SlurmRefused, match="is not responding"):
        asyncio.run(SlurmPrograms(str(tmp_path), {}).own_jobs())


def test_a_node_without_slurm_says_so(tmp_path: Path) -> None:
    with pytest.raises(SlurmRefused, match="squeue is not installed"):
        asyncio.run(SlurmPrograms(str(tmp_path), {"PATH": "/usr/bin"}).own_jobs())
