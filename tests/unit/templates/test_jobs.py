"""Jobs from a notebook: what Slurm says, read and said in words; how often it is asked."""

import os
import subprocess
import time
from pathlib import Path

import jobs
import pytest
from jobs import (
    GONE,
    Backoff,
    BatchJob,
    JobStatus,
    Queue,
    SlurmCommandError,
    read_states,
    submit,
    tail,
)


def line(**columns: str) -> str:
    """Give a line of squeue's fixed columns."""
    return "".join(columns.get(name, "").ljust(width) for name, width in jobs._COLUMNS.items())


WAITING = line(
    State="PENDING", ReasonList="(Resources)", TimeUsed="0:00", StdOut="/h/a b.out", Name="my job",
    JobID="7",
)  # fmt: skip
RUNNING = line(
    State="RUNNING", ReasonList="node[001-002]", TimeUsed="1:02", NodeList="node[001-002]",
    StdOut="/h/8.out", Name="train", JobID="8",
)  # fmt: skip


def test_columns_may_hold_blanks() -> None:
    states = dict(read_states(f"{WAITING}\n{RUNNING}\n"))
    assert states[7] == JobStatus("PENDING", "Resources", "0:00", "", "/h/a b.out", "my job")
    assert states[8].nodes == "node[001-002]"


def test_columns_are_as_many_bytes_wide() -> None:
    # squeue pads with blanks by the bytes, and cuts so, too.
    columns = {"State": "RUNNING", "StdOut": "/h/jörg/Übung/9.out", "Name": "ü" * 200, "JobID": "9"}
    padded = b"".join(
        columns.get(name, "").encode()[:width].ljust(width) for name, width in jobs._COLUMNS.items()
    )
    ((number, state),) = read_states(os.fsdecode(padded))
    assert (number, state.log) == (9, "/h/jörg/Übung/9.out")
    assert state.name == "ü" * 128


def test_what_is_no_text_is_read_all_the_same(tmp_path: Path) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_bytes(b"#!/bin/sh\nprintf 'a\\303'\n")
    squeue.chmod(0o755)
    assert os.fsencode(jobs._slurm(str(squeue))) == b"a\xc3"


def test_a_line_that_is_no_job_is_left_out() -> None:
    assert read_states("squeue: something else\n\n") == []


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobStatus("PENDING", "SomethingNew"), "is waiting (SomethingNew)"),
        (JobStatus("RUNNING", running="1:02", nodes="n1"), "is running on n1, for 1:02"),
        (JobStatus("COMPLETED", "None"), "completed"),
        (JobStatus("FAILED", "NonZeroExitCode"), "failed (NonZeroExitCode)"),
        (JobStatus("OUT_OF_MEMORY", "OutOfMemory"), "out of memory (OutOfMemory)"),
    ],
)
def test_a_state_is_said_in_words(state: JobStatus, words: str) -> None:
    assert state.words() == words


def test_why_a_job_waits_is_explained() -> None:
    said = JobStatus("PENDING", "Resources").words()
    assert said.startswith("is waiting (Resources): ")
    assert "starts by itself" in said
    said = JobStatus("PENDING", "ReqNodeNotAvail, UnavailableNodes:node[001-002]").words()
    assert said.endswith("node[001-002]): nodes that it needs are down or set aside")


def test_of_a_job_that_slurm_has_forgotten_the_end_alone_is_said() -> None:
    assert JobStatus(GONE).words().startswith("has ended; Slurm ")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Stand for Slurm's programs, which are not here; the integration tests have the real ones."""
    calls: list[tuple[str, ...]] = []

    def slurm(program: str, *arguments: str, folder: Path | None = None) -> str:
        calls.append((program, *arguments))
        if program == "squeue":
            return f"{WAITING}\n{RUNNING}"
        if program == "sbatch":
            return "12;cluster"
        raise SlurmCommandError("no accounting here")

    monkeypatch.setattr(jobs, "_slurm", slurm)
    return calls


def test_one_question_answers_for_all_jobs(asked: list[tuple[str, ...]]) -> None:
    queue = Queue(seconds=3600)
    queue._wanted.update((7, 8))
    assert [queue.state(7).word, queue.state(8).word, queue.state(7).word] == [
        "PENDING",
        "RUNNING",
        "PENDING",
    ]
    assert len(asked) == 1


def test_a_job_that_slurm_has_forgotten_is_gone_and_not_asked_for_again(
    asked: list[tuple[str, ...]],
) -> None:
    queue = Queue(seconds=0)
    assert queue.state(99).word == GONE
    before = len(asked)
    assert queue.state(99).is_over
    assert len(asked) == before


