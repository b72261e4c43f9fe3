"""Names of accounts, QOS and the like in the site's limits, checked against Slurm's."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from dsportal.doctor.finding import Finding, failed, ok, warning
from dsportal.doctor.judgement.attachment.names import some

# A key of a table of `limits` in portal.toml -> what it names.
_KINDS = {
    "account": "account",
    "qos": "QOS",
    "partitions": "partition",
    "reservation": "reservation",
    "reservations": "reservation",
    "constraints": "feature",
}
# sacctmgr(1) writes these in small letters, whatever was asked for.
_FOLDED = ("account", "QOS")
# Sites make a course's reservation when the course begins.
_MAY_COME = ("reservation",)
_PARTITION = re.compile(r"^PartitionName=(\S+)", re.MULTILINE)
_RESERVATION = re.compile(r"^ReservationName=(\S+)", re.MULTILINE)


def known(
    partitions: str,
    reservations: str,
    features: Collection[str],
    accounts: str | None,
    qos: str | None,
) -> Mapping[str, Collection[str]]:
    """Return what Slurm has, by kind; a kind that could not be asked is left out.

    From what ``scontrol show`` says, and ``sacctmgr``, a name a line.
    """
    found: dict[str, Collection[str]] = {
        "partition": _PARTITION.findall(partitions),
        "reservation": _RESERVATION.findall(reservations),
        "feature": features,
    }
    kept = {"account": accounts, "QOS": qos}
    return found | {kind: said.split() for kind, said in kept.items() if said is not None}


def read(text: str) -> Mapping[str, Any]:
    """Read the table ``limits`` of portal.toml, written as JSON.

    Raises:
        ValueError: it is no table of tables.

    """
    limits = json.loads(text)
    if not isinstance(limits, dict) or not all(isinstance(one, dict) for one in _tables(limits)):
        raise ValueError("not a table")
    return limits


def names(limits: Mapping[str, Any], slurm: Mapping[str, Collection[str]]) -> Finding:
    """Say which names of the limits Slurm does not know."""
    wanted = set(_named(limits))
    if not wanted:
        return ok("limits name nothing of Slurm's")
    unknown = {
        (kind, name)
        for kind, name in wanted
        if kind in slurm and (name.lower() if kind in _FOLDED else name) not in slurm[kind]
    }
    if not unknown:
        return _found(wanted, slurm)
    words = f"limits name the {_words(unknown)}, unknown to Slurm"
    if all(kind in _MAY_COME for kind, _ in unknown):
        return warning(f"{words} now", "make it, or correct limits, before sessions ask for it")
    return failed(
        f"{words}: sessions with it cannot start",
        "correct the name in limits, or give it to Slurm (`sacctmgr show qos`, `sinfo`)",
    )


def _found(wanted: set[tuple[str, str]], slurm: Mapping[str, Collection[str]]) -> Finding:
    if unasked := {(kind, name) for kind, name in wanted if kind not in slurm}:
        return warning(
            f"whether Slurm has the {_words(unasked)} of limits could not be read",
            "ask as root, with slurmdbd running",
        )
    return ok(f"Slurm has what limits name: the {_words(wanted)}")


def _words(names: Iterable[tuple[str, str]]) -> str:
    return some(f"{kind} {name}" for kind, name in names)


def _tables(limits: Mapping[str, Any]) -> Iterator[Any]:
    groups = limits.get("groups", {})
    yield limits.get("default", {})
    yield from groups.values() if isinstance(groups, dict) else [groups]


def _named(limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for table in _tables(limits):
        for key, kind in _KINDS.items():
            value = table.get(key) or []
            yield from ((kind, name) for name in ([value] if isinstance(value, str) else value))
