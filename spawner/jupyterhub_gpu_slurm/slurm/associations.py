"""A user's accounts and QOS: the ``sacctmgr`` query, and how its output is parsed.

An *association* is Slurm's word for the right of a user to charge an account, on one cluster, and
with some QOS: sacctmgr(1). Raises `UnreadableOutput` for what does not look like Slurm's own
output.
"""

from dataclasses import dataclass

from jupyterhub_gpu_slurm.errors import UnreadableOutput
from jupyterhub_gpu_slurm.slurm.accounting import is_enabled, settings
from jupyterhub_gpu_slurm.slurm.parsing import known
from jupyterhub_gpu_slurm.slurm.records import SLURM_NAME

FIELDS = "User,DefaultAccount,Account,Partition,QOS"


@dataclass(frozen=True)
class Association:
    """An account that a user may charge, and how."""

    account: str
    qos: frozenset[str]
    partition: str | None = None
    """Where; ``None``: everywhere."""
    is_default: bool = False
    """Whether it is charged where a job names none."""


@dataclass(frozen=True)
class Accounting:
    """Name of the cluster in the accounting, and whether associations are kept for it."""

    cluster: str
    is_enabled: bool


def accounting(text: str) -> Accounting:
    """Read the answer to `commands.config`."""
    found = settings(text)
    if not found.get("ClusterName"):
        raise UnreadableOutput("scontrol does not tell ClusterName among Slurm's settings.")
    return Accounting(found["ClusterName"], is_enabled(found))


def associations(username: str, cluster: str) -> list[str]:
    """Ask for a user's associations on one cluster."""
    return [
        "sacctmgr",
        "--noheader",
        "--parsable2",
        "--readonly",
        "show",
        "user",
        "withassoc",
        f"name={username}",
        f"cluster={cluster}",
        f"format={FIELDS}",
    ]


def read(text: str, username: str) -> tuple[Association, ...]:
    """Read the answer to `associations`, such as ``ada|physics|physics||high,normal``.

    Names that no job's script may hold are left out.
    """
    found = []
    for line in filter(None, text.split("\n")):
        fields = line.split("|")
        if len(fields) != FIELDS.count(",") + 1:
            raise UnreadableOutput(
                "Slurm's accounts could not be read.", detail=f"sacctmgr printed {line[:100]!r}"
            )
        user, default, account, partition, qos = fields
        # Slurm writes names in small letters.
        if user.lower() == username.lower() and SLURM_NAME.fullmatch(account):
            names = frozenset(name for name in qos.split(",") if SLURM_NAME.fullmatch(name))
            found.append(Association(account, names, known(partition), account == default))
    return tuple(found)
