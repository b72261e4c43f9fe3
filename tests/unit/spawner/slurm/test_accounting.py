"""What sacct says.

The captured answer is of real jobs: one that ended, one without GPUs, one that runs, one that
waits.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm.accounting import AccountedJob, counts_gpus, jobs, read

CAPTURED = Path(__file__).parents[2] / "data" / "sacct_of_slurm_22.05.txt"


def at(minute: int, second: int) -> datetime:
    return datetime(2026, 11, 21, 15, minute, second, tzinfo=UTC)


def test_jobs_that_were_given_a_node_are_read() -> None:
    assert read(CAPTURED.read_text()) == [
        AccountedJob(1, "ada", 2, at(54, 28), at(54, 31)),
        AccountedJob(2, "bob", 0, at(54, 31), at(54, 32)),
        AccountedJob(3, "bob", 1, at(54, 33), None),
    ]


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("billing=8,cpu=8,gres/gpu:v100=2,gres/gpu=2,mem=96G,node=1", 2),
        ("gres/gpu=16,node=4", 16),
        ("gres/gpu:a100=1,cpu=1", 0),
        ("gres/gpumem=20480,cpu=1", 0),
    ],
)
def test_gpus_are_those_of_all_types(tres: str, gpus: int) -> None:
    (job,) = read(f"7|ada|{tres}|2026-11-21T15:54:28|2026-11-21T15:54:31\n")
    assert job.gpus == gpus


@pytest.mark.parametrize(
    "line",
    [
        "7|ada|cpu=1|2026-11-21T15:54:28",
        "7.batch|ada|cpu=1|2026-11-21T15:54:28|2026-11-21T15:54:31",
        "7|ada|cpu=1|yesterday|2026-11-21T15:54:31",
        "sacct: error: slurm_persist_conn_open: Something happened",
    ],
)
def test_what_is_no_answer_of_sacct_is_not_read(line: str) -> None:
    with pytest.raises(UnreadableOutput):
        read(line)


def test_only_what_no_user_can_write_is_asked_for() -> None:
    argv = jobs(at(0, 0), at(30, 0))
    assert "--format=JobIDRaw,User,AllocTRES,Start,End" in argv
    assert "--starttime=2026-11-21T15:00:00" in argv
    assert "--endtime=2026-11-21T15:30:00" in argv


CONFIG = "AccountingStorageTRES   = {}\nAccountingStorageType   = accounting_storage/{}\n"


@pytest.mark.parametrize(
    ("tres", "storage", "counts"),
    [
        ("cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu", "slurmdbd", True),
        ("cpu,mem,gres/gpu,gres/gpu:v100", "slurmdbd", True),
        ("cpu,mem,energy,node,billing,fs/disk,vmem,pages", "slurmdbd", False),
        ("cpu,mem,energy,node,billing,fs/disk,vmem,pages", "none", False),
    ],
)
def test_an_accounting_that_does_not_count_gpus_is_of_no_use(
    tres: str, storage: str, counts: bool
) -> None:
    assert counts_gpus(CONFIG.format(tres, storage)) is counts
