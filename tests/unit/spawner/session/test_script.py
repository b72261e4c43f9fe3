import json
import subprocess
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterhub_gpu_slurm.errors import ScriptError
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest
from jupyterhub_gpu_slurm.resources import Resources
from jupyterhub_gpu_slurm.session.script import SessionProgram, render, site_options

PYTHON = "/opt/portal/bin/python"

TWO_GPUS = """\
#!/bin/bash
#SBATCH --job-name=portal-user1
#SBATCH --partition=sxm2
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=98304M
#SBATCH --gres=gpu:2
#SBATCH --time=480
#SBATCH --no-requeue

exec /opt/portal/bin/python -I -m dsportal.session <<'END_OF_SESSION_INPUT'
{"environment": {"A": "1"}, "folders": {}}
END_OF_SESSION_INPUT
"""


def accepted(
    gpus: int = 2, partition: str = "sxm2", time: timedelta = timedelta(hours=8)
) -> AcceptedRequest:
    return AcceptedRequest(Resources(gpus, gpus * 8, gpus * 49152), time, partition)


def program(**session_input: object) -> SessionProgram:
    return SessionProgram(PYTHON, session_input)


def test_a_script_asks_for_what_was_accepted() -> None:
    script = render("portal-user1", accepted(), program(folders={}, environment={"A": "1"}))
    assert script == TWO_GPUS


def test_a_session_without_gpus_asks_for_none() -> None:
    assert "gres" not in render("portal-user1", accepted(gpus=0), program())


@pytest.mark.parametrize(
    "word", ["", "a b", "a\nb", "a\n#SBATCH --uid=0", "-x", "a;b", "$(id)", "ä", "a" * 129]
)
def test_a_directive_takes_one_plain_word(word: str) -> None:
    with pytest.raises(ScriptError):
        render(word, accepted(), program())
    with pytest.raises(ScriptError):
        render("portal-user1", accepted(partition=word), program())


@pytest.mark.parametrize("path", ["python", "/opt/a b", "/opt/a\nb", ""])
def test_the_interpreter_is_an_absolute_plain_path(path: str) -> None:
    with pytest.raises(ScriptError):
        render("portal-user1", accepted(), SessionProgram(path, {}))


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(ScriptError, match="JSON"):
        render("portal-user1", accepted(), program(value=object()))
    with pytest.raises(ScriptError, match="JSON"):
        render("portal-user1", accepted(), program(value=float("nan")))


@given(st.dictionaries(st.text(), st.text()))
def test_no_input_leaves_its_line(values: dict[str, str]) -> None:
    lines = render("portal-user1", accepted(), program(values=values)).split("\n")
    assert len(lines) == len(render("portal-user1", accepted(), program()).split("\n"))
    assert json.loads(lines[-3]) == {"values": values}


@pytest.mark.parametrize(
    "value",
    ["'", '"', "$HOME", "`id`", "\\", "END_OF_SESSION_INPUT", "a\nEND_OF_SESSION_INPUT\nid"],
)
def test_the_session_reads_exactly_what_was_meant(value: str) -> None:
    script = render("portal-user1", accepted(), program(value=value))
    script = script.replace(f"{PYTHON} -I -m dsportal.session", "/bin/cat")
    done = subprocess.run(
        ["/bin/bash"], input=script, capture_output=True, text=True, check=True, timeout=10
    )
    assert json.loads(done.stdout) == {"value": value}


def test_a_type_of_gpu_is_asked_for_by_name() -> None:
    request = replace(accepted(gpus=2), gpu_type="a100_1g.5gb")
    assert "#SBATCH --gres=gpu:a100_1g.5gb:2\n" in render("portal-user1", request, program())


@pytest.mark.parametrize("gpu_type", ["a100:8", "a100\n#SBATCH --uid=0", "", "a b", "a100,shard"])
def test_what_is_no_type_is_not_written(gpu_type: str) -> None:
    with pytest.raises(ScriptError):
        render("portal-user1", replace(accepted(gpus=2), gpu_type=gpu_type), program())


def test_what_a_site_adds_is_written_as_it_is() -> None:
    more = site_options("--exclude=node[001-003] --constraint='v100&nvlink' --exclude=node009")
    assert more == ("--exclude=node[001-003]", "--constraint=v100&nvlink", "--exclude=node009")
    text = render("portal-ada", accepted(), SessionProgram(PYTHON, {}), more)
    assert "#SBATCH --constraint=v100&nvlink\n" in text


@pytest.mark.parametrize(
    "text",
    [
        "--gres=gpu:8",
        "--uid=0",
        "-C v100",
        "constraint=v100",
        "--constraint v100",
        "--constraint='a b'",
        "--constraint='a\nb'",
        "--constraint=$(id)",
        "--constraint='",
        "--comment=x",
    ],
)
def test_what_a_site_may_not_add(text: str) -> None:
    with pytest.raises(ValueError, match=r"constraint|No closing"):
        site_options(text)
