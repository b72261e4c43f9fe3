"""The one program through which the hub acts as a user: ``sudo -n -u USER -- slurm-launcher``.

Deployed as a root-owned file of its own, with its settings beside it as ``NAME.json``:
``{"slurm_conf": "/etc/slurm/slurm.conf", "bin_dir": "/usr/bin", "mark": "portal"}``, and
``"operator": "slurm"`` where sessions can be extended. It takes no arguments, says
``slurm-launcher: ready`` on its standard error, reads one JSON object on its standard input, runs
Slurm's programs with an empty environment, and prints one JSON object. The verbs:

``{"verb": "submit", "session": ID, "script": TEXT, "input": TEXT}`` -> ``{"job_id": N}``
    Submit the user's job. Its comment carries the hub's mark and the session, its output goes into
    a private folder of the home. So does ``input``, the secrets with it, as a file whose path the
    job has as ``PORTAL_SESSION_INPUT``: the script reads and removes it. Without ``input``, as hubs
    before this one ask, there is no file.
``{"verb": "forecast", "script": TEXT}`` -> ``{"start": "2026-11-21T14:05:00"}``
    When the job would start, in UTC; or ``{"never": WORDS}``. Nothing is submitted.
``{"verb": "cancel", "session": ID}`` -> ``{"job_ids": [N, ...]}``
    Cancel the user's jobs that carry this mark and session, and no other; remove their input.
``{"verb": "list"}`` -> ``{"sessions": {"N": ID, ...}}``
    The user's jobs that carry this mark and have not ended, and their sessions.
``{"verb": "log", "job_id": N}`` -> ``{"lines": [TEXT, ...]}``
    The last lines of a session's output.

Slurm lets only its operators raise a limit, end the job of a user who has no account any more, and
see others' jobs where its ``PrivateData`` hides them. Run as the account ``operator`` of the
settings the program has these verbs, and none of those above, which in turn have nothing of them:

``{"verb": "extend", "session": ID, "job_id": N, "user": NAME, "minutes": TOTAL}`` ->
``{"minutes": TOTAL}``
    Raise the time limit of a job that runs, belongs to this user, carries this mark and session,
    and stays within its partition's limit.
``{"verb": "end", "session": ID, "job_id": N, "user": NAME}`` -> ``{"job_ids": [N]}``
    Cancel a job that carries this mark and session, and belongs to this user or to nobody whom the
    machine knows; ``[]`` where it has ended.
``{"verb": "jobs", "job_ids": [N, ...]}`` -> ``{"rows": [TEXT, ...]}``
    How these jobs are, ended ones too: a line of squeue each, see ``_JOB_FIELDS``; of a job without
    this mark nothing but its number. One that is missing is one that Slurm does not know. Changes
    nothing.
``{"verb": "marked"}`` -> ``{"rows": [TEXT, ...]}``
    How all jobs are that carry this mark and have not ended. Changes nothing.
``{"verb": "session", "job_id": N}`` -> ``{"session": ID}``
    Whose session with this mark a job that has not ended is; ``null`` for any other. Changes
    nothing.

A failure is ``{"error": WORDS, "refused": BOOL}``; ``refused`` when Slurm itself refused. What
cannot be answered so ends in one line on the standard error.
It uses the standard library only, so that what sudo allows is what can be read here.
"""

from __future__ import annotations

# ruff: noqa: E402  what comes first must
import ctypes
import sys

_PR_SET_DUMPABLE = 4


def _keep_tracers_out() -> None:
    """Keep the user, as whom this runs, from looking into it and changing it: see prctl(2)."""
    if ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        sys.exit("slurm-launcher: prctl failed")


if __name__ == "__main__":
    _keep_tracers_out()

import contextlib
import json
import os
import pwd
import re
import stat
import subprocess
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Its import would take a tenth of the time that this program takes to start.
    from typing import Any