def test_a_job_that_another_thread_submits_during_a_question_is_not_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, answers = Queue(seconds=0), iter(["", WAITING, WAITING])

    def slurm(program: str, *_: str) -> str:
        if program == "sacct":
            raise SlurmCommandError("no accounting here")
        answer = next(answers)
        if not answer:
            # In the place of the other thread: a job that the answer on its way does not have.
            assert queue.state(7).word == "PENDING"
        return answer

    monkeypatch.setattr(jobs, "_slurm", slurm)
    assert queue.state(99).word == GONE
    assert queue.state(7).word == "PENDING"


def test_a_job_that_another_thread_asked_for_first_is_asked_for_again(
    asked: list[tuple[str, ...]],
) -> None:
    queue = Queue(seconds=3600)
    assert queue.state(7).word == "PENDING"
    # As when the other thread's question is on its way, or has failed.
    queue._wanted.add(8)
    assert queue.state(8).word == "RUNNING"


def test_what_accounting_says_is_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_slurm", lambda *_, **__: "CANCELLED by 0|node001|/h/a b|my|job")
    assert jobs.last_word(5) == JobStatus(
        "CANCELLED", nodes="node001", log="/h/a b/slurm-5.out", name="my|job"
    )


def test_the_log_of_a_job_that_the_queue_has_forgotten_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, usual = tmp_path / "own.log", tmp_path / "slurm-9.out"
    own.write_text("of the job 8")
    usual.write_text("of the job 9")
    is_known = True

    def slurm(program: str, *_: str) -> str:
        if program == "sacct":
            return f"COMPLETED|node001|{tmp_path}|train"
        return RUNNING.replace("/h/8.out".ljust(1000), str(own).ljust(1000)) if is_known else ""

    monkeypatch.setattr(jobs, "_slurm", slurm)
    monkeypatch.setattr(jobs, "_queue", Queue(seconds=0))
    # Accounting does not say that it wrote to a file of its own: the queue did.
    assert BatchJob(8).log() == "of the job 8"
    is_known = False
    assert [BatchJob(number).log() for number in (8, 9)] == ["of the job 8", "of the job 9"]
    assert BatchJob(8).state().word == "COMPLETED"


def test_of_a_long_log_it_is_said_that_it_is_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "long.out"
    log.write_text("".join(f"line {number}\n" for number in range(20_000)))
    monkeypatch.setattr(BatchJob, "state", lambda _: JobStatus("COMPLETED", log=str(log)))
    first, *_, last = BatchJob(8).log().splitlines()
    assert first == f"[The last 100,000 of {log.stat().st_size:,} bytes of {log}]"
    assert last == "line 19999"
    assert BatchJob(8).log(1) == last


def test_who_waits_for_a_job_asks_again_after_a_question_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["", f"{RUNNING}", "", RUNNING.replace("RUNNING".ljust(20), "FAILED".ljust(20))])

    def slurm(*_: str) -> str:
        if answer := next(answers):
            return answer
        raise SlurmCommandError("squeue: Unable to contact slurm controller")

    pauses: list[float] = []
    monkeypatch.setattr(jobs, "_slurm", slurm)
    monkeypatch.setattr(jobs, "_queue", Queue(seconds=-1))
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert BatchJob(8).wait().word == "FAILED"
    assert pauses == [jobs.LONGEST_PAUSE, jobs.FIRST_PAUSE, jobs.LONGEST_PAUSE]


def test_the_pause_grows_while_nothing_changes() -> None:
    pace = Backoff()
    pauses = [pace.next("PENDING") for _ in range(20)]
    assert pauses[0] == jobs.FIRST_PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == jobs.LONGEST_PAUSE
    assert pace.next("RUNNING") == jobs.FIRST_PAUSE


def test_a_script_is_submitted_by_its_whole_path(
    asked: list[tuple[str, ...]], tmp_path: Path
) -> None:
    script = tmp_path / "a job; id"
    assert submit(script, "--x", folder=tmp_path) == BatchJob(12)
    assert asked == [("sbatch", "--parsable", str(script), "--x")]


def test_slurms_own_words_are_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = subprocess.CompletedProcess([], 1, "", "sbatch: error: invalid partition\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    with pytest.raises(SlurmCommandError, match="invalid partition"):
        submit("a.job")


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ""


def test_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))
    assert tail(log, 2) == "line 99998\nline 99999"


def test_tasks_of_an_array_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "41                  RUNNING\n41      PENDING\n7   RUNNING\n41      PENDING\n"
    monkeypatch.setattr(jobs, "_slurm", lambda *_: printed)
    assert jobs.array_tasks(41) == {"RUNNING": 1, "PENDING": 2}
    assert jobs.array_tasks(40) == {}
