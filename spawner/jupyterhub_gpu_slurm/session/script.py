"""The batch script of a session's job, rendered from an accepted request.

A directive's value is one word from a short list of characters: quoting does not help there,
because Slurm's own parser reads the line and a newline leaves it. What the session needs to know,
its token too, is not in the script, which Slurm's accounting may store (slurm.conf(5),
AccountingStoreFlags): the launcher keeps it in a file of the user's, which the script opens as its
standard input and removes.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from jinja2 import Environment, PackageLoader, StrictUndefined

from jupyterhub_gpu_slurm.errors import ScriptError
from jupyterhub_gpu_slurm.options.policy import AcceptedRequest

_LONGEST_WORD = 128
_WORD = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.@-]{{0,{_LONGEST_WORD - 1}}}", re.ASCII)
_NOT_IN_A_WORD = re.compile(r"[^A-Za-z0-9_.@-]")
_GPU_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}", re.ASCII)
_OPTION_VALUE = re.compile(r"[A-Za-z0-9_.,:;@%&|*()\[\]/+-]*", re.ASCII)
_SITE_OPTIONS = frozenset(
    (
        "acctg-freq",
        "constraint",
        "exclude",
        "hint",
        "licenses",
        "mail-type",
        "mail-user",
        "nice",
        "prefer",
        "switches",
        "tmp",
        "wckey",
    )
)
_PATH = re.compile(r"/[\x21-\x7e]+", re.ASCII)

_TEMPLATES = Environment(
    loader=PackageLoader("jupyterhub_gpu_slurm.session", "."),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701  a shell script, not a page; every value is checked below
)


@dataclass(frozen=True)
class SessionProgram:
    """Program of the job: an interpreter that has ``dsportal.session``, and its input."""

    python: str
    """Absolute path."""
    session_input: Mapping[str, object]
    """What ``dsportal.session`` reads; values that JSON knows."""

    def input_text(self) -> str:
        """Return the input as one line of ASCII JSON. Raises `ScriptError`."""
        try:
            return json.dumps(
                self.session_input, ensure_ascii=True, allow_nan=False, sort_keys=True
            )
        except (TypeError, ValueError) as error:
            raise ScriptError(f"The session's input cannot be written as JSON: {error}") from error


def render(
    job_name: str, request: AcceptedRequest, program: SessionProgram, more: Sequence[str] = ()
) -> str:
    """Return the script of a session's job; ``more`` are options of `site_options`.

    Raises `ScriptError` when a value could leave its place in the script.
    """
    return _TEMPLATES.get_template("session.sbatch.j2").render(
        job_name=_word("job name", job_name),
        partition=_word("partition", request.partition),
        account=None if request.account is None else _word("account", request.account),
        qos=None if request.qos is None else _word("QOS", request.qos),
        reservation=None
        if request.reservation is None
        else _word("reservation", request.reservation),
        more=more,
        constraint=None if request.constraint is None else _word("constraint", request.constraint),
        gres=_gres(request),
        cores=_count("cores", request.resources.cores),
        memory_mb=_count("memory", request.resources.memory_mb),
        minutes=_count("minutes", max(1, request.time // timedelta(minutes=1))),
        python=shlex.quote(_path("interpreter", program.python)),
    )


def site_options(text: str) -> tuple[str, ...]:
    """Read what a site adds to the command line of sbatch, for all sessions.

    Only options that choose nodes, priority and mail: what a session is, is not theirs to change.
    Raises `ValueError`.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    return check_options(words)


def check_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return these options of sbatch if a site may add them. Raises `ValueError`."""
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in _SITE_OPTIONS:
            known = ", ".join(f"--{each}" for each in sorted(_SITE_OPTIONS))
            raise ValueError(f"{word!r} is not --OPTION=VALUE with one of these: {known}")
        if not _OPTION_VALUE.fullmatch(value):
            raise ValueError(f"{word!r}: a character in its value is not of Slurm's names")
    return words


def job_name(mark: str, username: str, server_name: str) -> str:
    """Return the name of a session's job: one word, for people who read ``squeue``."""
    name = f"{mark}-{username}.{server_name}" if server_name else f"{mark}-{username}"
    return _NOT_IN_A_WORD.sub("_", name)[:_LONGEST_WORD]


def _word(what: str, value: str) -> str:
    if not _WORD.fullmatch(value):
        raise ScriptError(f"The {what} {value!a} may not be written into a job script.")
    return value


def _gres(request: AcceptedRequest) -> str | None:
    gpus = _count("GPUs", request.resources.gpus)
    if gpus == 0:
        return None
    if request.gpu_type is None:
        return f"gpu:{gpus}"
    if not _GPU_TYPE.fullmatch(request.gpu_type):
        raise ScriptError(f"The GPU type {request.gpu_type!a} may not be written into a script.")
    return f"gpu:{request.gpu_type}:{gpus}"


def _path(what: str, value: str) -> str:
    if not _PATH.fullmatch(value):
        raise ScriptError(f"The {what} {value!a} is not an absolute path of plain characters.")
    return value


def _count(what: str, value: int) -> int:
    if type(value) is not int or value < 0:
        raise ScriptError(f"The number of {what} {value!a} may not be written into a script.")
    return value