_READY = "slurm-launcher: ready\n"
_SESSION = re.compile(r"[0-9a-f]{32}", re.ASCII)
_JOB_ID = re.compile(r"[0-9]{1,10}", re.ASCII)
_MOST_INPUT = 1 << 20
_NO_SUCH_JOB = "Invalid job id specified"
_LOG_FOLDER = Path(".local", "state", "data-scientist-portal")
_MOST_LOGS = 20
# How long an input is left alone for which there is no job: one may be about to be submitted.
_INPUT_SECONDS = 3600
_MOST_LOG_BYTES = 1 << 14
_MOST_LOG_LINES = 15
_MOST_LINE = 300
_TIME_LIMIT_SECONDS = 30
_FORECAST_SECONDS = 5
# sbatch: Job 12 to start at 2026-11-21T14:05:00 using 8 processors on nodes node001 in partition x
_FORECAST = re.compile(r"Job \d+ to start at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) ", re.ASCII)
_TIME_IN_ALL_SECONDS = 60
_MOST_MINUTES = 366 * 24 * 60
# days-hours:minutes:seconds, from the right; "30:00" is thirty minutes.
_TIME = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", re.ASCII)
# As the hub itself asks (commands.JOB_FIELDS): nothing that a user can write.
_JOB_FIELDS = "%i|%T|%r|%u|%P|%N|%S|%e|%l"
_MOST_JOBS = 10_000
# scontrol show config: "SlurmUser               = slurm(64030)"
_SLURM_USER = re.compile(r"^SlurmUser\s*=\s*[^\s()]*\((\d+)\)", re.ASCII | re.MULTILINE)
_ADMIN_LEVELS = ("Operator", "Administrator")
_MAX_TIME = re.compile(r"\bMaxTime=(\S+)", re.ASCII)


