"""The launcher's answers, checked and turned into values.

The launcher runs as the user, whose word its answer therefore is: what is not of the type that was
asked for is refused with `UnreadableOutput`, and words are cut and kept to one line.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from jupyterhub_gpu_slurm.errors import UnreadableOutput

_MOST_JOB_ID = 0xFFFF_FFFF
_SESSION = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_MOST_LINES = 15
_MOST_WORDS = 500
# A site's own check (job_submit plugin) and a limit of the accounting: the line before says which.
_SEE_ABOVE = ("Unspecified error", "Unable to submit", "Job violates accounting/QOS policy")
_PREFIX = re.compile(
    r"^((sbatch|allocation failure|error|Batch job submission failed)\s*:\s*)+", re.I
)


def read(text: str) -> dict[str, Any]:
    """Read an answer: one JSON object."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(text) from error
    if not isinstance(answer, dict):
        raise _unreadable(text)
    return answer


def complaint(answer: Mapping[str, Any]) -> tuple[str, bool] | None:
    """Return the words of a failure, of several lines, and whether Slurm itself refused."""
    if "error" not in answer:
        return None
    words, refused = answer["error"], answer.get("refused", False)
    if not isinstance(words, str) or not isinstance(refused, bool):
        raise _unreadable(answer)
    return words[-_MOST_WORDS:], refused


def job_id(answer: Mapping[str, Any]) -> int:
    """Read the answer to ``submit``."""
    return _job_id(answer.get("job_id"), answer)


def job_ids(answer: Mapping[str, Any]) -> list[int]:
    """Read the answer to ``cancel`` and ``end``."""
    found = answer.get("job_ids")
    if not isinstance(found, list):
        raise _unreadable(answer)
    return [_job_id(number, answer) for number in found]


def sessions(answer: Mapping[str, Any]) -> dict[int, str]:
    """Read the answer to ``list``."""
    found = answer.get("sessions")
    if not isinstance(found, dict):
        raise _unreadable(answer)
    sessions = {}
    for number, session in found.items():
        if not (_NUMBER.fullmatch(number) and isinstance(session, str)):
            raise _unreadable(answer)
        if not _SESSION.fullmatch(session):
            raise _unreadable(answer)
        sessions[_job_id(int(number), answer)] = session
    return sessions


def rows(answer: Mapping[str, Any]) -> str:
    """Read the answer to ``jobs`` and ``marked``: text as squeue prints it."""
    found = answer.get("rows")
    if not isinstance(found, list) or not all(isinstance(row, str) for row in found):
        raise _unreadable(answer)
    return "\n".join(found)


def session(answer: Mapping[str, Any]) -> str | None:
    """Read the answer to ``session``."""
    found = answer.get("session")
    if found is not None and not (isinstance(found, str) and _SESSION.fullmatch(found)):
        raise _unreadable(answer)
    return found


def lines(answer: Mapping[str, Any]) -> list[str]:
    """Read the answer to ``log``."""
    found = answer.get("lines")
    if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
        raise _unreadable(answer)
    return [one_line(line) for line in found[-_MOST_LINES:]]


def forecast(answer: Mapping[str, Any]) -> dict[str, str]:
    """Read the answer to ``forecast``; `jupyterhub_gpu_slurm.outlook.forecast` reads the words."""
    words = {key: answer[key] for key in ("start", "never") if key in answer}
    if len(words) != 1 or not all(isinstance(word, str) for word in words.values()):
        raise _unreadable(answer)
    return {key: word[-_MOST_WORDS:] for key, word in words.items()}


def one_line(text: str) -> str:
    """Return words of somebody else's for one line of a log or a page."""
    letters = (letter if letter.isprintable() else " " for letter in text[:_MOST_WORDS])
    return "".join(letters).strip()


def verdict(words: str) -> str:
    """Return the line of sbatch's complaint that says what is wrong."""
    lines = [_PREFIX.sub("", line.strip()).rstrip(".") for line in words.split("\n")]
    lines = [line for line in lines if line] or ["no reason given"]
    says_nothing = len(lines) > 1 and lines[-1].startswith(_SEE_ABOVE)
    return one_line(lines[-2] if says_nothing else lines[-1])


def _job_id(number: object, answer: Mapping[str, Any]) -> int:
    if type(number) is not int or not 0 < number <= _MOST_JOB_ID:
        raise _unreadable(answer)
    return number


def _unreadable(answer: object) -> UnreadableOutput:
    return UnreadableOutput(
        "The answer of the portal's launcher could not be read; ask the administrators.",
        detail=f"launcher: {one_line(str(answer))}",
    )
