"""One order to the launcher; scripts stand in for sudo where it must fail in a given way."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from jupyterhub_gpu_slurm.errors import (
    AccountUnavailable,
    CommandFailed,
    ExtensionRefused,
    LauncherUnavailable,
    SlurmError,
    SubmissionRefused,
    UnreadableOutput,
)
from jupyterhub_gpu_slurm.slurm import launcher_client
from tests.waiting import until

READY = "echo slurm-launcher: ready >&2"


def sudo(folder: Path, *lines: str) -> tuple[str, ...]:
    file = folder / "sudo"
    file.write_text("\n".join(["#!/bin/bash", *lines, ""]))
    file.chmod(0o755)
    return (str(file), "{username}")


def order(launcher_cmd: tuple[str, ...], verb: str = "list") -> dict[str, Any]:
    return asyncio.run(launcher_client.order(launcher_cmd, "ada", verb, {}))


def test_an_order_is_told_and_answered(tmp_path: Path) -> None:
    answers = sudo(tmp_path, READY, 'read -r order; echo "{\\"$1\\": $order}"')
    assert order(answers) == {"ada": {"verb": "list"}}


def test_words_before_it_is_ready_do_not_matter(tmp_path: Path) -> None:
    warns = "echo 'sudo: unable to resolve host x: Name or service not known' >&2"
    assert order(sudo(tmp_path, warns, READY, "cat >/dev/null; echo '{}'")) == {}


# What sudo 1.9.13 says.
@pytest.mark.parametrize(
    "words",
    [
        "sudo: unknown user ada\nsudo: error initializing audit plugin sudoers_audit",
        "sudo: a password is required",
        "Sorry, user jupyterhub is not allowed to execute 'x' as ada on head.",
        "sudo: you do not exist in the passwd database",
        "sudo: PAM account management error: Authentication service cannot retrieve it",
    ],
)
def test_an_account_that_sudo_does_not_take_is_told_by_name(tmp_path: Path, words: str) -> None:
    with pytest.raises(AccountUnavailable) as caught:
        order(sudo(tmp_path, f"echo {words!r} >&2", "exit 1"), "submit")
    assert "directory" in str(caught.value)
    assert "ada" in str(caught.value)
    assert "\n" not in caught.value.detail


def test_a_directory_that_does_not_answer_is_told_and_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher_client, "SUDO_SECONDS", 0.5)
    # As sudo, which is root's, it cannot be signalled: here, since it is a child of its own.
    goes_on, told = tmp_path / "goes-on", tmp_path / "told"
    os.mkfifo(goes_on)
    reads = f"cat <&3 > {told}.part; mv {told}.part {told}"
    launcher = f"(trap '' PIPE; read < {goes_on}; {READY}; {reads}) &"
    waits = sudo(tmp_path, "exec 3<&0", launcher, "wait")
    with pytest.raises(AccountUnavailable, match="does not answer"):
        order(waits, "submit")
    goes_on.write_text("now\n")
    until(told.exists, seconds=20, what="it went on")
    assert told.read_bytes() == b""


def test_a_launcher_that_is_not_there_is_no_matter_of_accounts(tmp_path: Path) -> None:
    with pytest.raises(LauncherUnavailable, match="cannot act on your behalf"):
        order(sudo(tmp_path, "echo 'sudo: /x/slurm-launcher: command not found' >&2", "exit 1"))


def test_a_sudo_that_is_not_there_is_no_answer_of_slurms(tmp_path: Path) -> None:
    with pytest.raises(LauncherUnavailable) as caught:
        order((str(tmp_path / "no-sudo"), "-u", "{username}"))
    assert "no-sudo" in caught.value.detail


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_endless_words_are_not_read_and_their_program_is_ended(tmp_path: Path, stream: str) -> None:
    pid = tmp_path / "pid"
    endless = sudo(tmp_path, READY, f"echo $$ > {pid}", f"exec yes {stream}")
    with pytest.raises(UnreadableOutput, match="too long to read") as caught:
        order(endless)
    assert caught.value.detail == "the launcher printed more than 1048576 bytes"
    until(lambda: not is_there(int(pid.read_text())), seconds=20, what="it has ended")


@pytest.mark.parametrize("before", ["yes >&2", "head -c 3000000 /dev/zero >&2; sleep 60"])
def test_endless_words_in_the_place_of_a_launcher_are_not_read(tmp_path: Path, before: str) -> None:
    with pytest.raises(LauncherUnavailable):
        order(sudo(tmp_path, before))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("said", ["", "garbage", "[]", "7", '{"error": 7}'])
def test_an_answer_that_cannot_be_read_is_a_failure(tmp_path: Path, said: str) -> None:
    with pytest.raises(SlurmError):
        order(sudo(tmp_path, READY, f"cat >/dev/null; printf %s '{said}'"))


def test_slurms_no_to_a_submission_is_told_in_its_last_line(tmp_path: Path) -> None:
    said = r'{"error": "sbatch: error: x\nsbatch: error: no\u2028forged", "refused": true}'
    with pytest.raises(SubmissionRefused) as caught:
        order(sudo(tmp_path, READY, f"cat >/dev/null; printf %s '{said}'"), "submit")
    assert str(caught.value) == "Slurm refused the job: no forged"
    assert caught.value.detail.isprintable()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        # A job_submit plugin that says why, and returns slurm.ERROR.
        ("Your project has no hours left.\\nUnspecified error", "Your project has no hours left"),
        ("AssocMaxSubmitJobLimit\\nJob violates accounting/QOS policy", "AssocMaxSubmitJobLimit"),
        ("Invalid qos specification", "Invalid qos specification"),
    ],
)
def test_slurms_no_to_a_submission_is_the_line_that_says_why(
    tmp_path: Path, words: str, why: str
) -> None:
    *before, last = words.split("\\n")
    lines = [*before, f"Batch job submission failed: {last}"]
    error = "\\n".join(f"sbatch: error: {line}" for line in lines)
    said = f'{{"error": "{error}", "refused": true}}'
    with pytest.raises(SubmissionRefused) as caught:
        order(sudo(tmp_path, READY, f"cat >/dev/null; printf %s '{said}'"), "submit")
    assert str(caught.value) == f"Slurm refused the job: {why}"


@pytest.mark.parametrize(
    ("verb", "words", "error"),
    [
        # The job may be there all the same.
        ("submit", "sbatch: error: Socket timed out on send/recv operation", CommandFailed),
        ("extend", "job 42 has 60 minutes already", ExtensionRefused),
        ("cancel", "scancel: error: no", CommandFailed),
    ],
)
def test_only_what_is_certain_is_a_refusal(
    tmp_path: Path, verb: str, words: str, error: type[SlurmError]
) -> None:
    said = f'{{"error": "{words}", "refused": true}}'
    with pytest.raises(SlurmError) as caught:
        order(sudo(tmp_path, READY, f"cat >/dev/null; printf %s '{said}'"), verb)
    assert type(caught.value) is error
