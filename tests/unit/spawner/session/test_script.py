import json
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

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

input=${PORTAL_SESSION_INPUT:?is not set: the launcher on the head node is older than the hub}
unset PORTAL_SESSION_INPUT
if ! { exec < "$input"; } 2>/dev/null; then
    echo "The session's input $input cannot be read; it serves one start. Start a new session." >&2
    exit 2
fi
/bin/rm -f -- "$input"
exec /opt/portal/bin/python -I -m dsportal.session
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


def test_what_was_chosen_is_in_the_script() -> None:
    chosen = replace(
        accepted(), account="physics", qos="high", reservation="course", constraint="nvlink"
    )
    script = render("portal-user1", chosen, program(), ("--constraint=v100", "--nice=1"))
    assert [line for line in script.splitlines() if line.startswith("#SBATCH")][2:8] == [
        "#SBATCH --account=physics",
        "#SBATCH --qos=high",
        "#SBATCH --reservation=course",
        "#SBATCH --constraint=v100",
        "#SBATCH --nice=1",
        # Slurm takes the last one.
        "#SBATCH --constraint=nvlink",
    ]
    with pytest.raises(ScriptError):
        render("portal-user1", replace(accepted(), constraint="a\nb"), program())


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
        program(value=object()).input_text()
    with pytest.raises(ScriptError, match="JSON"):
        program(value=float("nan")).input_text()


@given(st.dictionaries(st.text(), st.text()))
def test_the_input_is_one_line_of_ascii_and_not_in_the_script(values: dict[str, str]) -> None:
    text = program(values=values).input_text()
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == {"values": values}
    without = render("portal-user1", accepted(), program())
    assert render("portal-user1", accepted(), program(values=values)) == without


def run_script(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a session's script with a program in Python's place that says what it is given."""
    script = render("portal-user1", accepted(), program())
    instead = "/bin/cat; /usr/bin/env"
    file = tmp_path / "slurm_script"
    file.write_text(script.replace(f"exec {PYTHON} -I -m dsportal.session", instead))
    return subprocess.run(
        ["/bin/bash", file], env=environment, capture_output=True, text=True, check=False
    )


def test_the_session_reads_its_input_once(tmp_path: Path) -> None:
    file = tmp_path / "it's an $input"
    file.write_text('{"a": 1}\n')
    done = run_script(tmp_path, PORTAL_SESSION_INPUT=str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{"a": 1}\n')
    assert "PORTAL_SESSION_INPUT" not in done.stdout
    assert not file.exists()
    again = run_script(tmp_path, PORTAL_SESSION_INPUT=str(file))
    assert (again.returncode, again.stdout) == (2, "")
    assert "Start a new session" in again.stderr


def test_a_launcher_that_keeps_no_input_is_named_in_the_log(tmp_path: Path) -> None:
    done = run_script(tmp_path)
    assert done.returncode != 0
    assert "launcher on the head node is older" in done.stderr


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
