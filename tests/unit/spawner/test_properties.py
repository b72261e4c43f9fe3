"""No input of any kind puts a line into a job's script that was not meant."""

import json
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyterhub_gpu_slurm.errors import Refusal, ScriptError
from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.options.policy import (
    AcceptedRequest,
    Defaults,
    Holding,
    Limits,
    PartitionLimit,
    accept,
)
from jupyterhub_gpu_slurm.options.request import SessionRequest, parse, single_values
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.session.script import SessionProgram, job_name, render
from tests.hostile.inputs import ENVIRONMENTS, FIELDS, LURES, OPTIONS, TEXTS

PYTHON = "/opt/portal/bin/python"
LIMITS = Limits(
    (
        PartitionLimit("sxm2", 4, timedelta(hours=12), (("1g.10gb", 2), ("v100", 4))),
        PartitionLimit("shareq", 4, None),
    ),
    Allowance(max_gpus=6, max_sessions=3, account="research", qos="high"),
)
PROGRAM = """\
input=${PORTAL_SESSION_INPUT:?is not set: the launcher on the head node is older than the hub}
unset PORTAL_SESSION_INPUT
if ! { exec < "$input"; } 2>/dev/null; then
    echo "The session's input $input cannot be read; it serves one start. Start a new session." >&2
    exit 2
fi
/bin/rm -f -- "$input"
exec /opt/portal/bin/python -I -m dsportal.session
"""
MEANT = re.compile(
    r"""\#!/bin/bash
\#SBATCH[ ]--job-name=(?P<name>[A-Za-z0-9][A-Za-z0-9_.@-]{0,127})
\#SBATCH[ ]--partition=(?P<partition>sxm2|shareq)
\#SBATCH[ ]--account=research
\#SBATCH[ ]--qos=high
\#SBATCH[ ]--nodes=1
\#SBATCH[ ]--ntasks=1
\#SBATCH[ ]--cpus-per-task=(?P<cores>[0-9]{1,2})
\#SBATCH[ ]--mem=(?P<memory_mb>[0-9]{1,6})M
(?:\#SBATCH[ ]--gres=gpu:(?:(?P<type>v100|1g\.10gb):)?(?P<gpus>[1-4])
)?\#SBATCH[ ]--time=(?P<minutes>[1-9][0-9]{0,5})
\#SBATCH[ ]--no-requeue

""".replace("[ ]", " ").replace("\\#", "#")
    + re.escape(PROGRAM)
)
"""The whole script: every line that may be there, and what may stand where."""


T = TypeVar("T")
V = TypeVar("V")


def tried(read: Callable[[V], T], value: V) -> T | Refusal:
    """Read a value; give what came of it."""
    try:
        return read(value)
    except Refusal as refusal:
        return refusal


def script_for(
    options: object, username: str, server_name: str, environment: dict[str, str]
) -> tuple[AcceptedRequest, str] | None:
    """Go the way of a request from a user's JSON to the script; ``None`` where it is refused."""

    def check(options: object) -> AcceptedRequest:
        return accept(parse(options), LIMITS, ResourceShape(), Defaults(), Holding(2, 1))

    accepted = tried(check, options)
    if isinstance(accepted, Refusal):
        assert str(accepted).isprintable()
        return None
    name = job_name("portal", username, server_name)
    return accepted, render(name, accepted, SessionProgram(PYTHON, {"environment": environment}))


@given(OPTIONS, TEXTS, TEXTS, ENVIRONMENTS)
@settings(max_examples=500)
def test_a_script_has_the_lines_that_were_meant_and_no_other(
    options: object, username: str, server_name: str, environment: dict[str, str]
) -> None:
    if (made := script_for(options, username, server_name, environment)) is None:
        return
    accepted, script = made
    found = MEANT.fullmatch(script)
    assert found, script
    assert int(found["gpus"] or 0) == accepted.resources.gpus
    assert int(found["cores"]) == accepted.resources.cores
    assert int(found["memory_mb"]) == accepted.resources.memory_mb
    assert found["partition"] == accepted.partition
    assert found["type"] == accepted.gpu_type
    program = SessionProgram(PYTHON, {"environment": environment})
    assert json.loads(program.input_text()) == {"environment": environment}


@given(TEXTS, TEXTS, ENVIRONMENTS, st.sampled_from((0, 1, 4)))
@settings(max_examples=60, deadline=None)  # one program for each
def test_what_is_rendered_is_parsed_by_bash(
    username: str, server_name: str, environment: dict[str, str], gpus: int
) -> None:
    made = script_for({"gpus": gpus}, username, server_name, environment)
    assert made is not None
    done = subprocess.run(
        ["/bin/bash", "-n"], input=made[1], capture_output=True, text=True, timeout=10, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@given(OPTIONS)
@settings(max_examples=500)
def test_options_are_read_or_refused_in_a_printable_line(options: object) -> None:
    request = tried(parse, options)
    if isinstance(request, Refusal):
        assert str(request).isprintable()
        assert len(str(request)) < 200
    else:
        # What is stored is read back as the same.
        assert parse(request.as_json()) == request
        assert json.loads(json.dumps(request.as_json(), allow_nan=False)) == request.as_json()


@given(FIELDS)
@settings(max_examples=500)
def test_the_fields_of_a_form_or_link_are_read_or_refused(fields: dict[str, list[str]]) -> None:
    request = tried(lambda given: parse(single_values(given)), fields)
    if isinstance(request, Refusal):
        assert str(request).isprintable()
    else:
        assert isinstance(request, SessionRequest)


@given(TEXTS, TEXTS)
def test_a_directive_is_the_word_that_was_given_or_there_is_no_script(
    account: str, qos: str
) -> None:
    request = parse({"gpus": 1})
    limits = Limits(LIMITS.partitions, Allowance(account=account, qos=qos))
    accepted = accept(request, limits, ResourceShape(), Defaults())
    try:
        script = render("portal-user1", accepted, SessionProgram(PYTHON, {}))
    except ScriptError:
        return
    directives = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert f"#SBATCH --account={account}" in directives
    assert f"#SBATCH --qos={qos}" in directives
    assert len(directives) == 11


@pytest.mark.parametrize("lure", LURES)
@pytest.mark.parametrize("key", ["gpus", "gpu_type", "hours", "partition"])
def test_no_lure_gets_past_the_options(key: str, lure: str) -> None:
    with pytest.raises(Refusal):
        parse({key: lure})


@pytest.mark.parametrize(
    ("username", "server_name", "expected"),
    [
        ("ada", "", "portal-ada"),
        ("ada", "training", "portal-ada.training"),
        ("ada@example.org", "", "portal-ada@example.org"),
        ("ada", "a b\n#SBATCH", "portal-ada.a_b__SBATCH"),
        ("ada", "ünï", "portal-ada._n_"),
        ("a" * 200, "", f"portal-{'a' * 121}"),
    ],
)
def test_a_jobs_name_says_whose_session_it_is(
    username: str, server_name: str, expected: str
) -> None:
    assert job_name("portal", username, server_name) == expected
