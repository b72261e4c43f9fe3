"""Runs the launcher as a user, through sudo, for one order.

The order is given only once the launcher has said that it is there. So where sudo does not know
the account, does not allow it, or waits for a directory that does not answer, nothing has been done
for certain; and that is told apart from a Slurm that does not answer.
"""

import asyncio
import contextlib
import json
from asyncio.subprocess import Process
from collections.abc import Mapping
from typing import Any

from jupyterhub_gpu_slurm.errors import (
    AccountUnavailable,
    CommandFailed,
    ExtensionRefused,
    LauncherUnavailable,
    SubmissionRefused,
)
from jupyterhub_gpu_slurm.slurm import launcher_answers, program

READY = b"slurm-launcher: ready"
"""What the launcher says first, as a line of its standard error."""

# With a slow directory and a busy machine.
SUDO_SECONDS = 20.0
# More than the launcher gives the programs that it runs: it has the last word on how they ended,
# and none of them is still at work when we have given up.
_LAUNCHER_SECONDS = 75.0
_MOST_BYTES = 1 << 20
_MOST_WORDS = 1 << 14
_FAILED = "Slurm could not do this. Try again in a minute, or tell the administrators."
_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
# sudo(8): of an account that the machine's name service does not know, or not as a member of the
# groups of the rule, and of the hub's own.
_NO_ACCOUNT = (
    "unknown user",
    "unknown uid",
    "a password is required",
    "is not allowed to",
    "is not in the sudoers file",
    "may not run sudo",
    "you do not exist in the passwd database",
    "account validation failure",
    "account management error",
)


async def order(
    launcher_cmd: tuple[str, ...], username: str, verb: str, request: Mapping[str, object]
) -> dict[str, Any]:
    """Have the launcher do one thing as a user; return its answer.

    Raises `AccountUnavailable` where sudo does not let the hub act as the user, and
    `LauncherUnavailable` where it cannot run the launcher: nothing was done.
    """
    argv = [part.replace("{username}", username) for part in launcher_cmd]
    async with contextlib.AsyncExitStack() as stack:
        try:
            process = await stack.enter_async_context(program.started(argv, _ENVIRONMENT))
        except CommandFailed as error:
            raise _no_launcher(username, error.detail) from error
        await _wait_for_launcher(process, username)
        await _tell(process, json.dumps({"verb": verb, **request}).encode())
        async with program.in_time("the launcher", _LAUNCHER_SECONDS):
            outcome = await program.said(process, "the launcher", _MOST_BYTES)
    if not outcome.out:
        raise CommandFailed(
            _FAILED,
            detail=f"the launcher for {username} ended with {outcome.code}: "
            f"{launcher_answers.one_line(outcome.err)}",
        )
    answer = launcher_answers.read(outcome.out)
    if (complaint := launcher_answers.complaint(answer)) is not None:
        raise _failure(verb, username, *complaint)
    return answer


async def _wait_for_launcher(process: Process, username: str) -> None:
    assert process.stderr  # noqa: S101  it is a pipe
    words = b""
    try:
        async with asyncio.timeout(SUDO_SECONDS):
            while (line := await process.stderr.readline()).strip() != READY:
                words += line
                if not line or len(words) > _MOST_WORDS:
                    raise _no_launcher(username, words.decode(errors="replace"))
    except TimeoutError as error:
        raise account_unavailable(username, f"sudo did not begin in {SUDO_SECONDS:g} s") from error
    except ValueError as error:  # a line without an end
        raise _no_launcher(username, words.decode(errors="replace")) from error


async def _tell(process: Process, text: bytes) -> None:
    assert process.stdin  # noqa: S101  it is a pipe
    process.stdin.write(text)
    # One that has ended already says why.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        async with program.in_time("the launcher", SUDO_SECONDS):
            await process.stdin.drain()


def account_unavailable(username: str, why: str) -> AccountUnavailable:
    """Return the error for an account that the head node does not know, or not as a user's."""
    return AccountUnavailable(
        f"The cluster cannot find the account {username} at the moment: it does not exist, is in "
        "no group that may use the portal, or the directory does not answer. Try again in a few "
        "minutes; if that does not help, tell the administrators.",
        detail=f"no acting as {username}: {why}",
    )


def _no_launcher(username: str, words: str) -> AccountUnavailable | LauncherUnavailable:
    told = launcher_answers.one_line(words)
    if any(part in told for part in _NO_ACCOUNT):
        return account_unavailable(username, told)
    return LauncherUnavailable(
        "The portal cannot act on your behalf on the cluster at the moment; tell its "
        "administrators.",
        detail=f"the launcher for {username} did not begin: {told or 'no reason given'}",
    )


def _failure(verb: str, username: str, words: str, refused: bool) -> CommandFailed | Exception:
    detail = f"launcher, {verb} for {username}: {launcher_answers.one_line(words)}"
    verdict = launcher_answers.verdict(words)
    # A time-out is no refusal: the job may be there all the same.
    if verb == "submit" and refused and "timed out" not in words:
        return SubmissionRefused(f"Slurm refused the job: {verdict}", detail=detail)
    if verb == "extend" and refused:
        return ExtensionRefused(f"Slurm did not extend the session: {verdict}", detail=detail)
    return CommandFailed(_FAILED, detail=detail)
