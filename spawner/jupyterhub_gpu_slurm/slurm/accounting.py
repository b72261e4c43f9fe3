"""Slurm's accounting: the ``sacct`` query, and how its output is parsed.

Only fields that no user can write are asked for: sacct(1). Raises `UnreadableOutput` for what does
not look like Slurm's own output.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from jupyterhub_gpu_slurm.errors import UnreadableOutput

FIELDS = "JobIDRaw,User,AllocTRES,Start,End"
# billing=8,cpu=8,gres/gpu:v100=2,gres/gpu=2,mem=96G,node=1; the one without a type has them all.
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)(?=,|$)", re.ASCII)
_SETTING = re.compile(
    r"^(AccountingStorageType|AccountingStorageTRES|ClusterName)\s*=\s*(\S*)", re.MULTILINE
)
_NOT_YET = ("Unknown", "None", "")


@dataclass(frozen=True)
class AccountedJob:
    """A job that has been given nodes, as the accounting knows it."""

    job_id: int
    user: str
    gpus: int
    started: datetime
    ended: datetime | None
    """``None``: it runs."""


def settings(text: str) -> dict[str, str]:
    """Return what the answer to `commands.config` says of the accounting."""
    return dict(_SETTING.findall(text))


def is_enabled(found: Mapping[str, str]) -> bool:
    """Say whether jobs and users are recorded in slurmdbd, by its `settings`."""
    return found.get("AccountingStorageType") == "accounting_storage/slurmdbd"


def counts_gpus(text: str) -> bool:
    """Read the answer to `commands.config`: whether there is an accounting that counts GPUs."""
    found = settings(text)
    return is_enabled(found) and "gres/gpu" in found.get("AccountingStorageTRES", "").split(",")


def jobs(since: datetime, until: datetime) -> list[str]:
    """Ask for all users' jobs in a span, those too that were put back into the queue."""
    return [
        "sacct",
        "--allusers",
        "--allocations",
        "--duplicates",
        "--parsable2",
        "--noheader",
        f"--starttime={_written(since)}",
        f"--endtime={_written(until)}",
        f"--format={FIELDS}",
    ]


def read(text: str) -> list[AccountedJob]:
    """Read the answer to `jobs`; those that were never given a node are left out."""
    found = []
    for line in filter(None, text.split("\n")):
        fields = line.split("|")
        if len(fields) != FIELDS.count(",") + 1 or not fields[0].isdecimal():
            raise UnreadableOutput(
                "Slurm's accounting could not be read.", detail=f"sacct printed {line[:100]!r}"
            )
        job_id, user, tres, start, end = fields
        started, ended = _moment(start), _moment(end)
        if started is None or (ended is not None and ended <= started):
            continue
        gpus = _GPUS.search(tres)
        found.append(AccountedJob(int(job_id), user, int(gpus[1]) if gpus else 0, started, ended))
    return found


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _moment(text: str) -> datetime | None:
    if text in _NOT_YET:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as error:
        raise UnreadableOutput(
            "Slurm's accounting could not be read.", detail=f"sacct printed {text[:100]!r}"
        ) from error
