"""Checks of a Slurm that the site runs itself, before a portal is put on top."""

import grp
import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dsportal.doctor.finding import Line
from dsportal.doctor.judgement import slurm
from dsportal.doctor.judgement.attachment import accounting, nodes
from dsportal.doctor.judgement.attachment.accounting import AccountingRecords
from dsportal.doctor.judgement.attachment.settings import SlurmConfig
from dsportal.doctor.judgement.attachment.whole import SlurmAnswers, judge
from dsportal.doctor.programs import ProgramAnswer, ask

# A controller that is down keeps its programs waiting for 18 s.
_SECONDS = 25.0
_QUESTIONS = (
    ("scontrol", "show", "config"),
    ("sinfo", "--noheader", "--all", "--Node", f"--format={nodes.FORMAT}"),
    ("scontrol", "--all", "--oneliner", "show", "partition"),
    ("scontrol", "show", "reservation", "--oneliner"),
)


@dataclass(frozen=True)
class _Slurm:
    """Slurm's programs, as the site has installed them."""

    conf: str
    bin_dir: str

    def ask(self, name: str, *words: str) -> ProgramAnswer:
        environment = {"SLURM_CONF": self.conf}
        return ask(f"{self.bin_dir}/{name}", *words, seconds=_SECONDS, environment=environment)

    def listed(self, what: str, fields: str, *which: str) -> str | None:
        """Ask the accounting."""
        form = ("--noheader", "--parsable2")
        answer = self.ask("sacctmgr", *form, "show", what, *which, f"format={fields}")
        return answer.said if answer.status == 0 else None


def asked(
    conf: str,
    bin_dir: str,
    operator: str,
    groups: Sequence[str] = (),
    limits: Mapping[str, Any] = MappingProxyType({}),
) -> list[Line]:
    """Ask Slurm for its settings, nodes and accounts.

    ``groups`` may log in, ``limits`` name what they get.
    """
    site = _Slurm(conf, bin_dir)
    answers = [site.ask(*question) for question in _QUESTIONS]
    for answer in answers:
        if answer.status != 0:
            return [Line("slurmctld", slurm.judge_refusal(answer.last_words))]
    config, found, divided, reserved = (answer.said for answer in answers)
    kept = _accounting(site, SlurmConfig(config), groups)
    said = SlurmAnswers(config, found, divided, reserved, kept, _logins(), limits)
    return judge(said, operator=operator)


def _accounting(site: _Slurm, settings: SlurmConfig, groups: Sequence[str]) -> AccountingRecords:
    if not accounting.has_slurmdbd(settings):
        return AccountingRecords()
    own = f"clusters={settings.value('ClusterName')}"
    # Slurm may hide accounts from others than root (PrivateData of slurmdbd.conf).
    is_root = os.geteuid() == 0
    return AccountingRecords(
        clusters=site.listed("clusters", accounting.CLUSTER_FIELDS),
        associations=(
            site.listed("associations", accounting.ASSOCIATION_FIELDS, own) if is_root else None
        ),
        members={group: _members(group) for group in groups},
        accounts=site.listed("account", "Account") if is_root else None,
        qos=site.listed("qos", "Name"),
    )


def _members(group: str) -> frozenset[str] | None:
    """Give who is in a Unix group, by its list or by their own number."""
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return None
    own = {one.pw_name for one in pwd.getpwall() if one.pw_gid == entry.gr_gid}
    return frozenset({*entry.gr_mem, *own})


def _logins() -> dict[str, str]:
    """Read what PAM asks at each login; everybody may."""
    files = [file for file in Path("/etc/pam.d").glob("*") if file.is_file()]
    return {file.name: file.read_text(encoding="utf-8", errors="replace") for file in files}
