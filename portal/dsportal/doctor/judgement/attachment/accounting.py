"""The accounting of a site's Slurm: who may submit, and which clusters share it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsportal.doctor.finding import Finding, failed, ok, warning
from dsportal.doctor.judgement.attachment.names import some
from dsportal.doctor.judgement.attachment.settings import SlurmConfig

CLUSTER_FIELDS = "Cluster,Federation"
"""22.05: ``physics|`` alone, ``physics|campus`` in a federation."""
ASSOCIATION_FIELDS = "User,Account"
"""22.05: ``ada|theory``; an account's own line has no user."""


@dataclass(frozen=True)
class AccountingRecords:
    """Output of ``sacctmgr``, and members of groups; ``None``: it could not be read."""

    clusters: str | None = None
    associations: str | None = None
    """Of this cluster."""
    members: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Of the groups that may log in."""
    accounts: str | None = None
    """A name a line."""
    qos: str | None = None
    """A name a line."""


def has_slurmdbd(settings: SlurmConfig) -> bool:
    """Say whether there is a slurmdbd to ask."""
    return settings.value("AccountingStorageType") == "accounting_storage/slurmdbd"


def accounts(settings: SlurmConfig, said: AccountingRecords) -> Finding:
    """Say whom Slurm would refuse for want of an account.

    22.05 does so with "Invalid account or account/partition combination specified".
    """
    enforced = settings.words("AccountingStorageEnforce")
    # limits and qos imply associations; "all" stands for them, too.
    if not {"associations", "limits", "qos", "safe", "all"} & set(enforced):
        return ok("no job needs an account")
    words = f"AccountingStorageEnforce={','.join(enforced)}"
    if said.associations is None:
        return warning(
            f"{words}: a job needs an account, and who has one could not be read",
            "ask as root, with slurmdbd running; or see that everybody has a default account in "
            "`sacctmgr show associations`",
        )
    have = _users(said.associations)
    add = "`sacctmgr add user NAME account=ACCOUNT`"
    if not have - {"root"}:
        return failed(f"{words}, and nobody has an account: Slurm refuses every session", add)
    if unknown := [group for group, names in said.members.items() if names is None]:
        return warning(
            f"{words}: {some(unknown)} is no group on this machine, so who of it has an account "
            "is not known",
            "see that `getent group` knows it",
        )
    return _of_members(words, have, said.members, add)


def _of_members(
    words: str, have: set[str], members: Mapping[str, frozenset[str] | None], add: str
) -> Finding:
    may = {name for names in members.values() for name in names or ()} - {"root"}
    if not may:
        return warning(
            f"{words}: a job needs an account; users who have one: {len(have - {'root'})}",
            "name the groups that may log in with --groups, to see who has none",
        )
    refused = {name for name in may if name.lower() not in have}
    if refused == may:
        return failed(
            f"{words}, and nobody of {some(members)} has an account: Slurm refuses their sessions",
            add,
        )
    if refused:
        return warning(
            f"{words}: Slurm refuses the sessions of {some(refused)}, who have no account", add
        )
    return ok(f"{words}: everybody of {some(members)} has an account")


def _users(associations: str) -> set[str]:
    # Slurm writes names in small letters.
    return {line.partition("|")[0].lower() for line in associations.splitlines()} - {""}


def clusters(settings: SlurmConfig, said: AccountingRecords) -> Finding:
    """Say to which cluster sessions go."""
    own = settings.value("ClusterName")
    if parameters := settings.value("FederationParameters"):
        return _federated(f"FederationParameters={parameters}")
    if not has_slurmdbd(settings):
        return ok(f"{own} alone, without slurmdbd")
    if said.clusters is None:
        return warning(
            "slurmdbd does not say which clusters it has", "look at `sacctmgr show clusters`"
        )
    federations = {
        name: federation
        for name, _, federation in (line.partition("|") for line in said.clusters.splitlines())
    }
    # Slurm writes names in small letters.
    if federation := federations.get(own.lower(), ""):
        return _federated(f"{own} is in the federation {federation}")
    if others := set(federations) - {own.lower(), ""}:
        return ok(f"sessions go to {own} only, never to {some(others)} (no -M)")
    return ok(f"{own} alone")


def _federated(words: str) -> Finding:
    return warning(
        f"{words}: a session may start on another cluster, where the hub does not see it",
        "keep it out of the federation, or give the partitions that the portal offers names that "
        "no other cluster has",
    )
