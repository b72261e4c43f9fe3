"""All findings about a site's Slurm, in the order in which they are shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsportal.doctor.finding import Line
from dsportal.doctor.judgement.attachment import (
    accounting,
    configuration,
    limits,
    logins,
    nodes,
    partitions,
)
from dsportal.doctor.judgement.attachment.accounting import AccountingRecords
from dsportal.doctor.judgement.attachment.settings import SlurmConfig


@dataclass(frozen=True)
class SlurmAnswers:
    """Output of the site's Slurm, and the configuration of the portal's machine."""

    config: str
    """Of ``scontrol show config``."""
    nodes: str
    """Of ``sinfo``: a line for each node of each partition, see `nodes.FORMAT`."""
    partitions: str
    """Of ``scontrol --all --oneliner show partition``."""
    reservations: str
    """Of ``scontrol show reservation --oneliner``."""
    accounting: AccountingRecords
    logins: Mapping[str, str]
    """The files of /etc/pam.d by name."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The table of portal.toml, as `limits.read` gives it."""


def judge(answers: SlurmAnswers, *, operator: str) -> list[Line]:
    """Say what a portal finds there.

    ``operator``: as whom the launcher may ask and extend, or nobody.
    """
    settings = SlurmConfig(answers.config)
    found = nodes.read(answers.nodes)
    known = limits.known(
        answers.partitions,
        answers.reservations,
        {name for node in found for name in node.features},
        answers.accounting.accounts,
        answers.accounting.qos,
    )
    judged = {
        "Slurm's version": configuration.version(settings),
        "hidden jobs": configuration.private_data(settings, operator),
        "operator": configuration.operator(settings, operator),
        "accounts": accounting.accounts(settings, answers.accounting),
        "partitions' rules": partitions.rules(answers.partitions),
        "clusters": accounting.clusters(settings, answers.accounting),
        "stored scripts": configuration.stored(settings),
        "changed jobs": configuration.plugins(settings),
        "job launch": configuration.launch(settings),
        "shared nodes": configuration.select(
            settings, partitions.of_whole_nodes(answers.partitions)
        ),
        "memory": configuration.memory(
            settings, partitions.without_default_memory(answers.partitions)
        ),
        "confinement": configuration.confinement(settings),
        "GPUs": nodes.gpus(found),
        "mixed partitions": nodes.mixed(found),
        "features": nodes.features(found),
        "reservations": nodes.reservations(answers.reservations),
        "names in limits": limits.names(answers.limits, known),
        "logins to nodes": logins.judge(answers.logins),
    }
    return [Line(check, finding) for check, finding in judged.items()]