class LauncherError(Exception):
    """An error that is reported to the hub."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class SlurmCommands:
    """Slurm's programs, run as the user who runs this."""

    def __init__(self, settings: dict[str, str], account: pwd.struct_passwd) -> None:
        self.mark = settings["mark"]
        self._give_up_at = time.monotonic() + _TIME_IN_ALL_SECONDS
        self._bin_dir = Path(settings["bin_dir"])
        self._environment = {
            "HOME": account.pw_dir,
            "LC_ALL": "C",
            "LOGNAME": account.pw_name,
            "PATH": "/usr/bin:/bin",
            "SLURM_CONF": settings["slurm_conf"],
            "TZ": "UTC",
            "USER": account.pw_name,
        }

    def run(self, program: str, *arguments: str, stdin: str = "", session_input: str = "") -> str:
        """Run one program; return what it printed. A job that it submits has the input's path."""
        if session_input:
            self._environment["PORTAL_SESSION_INPUT"] = session_input
        code, printed, complaint = self.try_out(program, *arguments, stdin=stdin)
        if code != 0:
            raise LauncherError(complaint.strip() or f"{program} failed", refused=True)
        return printed

    def try_out(
        self, program: str, *arguments: str, stdin: str = "", seconds: float = _TIME_LIMIT_SECONDS
    ) -> tuple[int, str, str]:
        """Run one program; return its exit code and what it printed on both streams."""
        seconds = max(1.0, min(seconds, self._give_up_at - time.monotonic()))
        try:
            done = subprocess.run(
                [str(self._bin_dir / program), *arguments],
                input=stdin.encode(),
                capture_output=True,
                env=self._environment,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LauncherError(f"{program} did not answer in {seconds:.0f} s") from error
        except OSError as error:
            raise LauncherError(f"{program} cannot be run: {error.strerror}") from error
        # As bytes, since a text stream would take a carriage return for the end of a line.
        out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        return done.returncode, out, err


def submit(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Submit a session's script."""
    script, session, session_input = _script(request), _session(request), _input(request)
    log_folder = _log_folder(account)
    # Slurm puts a job's number for %j, and a percent sign for two.
    folder = str(log_folder).replace("%", "%%")
    file = log_folder / _input_name(slurm, session)
    if session_input:
        _remove_old_inputs(slurm, account, log_folder)
        _write_input(file, session_input)
    try:
        printed = slurm.run(
            "sbatch",
            "--parsable",
            # All of this program's own few variables. With a shorter list, or NONE, Slurm (seen
            # with 22.05) runs the user's login shell on the node to make an environment: slow, and
            # theirs.
            "--export=ALL",
            f"--comment={slurm.mark}:{session}",
            f"--chdir={account.pw_dir}",
            f"--output={folder}/session-%j.log",
            stdin=script,
            session_input=str(file) if session_input else "",
        )
    except LauncherError as error:
        # After a time-out the job may be there all the same.
        if error.refused and "timed out" not in str(error):
            file.unlink(missing_ok=True)
        raise
    # "12" or, in a federation, "12;cluster", after what a site's cli_filter prints.
    job_id = printed.strip().rpartition("\n")[2].partition(";")[0]
    if not _JOB_ID.fullmatch(job_id):
        raise LauncherError(f"sbatch printed {printed!r} instead of a job's number")
    return {"job_id": int(job_id)}


def forecast(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Ask when a session's script would start."""
    code, _, words = slurm.try_out(
        "sbatch",
        "--test-only",
        "--export=ALL",
        f"--chdir={account.pw_dir}",
        "--output=/dev/null",
        stdin=_script(request),
        seconds=_FORECAST_SECONDS,
    )
    start = _FORECAST.search(words)
    if start:
        return {"start": start.group(1)}
    if code == 0:
        raise LauncherError(f"sbatch printed {words[:200]!r} instead of a forecast")
    return {"never": words.strip()[-500:]}


def cancel(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Cancel the jobs of one session."""
    wanted = _session(request)
    job_ids = [job_id for job_id, session in _sessions(slurm, account) if session == wanted]
    if job_ids:
        slurm.run("scancel", f"--user={account.pw_name}", *map(str, job_ids))
    # A job that never began has left it.
    with contextlib.suppress(OSError):
        Path(account.pw_dir, _LOG_FOLDER, _input_name(slurm, wanted)).unlink()
    return {"job_ids": job_ids}


def list_sessions(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Tell the user's jobs that are sessions of this hub."""
    return {"sessions": {str(job_id): session for job_id, session in _sessions(slurm, account)}}


def log(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Read the end of a session's output. Its owner can put anything in its place."""
    job_id = _job_id(request)
    file = Path(account.pw_dir) / _LOG_FOLDER / f"session-{job_id}.log"
    try:
        # No waiting for whoever writes to a pipe.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return {"lines": []}
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return {"lines": []}
        begin = max(0, status.st_size - _MOST_LOG_BYTES)
        text = os.pread(descriptor, _MOST_LOG_BYTES, begin).decode(errors="replace")
    finally:
        os.close(descriptor)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return {"lines": [line[:_MOST_LINE] for line in lines[-_MOST_LOG_LINES:]]}


def extend(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Raise a session's time limit; the one thing that is done as Slurm's operator."""
    session, job_id, uid = _session(request), _job_id(request), _uid(request)
    minutes = request.get("minutes")
    if type(minutes) is not int or not 1 <= minutes <= _MOST_MINUTES:
        raise LauncherError("the minutes are a whole number", refused=True)
    partition, current = _running_session(slurm, job_id, uid, session)
    if minutes <= current:
        raise LauncherError(f"job {job_id} has {current} minutes already", refused=True)
    longest = _longest(slurm, partition)
    if longest is not None and minutes > longest:
        raise LauncherError(f"partition {partition} allows {longest} minutes", refused=True)
    try:
        slurm.run("scontrol", "update", f"JobId={job_id}", f"TimeLimit={minutes}")
    except LauncherError as error:
        # After a time-out it may be done all the same.
        refused = error.refused and "timed out" not in str(error)
        raise LauncherError(str(error), refused=refused) from error
    try:
        _, now = _running_session(slurm, job_id, uid, session)
    except LauncherError as error:
        raise LauncherError(f"the limit may have been raised, but {error}") from error
    if now != minutes:
        raise LauncherError(f"job {job_id} has {now} minutes, not {minutes}")
    return {"minutes": now}


def end(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Cancel a session whose owner cannot be acted as; the other thing done as the operator."""
    session, job_id, name = _session(request), _job_id(request), request.get("user")
    told = _told(slurm, job_id, "%i|%U")
    if not told:
        return {"job_ids": []}
    number, _, uid = told.removesuffix("\n").partition("|")
    if number != str(job_id) or not _JOB_ID.fullmatch(uid) or not _is_of(int(uid), name):
        raise LauncherError(f"job {job_id} is no job of this user", refused=True)
    if _told(slurm, job_id, "%k") != f"{slurm.mark}:{session}\n":
        raise LauncherError(f"job {job_id} is not this session's", refused=True)
    slurm.run("scancel", str(job_id))
    return {"job_ids": [job_id]}


def jobs(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Tell how some jobs are, where Slurm hides them from the hub."""
    wanted = {str(job_id) for job_id in _job_ids(request)}
    question = ("--states=all", f"--jobs={','.join(sorted(wanted, key=int))}")
    told = dict(_rows_of(slurm, wanted, _JOB_FIELDS, *question))
    marked = _marked(slurm, wanted, *question)
    if len(told) < len(wanted):
        # Who is shown nothing may not take that for an answer.
        _expect_to_see_all(slurm, account)
    withheld = "|" * _JOB_FIELDS.count("|")
    rows = [row if job_id in marked else f"{job_id}{withheld}" for job_id, row in told.items()]
    return {"rows": rows}


def marked(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Tell how all jobs are that are sessions of this hub."""
    found = _marked(slurm, None)
    return {"rows": [row for _, row in _rows_of(slurm, found, _JOB_FIELDS)]}


def session(
    slurm: SlurmCommands, account: pwd.struct_passwd, request: dict[str, Any]
) -> dict[str, Any]:
    """Tell which session of this hub a job is."""
    mark, _, named = _told(slurm, _job_id(request), "%k").removesuffix("\n").partition(":")
    is_ours = mark == slurm.mark and _SESSION.fullmatch(named)
    return {"session": named if is_ours else None}


VERBS = {
    "submit": submit,
    "forecast": forecast,
    "cancel": cancel,
    "list": list_sessions,
    "log": log,
}
OPERATOR_VERBS = {
    "extend": extend,
    "end": end,
    "jobs": jobs,
    "marked": marked,
    "session": session,
}


def answer(
    settings: dict[str, str], account: pwd.struct_passwd, text: str | bytes
) -> dict[str, Any]:
    """Do what the JSON ``text`` asks; return what to print."""
    try:
        request = _request(text)
        verbs = OPERATOR_VERBS if account.pw_name == settings.get("operator") else VERBS
        verb = request.get("verb")
        if not isinstance(verb, str) or verb not in verbs:
            raise LauncherError(f"the verbs are: {', '.join(verbs)}")
        return verbs[verb](SlurmCommands(settings, account), account, request)
    except LauncherError as error:
        return {"error": str(error), "refused": error.refused}


def _request(text: str | bytes) -> dict[str, Any]:
    if len(text) > _MOST_INPUT:
        raise LauncherError(f"the input is longer than {_MOST_INPUT} bytes")
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LauncherError(f"the input is not JSON: {type(error).__name__}") from error
    if not isinstance(request, dict):
        raise LauncherError("the input is not a JSON object")
    return request


def _sessions(slurm: SlurmCommands, account: pwd.struct_passwd) -> list[tuple[int, str]]:
    """Return the user's jobs that have not ended and carry this hub's mark.

    A comment may hold newlines, and what looks like another job's line: so each job that is found
    is asked for by itself.
    """
    mine = f"--user={account.pw_name}"
    printed = slurm.run("squeue", "--noheader", "--all", mine, "-o", "%i|%k")
    found = []
    for line in dict.fromkeys(printed.split("\n")):
        job_id, _, comment = line.partition("|")
        mark, _, session = comment.partition(":")
        if _JOB_ID.fullmatch(job_id) and mark == slurm.mark and _SESSION.fullmatch(session):
            told = _told(slurm, int(job_id), "%k", mine)
            if told == f"{slurm.mark}:{session}\n":
                found.append((int(job_id), session))
    return found


def _told(slurm: SlurmCommands, job_id: int, fields: str, *more: str) -> str:
    """Return what squeue tells of one job; nothing of one that has ended."""
    question = ("--noheader", "--all", *more, f"--jobs={job_id}", "-o", fields)
    code, printed, complaint = slurm.try_out("squeue", *question)
    if code != 0 and _NO_SUCH_JOB not in complaint:
        raise LauncherError(complaint.strip() or "squeue failed")
    return printed if code == 0 else ""


def _rows_of(
    slurm: SlurmCommands, wanted: set[str] | None, fields: str, *question: str
) -> list[tuple[str, str]]:
    """Return the numbers and lines of the jobs that are wanted, or of all, as squeue has them."""
    code, printed, complaint = slurm.try_out(
        "squeue", "--noheader", "--all", *question, "-o", fields
    )
    if code != 0:
        # squeue says so of a single job that it does not know.
        if _NO_SUCH_JOB not in complaint:
            raise LauncherError(complaint.strip() or "squeue failed")
        return []
    rows = []
    for line in printed.split("\n"):
        job_id = line.partition("|")[0].strip()
        if _JOB_ID.fullmatch(job_id) and (wanted is None or job_id in wanted):
            rows.append((job_id, line))
    return rows


def _marked(slurm: SlurmCommands, wanted: set[str] | None, *question: str) -> set[str]:
    """Return the jobs with this hub's mark: of which it may be told.

    A comment may hold what looks like another job's line: that can add a mark, and take none away.
    """
    of = re.compile(rf"\d+\|{re.escape(slurm.mark)}:{_SESSION.pattern}", re.ASCII)
    rows = _rows_of(slurm, wanted, "%i|%k", *question)
    return {job_id for job_id, row in rows if of.fullmatch(row)}


def _expect_to_see_all(slurm: SlurmCommands, account: pwd.struct_passwd) -> None:
    """Refuse to say that there is no such job as one to whom Slurm may not show it."""
    found = _SLURM_USER.search(slurm.run("scontrol", "show", "config"))
    if found and int(found[1]) == account.pw_uid:
        return
    level = slurm.run(
        *("sacctmgr", "--noheader", "--parsable2", "show", "user", account.pw_name),
        "format=AdminLevel",
    )
    if level.strip() not in _ADMIN_LEVELS:
        raise LauncherError(
            f"{account.pw_name} is neither SlurmUser nor an operator in Slurm's accounting: Slurm "
            "may hide jobs from it"
        )


def _script(request: dict[str, Any]) -> str:
    script = request.get("script")
    if not isinstance(script, str) or not script.startswith("#!"):
        raise LauncherError("the script is missing")
    try:
        script.encode()
    except UnicodeEncodeError as error:
        raise LauncherError("the script is no text") from error
    return script


def _input(request: dict[str, Any]) -> str:
    session_input = request.get("input", "")
    if not isinstance(session_input, str) or not session_input.isascii():
        raise LauncherError("the session's input is no ASCII text")
    return session_input


def _session(request: dict[str, Any]) -> str:
    session = request.get("session")
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise LauncherError("a session is named by 32 hexadecimal digits")
    return session


def _job_id(request: dict[str, Any]) -> int:
    job_id = request.get("job_id")
    if type(job_id) is not int or job_id <= 0:
        raise LauncherError("a job is named by its number")
    return job_id


def _job_ids(request: dict[str, Any]) -> list[int]:
    job_ids = request.get("job_ids")
    if not isinstance(job_ids, list) or not 0 < len(job_ids) <= _MOST_JOBS:
        raise LauncherError("the jobs are a list of numbers")
    return [_job_id({"job_id": job_id}) for job_id in job_ids]


def _uid(request: dict[str, Any]) -> int:
    name = request.get("user")
    try:
        return pwd.getpwnam(name if isinstance(name, str) else "").pw_uid
    except (KeyError, ValueError) as error:
        raise LauncherError("there is no such user") from error


def _is_of(uid: int, name: object) -> bool:
    """Say whether an account is the user's, or is no account any more."""
    try:
        return pwd.getpwuid(uid).pw_name == name
    except KeyError:
        return True


def _running_session(slurm: SlurmCommands, job_id: int, uid: int, session: str) -> tuple[str, int]:
    """Return partition and time limit (minutes) of a session's job, if that is what it is.

    The comment is its owner's word and may hold anything, newlines too; so it is asked for by
    itself, and must be the whole answer. The other fields no user can write.
    """
    question = ("squeue", "--noheader", "--all", "--states=RUNNING", f"--jobs={job_id}", "-o")
    fields = slurm.run(*question, "%i|%U|%T|%P|%l").strip().split("|")
    if fields[:3] != [str(job_id), str(uid), "RUNNING"] or len(fields) != 5:
        raise LauncherError(f"job {job_id} is no running job of this user", refused=True)
    if slurm.run(*question, "%k").removesuffix("\n") != f"{slurm.mark}:{session}":
        raise LauncherError(f"job {job_id} is not this session's", refused=True)
    limit = _minutes(fields[4])
    if limit is None:
        raise LauncherError(f"job {job_id} has no time limit", refused=True)
    return fields[3], limit


def _longest(slurm: SlurmCommands, partition: str) -> int | None:
    """Return a partition's longest time in minutes, ``None`` for no limit.

    Slurm does not hold an operator to it.
    """
    shown = slurm.run("scontrol", "--all", "--oneliner", "show", "partition", partition)
    match = _MAX_TIME.search(shown)
    if match is None:
        raise LauncherError(f"scontrol does not say how long a job of {partition} may be")
    return _minutes(match[1])


def _minutes(text: str) -> int | None:
    """Read one of Slurm's time limits; ``None`` for no limit."""
    if text in ("UNLIMITED", "infinite"):
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise LauncherError(f"{text!r} is not a time limit")
    days, hours, minutes, _ = (int(part or 0) for part in match.groups())
    return (days * 24 + hours) * 60 + minutes


def _log_folder(account: pwd.struct_passwd) -> Path:
    """Make the private folder for the logs of the user's sessions; keep only the newest logs."""
    folder = Path(account.pw_dir) / _LOG_FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another start of the user's may remove some at the same moment.
        with contextlib.suppress(FileNotFoundError):
            logs = sorted(folder.glob("session-*.log"), key=lambda log: log.lstat().st_mtime)
            for old in logs[:-_MOST_LOGS]:
                old.unlink()
    except OSError as error:
        raise LauncherError(
            f"the folder {folder} cannot be used: {error.strerror}", refused=True
        ) from error
    return folder


def _input_name(slurm: SlurmCommands, session: str) -> str:
    return f"input-{slurm.mark}-{session}.json"


def _write_input(file: Path, text: str) -> None:
    """Write what the session is told where only the user can read it or put another in its place.

    Whoever shares the user's group may have made the folder, or left something at the name.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            status = os.fstat(folder)
            if status.st_uid != os.getuid():
                raise LauncherError(f"the folder {file.parent} is somebody else's", refused=True)
            if status.st_mode & 0o077:
                os.fchmod(folder, 0o700)
            with open(os.open(file.name, flags, 0o600, dir_fd=folder), "wb") as stream:
                stream.write(text.encode())
                stream.flush()
                # The node reads it over the network; and a full quota may show only now.
                os.fsync(stream.fileno())
        except OSError as error:
            if not isinstance(error, FileExistsError):
                with contextlib.suppress(OSError):
                    os.unlink(file.name, dir_fd=folder)
            raise
        finally:
            os.close(folder)
    except OSError as error:
        raise LauncherError(
            f"what the session is told cannot be written to {file.parent}: {error.strerror}",
            refused=True,
        ) from error


def _remove_old_inputs(slurm: SlurmCommands, account: pwd.struct_passwd, folder: Path) -> None:
    """Remove what jobs left that never began, and that no hub has cancelled."""
    latest = time.time() - _INPUT_SECONDS
    try:
        # Not "*": the mark of another hub may begin with this one's and a hyphen.
        names = _input_name(slurm, "[0-9a-f]" * 32)
        old = [file for file in folder.glob(names) if file.lstat().st_mtime < latest]
        if old:
            kept = {_input_name(slurm, session) for _, session in _sessions(slurm, account)}
            for file in old:
                if file.name not in kept:
                    file.unlink(missing_ok=True)
    except OSError:
        return  # what is in the way of the new one is said there


def main() -> None:
    """Read, act, print."""
    if len(sys.argv) > 1:
        sys.exit("slurm-launcher takes no arguments")
    os.umask(0o077)
    try:
        sys.stderr.write(_READY)
        sys.stderr.flush()
        settings = json.loads(Path(f"{__file__}.json").read_text(encoding="utf-8"))
        account = pwd.getpwuid(os.getuid())
        text = sys.stdin.buffer.read(_MOST_INPUT + 1)
        # Not by sys.stdout, which complains once more at the end where nobody reads it.
        os.write(1, f"{json.dumps(answer(settings, account, text))}\n".encode())
    except (KeyError, OSError, ValueError) as error:
        sys.exit(f"slurm-launcher: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
