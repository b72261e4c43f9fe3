"""What the hub believes of a job where Slurm hides jobs from it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.errors import SlurmError, UnreadableOutput
from jupyterhub_gpu_slurm.slurm import parsing
from jupyterhub_gpu_slurm.slurm.client import SlurmClient
from jupyterhub_gpu_slurm.slurm.records import JobState
from jupyterhub_gpu_slurm.slurm.watcher import JobWatcher, PollIntervals

ROW = "42|RUNNING|None|ada|sxm2|node001|2026-11-22T10:00:00|2026-11-22T18:00:00|8:00:00"
SESSION = "0123456789abcdef" * 2
OPERATOR = "slurm"


@pytest.mark.parametrize(
    ("value", "hides"),
    [
        ("none", False),
        ("jobs", True),
        ("jobs,usage", True),
        ("accounts,events,jobs,nodes,reservations,usage,users", True),
        ("accounts,users", False),
        ("usage", False),
    ],
)
def test_slurms_setting_is_read(value: str, hides: bool) -> None:
    # As scontrol of Slurm 22.05 and 24.11 prints it.
    text = f"PreemptExemptTime       = 00:00:00\nPrivateData             = {value}\nProlog = x\n"
    assert parsing.hides_jobs(text) is hides


@pytest.mark.parametrize("text", ["", "Slurmctld(primary) at head is UP\n"])
def test_a_configuration_without_the_setting_is_no_answer(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        parsing.hides_jobs(text)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins for Slurm's programs and the launcher: their answers are files."""
    (tmp_path / "shown").write_text("")
    (tmp_path / "config").write_text("PrivateData             = jobs,usage\n")
    (tmp_path / "told").write_text(json.dumps({"rows": [ROW]}))
    answers = {
        "squeue": f"exec /bin/cat {tmp_path}/shown",
        "scontrol": f"""case "$*" in
'show config') exec /bin/cat {tmp_path}/config ;;
*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
esac""",
        "launcher": f"""echo 'slurm-launcher: ready' >&2
echo "$1" >> {tmp_path}/ordered
/bin/cat >> {tmp_path}/ordered
exec /bin/cat {tmp_path}/told""",
    }
    for name, text in answers.items():
        (tmp_path / name).write_text(f"#!/bin/bash\necho {name} >> {tmp_path}/calls\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


ClientOf = Callable[[str], SlurmClient]


@pytest.fixture
def client_of(programs: Path) -> ClientOf:
    def make(operator: str) -> SlurmClient:
        launcher = (str(programs / "launcher"), "{username}")
        return SlurmClient(str(programs), "/c", launcher, time_limit=10, operator=operator)

    return make


def state(client: SlurmClient) -> JobState:
    async def ask() -> JobState:
        return (await JobWatcher(client, PollIntervals(busy=0.02)).job(42)).state

    return asyncio.run(ask())


def test_a_job_that_may_not_be_seen_is_not_gone(
    client_of: ClientOf, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of("")
    assert [state(client) for _ in range(3)] == [JobState.UNKNOWN] * 3
    (record,) = caplog.records
    assert "slurm.operator" in record.getMessage()


def test_a_hidden_job_is_looked_at_as_slurms_operator(client_of: ClientOf, programs: Path) -> None:
    assert state(client_of(OPERATOR)) is JobState.RUNNING
    name, request = (programs / "ordered").read_text().split("\n", 1)
    assert name == OPERATOR
    assert json.loads(request) == {"verb": "jobs", "job_ids": [42]}


def test_a_job_that_the_operator_does_not_see_is_gone(client_of: ClientOf, programs: Path) -> None:
    (programs / "told").write_text(json.dumps({"rows": []}))
    assert state(client_of(OPERATOR)) is JobState.GONE


@pytest.mark.parametrize(
    "answer", [{"error": "it may hide jobs", "refused": False}, {"rows": ["42||||||||"]}]
)
def test_where_the_operator_cannot_tell_the_job_is_not_gone(
    client_of: ClientOf, programs: Path, answer: object
) -> None:
    (programs / "told").write_text(json.dumps(answer))
    assert state(client_of(OPERATOR)) is JobState.UNKNOWN


def test_where_slurm_does_not_tell_whether_it_hides_jobs_none_is_gone(
    client_of: ClientOf, programs: Path
) -> None:
    (programs / "config").write_text("")
    assert state(client_of("")) is JobState.UNKNOWN


def test_jobs_that_become_hidden_are_not_gone(client_of: ClientOf, programs: Path) -> None:
    client = client_of("")
    (programs / "config").write_text("PrivateData             = none\n")
    (programs / "shown").write_text(f"{ROW}\n")
    states = [state(client)]
    (programs / "config").write_text("PrivateData             = jobs\n")
    (programs / "shown").write_text("")
    assert [*states, state(client)] == [JobState.RUNNING, JobState.UNKNOWN]


def test_a_job_that_nothing_hides_is_gone(client_of: ClientOf, programs: Path) -> None:
    (programs / "config").write_text("PrivateData             = none\n")
    assert state(client_of(OPERATOR)) is JobState.GONE
    assert not (programs / "ordered").exists()


def test_a_second_opinion_that_does_not_come_names_no_job_gone(
    client_of: ClientOf, programs: Path
) -> None:
    (programs / "config").write_text("PrivateData             = none\n")
    scontrol = programs / "scontrol"
    scontrol.write_text(
        scontrol.read_text().replace("Invalid job id specified", "Socket timed out")
    )
    assert state(client_of("")) is JobState.UNKNOWN


def test_what_slurm_shows_is_asked_of_nobody_else(client_of: ClientOf, programs: Path) -> None:
    (programs / "shown").write_text(f"{ROW}\n")
    assert state(client_of(OPERATOR)) is JobState.RUNNING
    assert (programs / "calls").read_text() == "squeue\n"


def test_the_reconcilers_questions_go_to_the_operator(client_of: ClientOf, programs: Path) -> None:
    client = client_of(OPERATOR)
    assert asyncio.run(client.marked_jobs("portal")) == {"ada": {42}}
    (programs / "told").write_text(json.dumps({"session": SESSION}))
    assert asyncio.run(client.session_of(42, "portal")) == SESSION


@pytest.mark.parametrize("answer", [{}, {"rows": "42"}, {"rows": [42]}, {"rows": ["42|x"]}])
def test_rows_that_are_none_are_refused(
    client_of: ClientOf, programs: Path, answer: object
) -> None:
    (programs / "told").write_text(json.dumps(answer))
    with pytest.raises(SlurmError):
        asyncio.run(client_of(OPERATOR).marked_jobs("portal"))
