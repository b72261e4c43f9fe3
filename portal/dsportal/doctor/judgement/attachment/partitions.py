"""The partitions of a site's Slurm: who may use them, and what they set differently."""

import re

from dsportal.doctor.finding import Finding, ok, warning

_NAME = re.compile(r"PartitionName=(\S+)")
# scontrol(1), "show partition": ALL where nobody is kept out; instead, those that are.
_RULES = {
    "accounts": re.compile(r"\b(Allow|Deny)Accounts=(\S+)"),
    "QOS": re.compile(r"\b(Allow|Deny)Qos=(\S+)"),
    "groups": re.compile(r"\b(Allow|Deny)Groups=(\S+)"),
}
_WHOLE_NODES = re.compile(r"\bOverSubscribe=EXCLUSIVE\b|\bExclusiveUser=(?:YES|1)\b")
_MEMORY = re.compile(r"\bDefMemPer(?:CPU|Node)=(\S+)")
_NO_LIMIT = ("UNLIMITED", "0")


def of_whole_nodes(said: str) -> list[str]:
    """Return the partitions whose nodes are not shared by sessions of several users."""
    return [name for name, line in _by_name(said).items() if _WHOLE_NODES.search(line)]


def without_default_memory(said: str) -> list[str]:
    """Return the partitions in which a job that asks for no memory gets all of its node's."""
    found = {name: _MEMORY.search(line) for name, line in _by_name(said).items()}
    return [name for name, match in found.items() if not match or match[1] in _NO_LIMIT]


def _by_name(said: str) -> dict[str, str]:
    return {match[1]: line for line in said.splitlines() if (match := _NAME.match(line))}


def rules(said: str) -> Finding:
    """Say which partitions do not take everybody, by what ``show partition`` says."""
    found = [words for name, line in _by_name(said).items() if (words := _rules_of(name, line))]
    if not found:
        return ok("any account, QOS and group may use every partition")
    return warning(
        f"{'; '.join(found)}: Slurm refuses the sessions of others there",
        "set limits.default.account and limits.default.qos, or let users choose them "
        "(docs/how-to/offer-choices.md)",
    )


def _rules_of(name: str, line: str) -> str:
    kept = [
        f"{'takes only' if match[1] == 'Allow' else 'does not take'} the {what} {match[2]}"
        for what, pattern in _RULES.items()
        if (match := pattern.search(line)) and match[2] != "ALL"
    ]
    return f"{name} {' and '.join(kept)}" if kept else ""
