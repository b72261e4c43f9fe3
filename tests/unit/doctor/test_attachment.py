"""What is said of a Slurm that a site runs itself, before a portal is put on top."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dsportal.doctor import command
from dsportal.doctor.checks import attachment as checks
from dsportal.doctor.finding import Finding, State
from dsportal.doctor.judgement.attachment import nodes
from dsportal.doctor.judgement.attachment.accounting import AccountingRecords
from dsportal.doctor.judgement.attachment.whole import SlurmAnswers, judge

CAPTURED = Path(__file__).parents[1] / "data/config_of_slurm_22.05.txt"
CONFIG = CAPTURED.read_text(encoding="utf-8")


# Of 24.11.5.
PARTITIONS = (Path(__file__).parents[1] / "data/slurm_24.11/partitions.txt").read_text()
NODES = "dgx|node001|40|393216|gpu:v100:4|(null)\n"
# Of 22.05.8.
NONE_RESERVED = "No reservations in the system\n"
COURSE = (
    "ReservationName=course StartTime=2026-11-26T20:41:21 EndTime=2026-11-26T21:41:21 "
    "Duration=01:00:00 Nodes=accounted001 NodeCnt=1 CoreCnt=40 Features=(null) "
    "PartitionName=(null) Flags=SPEC_NODES TRES=cpu=40 Users=root Groups=(null) Accounts=(null) "
    "Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
)
ENFORCED = "AccountingStorageEnforce = associations,limits,qos"
KEPT = "AccountingStorageType = accounting_storage/slurmdbd"
# Of 22.05.8: the line of an account has no user.
ASSOCIATIONS = "|root\nroot|root\n|physics\nada|physics\nbob|physics\n"


def findings(
    *lines: str,
    nodes: str = NODES,
    partitions: str = PARTITIONS,
    reservations: str = NONE_RESERVED,
    accounting: AccountingRecords | None = None,
    logins: dict[str, str] | None = None,
    limits: dict[str, Any] | None = None,
    operator: str = "slurm",
) -> dict[str, Finding]:
    """Judge the captured settings, with lines that differ, and other answers."""
    config = "\n".join([CONFIG, *lines])
    answers = SlurmAnswers(
        config,
        nodes,
        partitions,
        reservations,
        accounting or AccountingRecords(),
        logins or {},
        limits or {},
    )
    return {line.check: line.finding for line in judge(answers, operator=operator)}


def accounts(**members: set[str] | None) -> AccountingRecords:
    """The accounting of a site, and who is in the groups that may log in."""
    return AccountingRecords(
        "physics|\n",
        ASSOCIATIONS,
        {group: None if names is None else frozenset(names) for group, names in members.items()},
    )


def test_a_slurm_like_ours_is_well() -> None:
    assert {check for check, one in findings().items() if one.state is not State.OK} == set()


@pytest.mark.parametrize(
    ("line", "check", "state", "found"),
    [
        ("SLURM_VERSION = 20.11.9", "Slurm's version", State.FAILED, "20.11.9 is too old"),
        ("SLURM_VERSION = 22.05.0-rc1", "Slurm's version", State.OK, "22.05"),
        ("SLURM_VERSION = 25.05.3", "Slurm's version", State.OK, "25.05.3"),
        ("SLURM_VERSION = 25.11.0", "Slurm's version", State.WARNING, "25.11.0 is newer"),
        ("SLURM_VERSION = (null)", "Slurm's version", State.FAILED, "does not tell"),
        ("PrivateData = jobs,usage", "hidden jobs", State.OK, "as slurm"),
        ("PrivateData = cloud,reservations", "hidden jobs", State.OK, "sees all"),
        ("PrivateData = jobs,nodes", "hidden jobs", State.WARNING, "PrivateData=nodes hides"),
        ("PrivateData = nodes,partitions", "hidden jobs", State.WARNING, "=nodes,partitions"),
        ("JobSubmitPlugins = lua,require_timelimit", "changed jobs", State.WARNING, "lua, require"),
        ("CliFilterPlugins = cli_filter/lua", "changed jobs", State.WARNING, "cli_filter/lua"),
        ("AccountingStorageEnforce = nosteps", "accounts", State.OK, "no job needs"),
        ("SelectType = select/linear", "shared nodes", State.WARNING, "a whole node"),
        ("SelectTypeParameters = CR_CORE", "memory", State.WARNING, "not a consumable"),
        ("DefMemPerCPU = UNLIMITED", "memory", State.WARNING, "all of its node's"),
        ("ProctrackType = proctrack/linuxproc", "confinement", State.WARNING, "linuxproc"),
        ("ConstrainDevices = no", "confinement", State.WARNING, "ConstrainDevices=no"),
        ("FederationParameters = fed_display", "clusters", State.WARNING, "fed_display"),
        (
            "AccountingStoreFlags = job_comment,job_env,job_script",
            "stored scripts",
            State.OK,
            "script; none of it is secret",
        ),
        ("AccountingStoreFlags = job_env", "stored scripts", State.OK, "few variables; none"),
        ("AccountingStoreFlags = (null)", "stored scripts", State.OK, "neither"),
        (
            "LaunchParameters = enable_nss_slurm,use_interactive_step",
            "job launch",
            State.OK,
            "nothing that changes a session",
        ),
        ("LaunchParameters = disable_send_gids", "job launch", State.WARNING, "its node knows"),
        ("LaunchParameters = enable_nss_slurm,disable_send_gids", "job launch", State.OK, ""),
        ("LaunchParameters = test_exec,warp_drive", "job launch", State.WARNING, "=warp_drive is"),
        ("SlurmUser = slurmadm(990)", "operator", State.WARNING, "not SlurmUser (slurmadm)"),
    ],
)
def test_a_setting_is_told(line: str, check: str, state: State, found: str) -> None:
    finding = findings(line)[check]
    assert finding.state is state
    assert found in finding.found
    assert (finding.next_step == "") is (state is State.OK)


@pytest.mark.parametrize("rule", ["OverSubscribe=EXCLUSIVE", "ExclusiveUser=YES"])
def test_a_partition_may_not_share_its_nodes(rule: str) -> None:
    text = re.sub(rf"\b{rule.partition('=')[0]}=\w+", rule, PARTITIONS)
    found = findings(partitions=text)["shared nodes"]
    assert found.state is State.WARNING
    assert found.found.startswith("batch: users do not share a node there")


def test_a_partition_may_have_a_default_of_memory_of_its_own() -> None:
    unset = "DefMemPerCPU = UNLIMITED"
    text = PARTITIONS.replace("DefMemPerNode=UNLIMITED", "DefMemPerCPU=2048")
    assert findings(unset, partitions=text)["memory"].state is State.OK
    other = text + PARTITIONS.replace("=batch", "=long")
    found = findings(unset, partitions=other)["memory"]
    assert found.state is State.WARNING
    assert "all of its node's in long (" in found.found


def test_hidden_jobs_need_an_operator() -> None:
    without = findings("PrivateData = jobs,nodes", operator="")
    assert without["hidden jobs"].state is State.FAILED
    assert "set portal_slurm_operator" in without["hidden jobs"].next_step
    assert findings(operator="")["operator"].state is State.WARNING


@pytest.mark.parametrize(
    ("gres", "state", "found"),
    [
        ("(null)\n", State.WARNING, "no node has GPUs"),
        ("gpu:4\n(null)\n", State.OK, "of one kind"),
        ("gpu:8(S:0-1)\n", State.OK, "of one kind"),
        ("gpu:a100:4(S:0-1),gpu:v100:2\ngpu:a100:4\n", State.OK, "of type a100, v100"),
        ("gpu:a100_1g.5gb:7\ngpu:1g.10gb:2\n", State.OK, "of type 1g.10gb, a100_1g.5gb"),
        ("gpu:a100:no_consume:4(S:0)\ngpu:4090:2\n", State.OK, "of type 4090, a100"),
        ("gpu:a100:4\ngpu:2\n", State.WARNING, "some have none"),
    ],
)
def test_gpus_are_told(gres: str, state: State, found: str) -> None:
    lines = [f"dgx|node{number}|40|393216|{one}|(null)" for number, one in enumerate(gres.split())]
    finding = findings(nodes="\n".join(lines))["GPUs"]
    assert finding.state is state
    assert found in finding.found


@pytest.mark.parametrize(
    ("gpus", "shares"),
    [
        (("64|512000|gpu:a100:4", "32|256000|gpu:v100:2"), ""),
        # A node without GPUs has no share, and equal machines differ by what their BIOS keeps.
        (("64|512000|gpu:a100:4", "8|16000|(null)", "64|500000|gpu:a100:4"), ""),
        (("64|512000|gpu:a100:4", "32|512000|gpu:a100:4"), "8 to 16 cores and 125 GiB"),
        (("64|512000|gpu:a100:4", "64|256000|gpu:a100:4"), "16 cores and 62 to 125 GiB"),
    ],
)
def test_gpus_with_other_shares_of_their_node_are_told(gpus: tuple[str, ...], shares: str) -> None:
    lines = [f"mix|node{number}|{one}|(null)" for number, one in enumerate(gpus)]
    # In another partition, the same is no difference.
    finding = findings(nodes="\n".join([*lines, "dgx|node9|8|512000|gpu:a100:4|(null)"]))[
        "mixed partitions"
    ]
    assert finding.state is (State.WARNING if shares else State.OK)
    assert f"mix has {shares}" in finding.found if shares else "mix has" not in finding.found
    assert ("session.cores_per_gpu" in finding.next_step) is bool(shares)


@pytest.mark.parametrize(
    ("gres", "found"),
    [
        (("gpu:a100:4", "gpu:a100:4(S:0-1)"), "the GPU nodes of each partition are alike"),
        (("gpu:a100:4", "(null)"), "the GPU nodes of each partition are alike"),
        (("gpu:a100:4", "gpu:v100:4"), "mix: the form offers a choice of a100, v100"),
        (("gpu:a100:2,gpu:t4:2", "gpu:a100:4"), "mix: the form offers a choice of a100, t4"),
    ],
)
def test_what_the_form_shows_of_a_mixed_partition_is_told(
    gres: tuple[str, ...], found: str
) -> None:
    lines = [f"mix|node{number}|64|512000|{one}|(null)" for number, one in enumerate(gres)]
    finding = findings(nodes="\n".join(lines))["mixed partitions"]
    assert (finding.state, finding.found) == (State.OK, found)


def test_the_most_gpus_of_a_mixed_partition_are_told() -> None:
    lines = "mix|node1|64|512000|gpu:a100:4|(null)\nmix|node2|128|1024000|gpu:a100:8|(null)\n"
    assert "up to 8 GPUs, which not every" in findings(nodes=lines)["mixed partitions"].found


def test_a_line_of_another_form_is_no_node() -> None:
    assert nodes.read("mix|node1|64+|512000|gpu:a100:4|(null)\nsinfo: a warning\n\n") == []


def test_features_are_told_with_the_way_to_offer_them() -> None:
    assert findings()["features"].found == "no node has one"
    lines = "mix|node1|64|512000|gpu:4|a100,nvlink\nmix|node2|64|512000|gpu:4|ib,nvlink\n"
    found = findings(nodes=lines)["features"].found
    assert found.startswith("a100, ib, nvlink: ")
    assert "docs/how-to/offer-choices.md" in found
    many = ",".join(f"rack{number}" for number in range(9))
    lines = f"mix|node1|64|512000|gpu:4|{many}\n"
    assert "rack5 and 3 more: " in findings(nodes=lines)["features"].found


def test_reservations_are_told_with_the_way_to_offer_them() -> None:
    assert findings()["reservations"].found == "none now"
    found = findings(reservations=COURSE)["reservations"].found
    assert found.startswith("course: ")
    assert "docs/how-to/offer-choices.md" in found
    repair = COURSE.replace("=course", "=repair").replace("Flags=", "Flags=MAINT,")
    found = findings(reservations=COURSE + repair)["reservations"].found
    assert found.startswith("course: ")
    assert "repair: for maintenance" in found
    # A name may have several words, and later releases know no watts.
    later = COURSE.replace("=course", "=deep learning course").replace(" Watts=n/a", "")
    assert findings(reservations=later)["reservations"].found.startswith("deep learning course: ")


@pytest.mark.parametrize(
    ("members", "state", "found"),
    [
        ({"phys": {"ada", "bob"}, "admins": {"root"}}, State.OK, "everybody of admins, phys"),
        # Slurm writes names in small letters.
        ({"phys": {"Ada"}}, State.OK, "everybody of phys"),
        ({"phys": {"ada", "eve"}}, State.WARNING, "Slurm refuses the sessions of eve,"),
        ({"phys": {"eve", "dan"}}, State.FAILED, "nobody of phys has an account"),
        ({"phys": {"eve"}, "admins": {"root"}}, State.FAILED, "nobody of admins, phys has an"),
        ({"phys": {"ada"}, "lost": None}, State.WARNING, "lost is no group"),
        ({}, State.WARNING, "users who have one: 2"),
    ],
)
def test_who_is_refused_without_an_account_is_told(
    members: dict[str, set[str] | None], state: State, found: str
) -> None:
    finding = findings(KEPT, ENFORCED, accounting=accounts(**members))["accounts"]
    assert finding.state is state
    assert found in finding.found
    assert finding.found.startswith("AccountingStorageEnforce=associations,limits,qos")
    # Where no job needs one, nobody is refused.
    assert findings(KEPT, accounting=accounts(**members))["accounts"].state is State.OK


def test_an_accounting_without_people_is_a_failure() -> None:
    fresh = AccountingRecords("physics|\n", "|root\nroot|root\n", {})
    finding = findings(KEPT, ENFORCED, accounting=fresh)["accounts"]
    assert finding.state is State.FAILED
    assert "refuses every session" in finding.found


def test_accounts_that_cannot_be_read_are_not_taken_for_none() -> None:
    finding = findings(KEPT, ENFORCED)["accounts"]
    assert finding.state is State.WARNING
    assert "could not be read" in finding.found


@pytest.mark.parametrize(
    ("said", "state", "found"),
    [
        ("portal-test11|\n", State.OK, "portal-test11 alone"),
        ("portal-test11|\nother|\nthird|campus\n", State.OK, "never to other, third (no -M)"),
        ("portal-test11|campus\nother|campus\n", State.WARNING, "in the federation campus"),
        (None, State.WARNING, "does not say which"),
    ],
)
def test_other_clusters_are_told(said: str | None, state: State, found: str) -> None:
    # ClusterName as in slurm.conf; the accounting has it in small letters.
    finding = findings(KEPT, "ClusterName = Portal-Test11", accounting=AccountingRecords(said))[
        "clusters"
    ]
    assert finding.state is state
    assert found.lower() in finding.found.lower()


def test_a_slurm_without_accounting_is_one_cluster() -> None:
    assert findings()["clusters"] == Finding(State.OK, "portal-test11 alone, without slurmdbd")


ADOPT = "account required pam_slurm_adopt.so"
OLD = "account  [success=1 default=ignore]  /lib/security/pam_slurm.so  # by job"


@pytest.mark.parametrize(
    ("logins", "state", "found"),
    [
        ({"sshd": "@include common-account\n", "common-account": ""}, State.OK, "not restricted"),
        ({"sshd": f"#{ADOPT}\n"}, State.OK, "not restricted"),
        ({"sshd": f"{ADOPT}\n"}, State.OK, "pam_slurm_adopt in sshd of"),
        ({"sshd": f"{OLD}\n"}, State.OK, "pam_slurm in sshd of"),
        # It does nothing but for sshd, if nothing else is said.
        ({"sudo": f"{ADOPT}\n"}, State.OK, "not restricted"),
        ({"sudo": f"{ADOPT} service=sshd\n"}, State.OK, "not restricted"),
        ({"sudo": f"{ADOPT} service=*\n"}, State.FAILED, "/etc/pam.d/sudo asks pam_slurm_adopt"),
        ({"sudo": f"{OLD}\n"}, State.FAILED, "/etc/pam.d/sudo asks pam_slurm,"),
        ({"sudo": "@include common", "common": f"{OLD}\n"}, State.FAILED, "/etc/pam.d/sudo"),
        ({"sudo": "account include all", "all": f"{OLD}\n"}, State.FAILED, "/etc/pam.d/sudo"),
        ({"sudo": "-account substack a", "a": f"{OLD}\n"}, State.FAILED, "/etc/pam.d/sudo"),
        ({"sudo": "@include sudo\n@include gone\n"}, State.OK, "not restricted"),
        ({"login": f"{ADOPT} service=login\n"}, State.WARNING, "/etc/pam.d/login asks"),
    ],
)
def test_a_login_that_needs_a_job_is_told(logins: dict[str, str], state: State, found: str) -> None:
    finding = findings(logins=logins)["logins to nodes"]
    assert finding.state is state
    assert found in finding.found


def test_a_slurm_that_does_not_answer_is_one_failure(tmp_path: Path) -> None:
    (line,) = checks.asked(str(tmp_path / "slurm.conf"), str(tmp_path), "slurm")
    assert line.finding.state is State.FAILED
    assert "scontrol" in line.finding.found


def site(folder: Path, *lines: str) -> Path:
    """Slurm's programs as they answer on a site, and a file of what they were asked."""
    said = {
        "scontrol show config": "\n".join([CONFIG, *lines]),
        "scontrol show reservation": NONE_RESERVED,
        "scontrol --all --oneliner show partition": PARTITIONS,
        "sinfo": NODES,
        "sacctmgr --noheader --parsable2 show clusters": "portal-test11|\n",
        "sacctmgr --noheader --parsable2 show associations clusters=portal-test11": ASSOCIATIONS,
        "sacctmgr --noheader --parsable2 show account format=Account": "physics\nroot",
        "sacctmgr --noheader --parsable2 show qos format=Name": "interactive\nnormal",
    }
    for name in ("scontrol", "sinfo", "sacctmgr"):
        answers = "".join(
            f"case '{name} '\"$*\" in '{words}'*) cat <<'END'\n{text}\nEND\nexit;; esac\n"
            for words, text in said.items()
        )
        program = folder / name
        program.write_text(f'#!/bin/sh\necho {name} "$*" >> {folder}/asked\n{answers}exit 1\n')
        program.chmod(0o755)
    return folder / "asked"


def asked(folder: Path, *groups: str, limits: dict[str, Any] | None = None) -> dict[str, Finding]:
    lines = checks.asked(str(folder / "slurm.conf"), str(folder), "slurm", groups, limits or {})
    return {line.check: line.finding for line in lines}


def test_root_asks_who_has_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    site(tmp_path, KEPT, ENFORCED)
    assert "nobody of daemon has an account" in asked(tmp_path, "daemon")["accounts"].found
    assert "no-such-group is no group" in asked(tmp_path, "no-such-group")["accounts"].found


def test_others_than_root_may_not_see_all_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    questions = site(tmp_path, KEPT, ENFORCED)
    found = asked(tmp_path, "daemon")
    assert "could not be read" in found["accounts"].found
    assert found["clusters"].found == "portal-test11 alone"
    assert "associations" not in questions.read_text(encoding="utf-8")


def test_an_accounting_that_is_not_there_is_not_asked(tmp_path: Path) -> None:
    questions = site(tmp_path)
    assert asked(tmp_path)["accounts"].state is State.OK
    assert "sacctmgr" not in questions.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("AllowQos=ALL", "AllowQos=interactive", "batch takes only the QOS interactive:"),
        ("AllowAccounts=ALL", "DenyAccounts=guests", "batch does not take the accounts guests:"),
        (
            "AllowGroups=ALL AllowAccounts=ALL",
            "AllowGroups=physics AllowAccounts=ml,nlp",
            "batch takes only the accounts ml,nlp and takes only the groups physics:",
        ),
    ],
)
def test_partitions_that_do_not_take_everybody_are_named(
    before: str, after: str, found: str
) -> None:
    line = findings(partitions=PARTITIONS.replace(before, after))["partitions' rules"]
    assert line.state is State.WARNING
    assert line.found.startswith(found)
    assert "limits.default.qos" in line.next_step


RECORDS = AccountingRecords(accounts="physics\nroot\n", qos="interactive\nnormal\n")


@pytest.mark.parametrize(
    ("limits", "state", "found"),
    [
        ({}, State.OK, "limits name nothing of Slurm's"),
        ({"default": {"max_gpus": 2}}, State.OK, "limits name nothing of Slurm's"),
        (
            {"default": {"account": "Physics", "qos": "Interactive"}},
            State.OK,
            "Slurm has what limits name: the QOS Interactive, account Physics",
        ),
        (
            {"groups": {"students": {"qos": "interactiv", "partitions": ["gpus"]}}},
            State.FAILED,
            "limits name the QOS interactiv, partition gpus, unknown to Slurm: sessions with it",
        ),
        ({"default": {"account": "maths"}}, State.FAILED, "the account maths, unknown"),
        ({"default": {"constraints": ["nvlink"]}}, State.FAILED, "the feature nvlink, unknown"),
        ({"default": {"constraints": ["a100"], "reservations": ["course"]}}, State.OK, "a100"),
        ({"default": {"reservation": "next"}}, State.WARNING, "reservation next, unknown to Slurm"),
    ],
)
def test_what_limits_name_must_be_there(limits: dict[str, Any], state: State, found: str) -> None:
    told = findings(
        limits=limits,
        accounting=RECORDS,
        reservations=COURSE,
        nodes="dgx|node001|40|393216|gpu:v100:4|a100,ib\n",
    )["names in limits"]
    assert told.state is state
    assert found in told.found


def test_a_name_of_what_could_not_be_asked_is_not_taken_for_a_wrong_one() -> None:
    told = findings(limits={"default": {"qos": "interactive"}})["names in limits"]
    assert told.state is State.WARNING
    assert "whether Slurm has the QOS interactive of limits could not be read" in told.found


def test_the_command_takes_limits_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    site(tmp_path, KEPT, ENFORCED)
    options = ["--attach", str(tmp_path / "slurm.conf"), "--slurm-bin", str(tmp_path)]
    wrong = json.dumps({"default": {"account": "physics", "qos": "night"}})
    assert command.main([*options, "--limits", wrong]) == 1
    assert "limits name the QOS night, unknown to Slurm" in capsys.readouterr().out
    for text in ("night", "[]", '{"default": []}', '{"groups": []}'):
        with pytest.raises(SystemExit):
            command.main([*options, "--limits", text])
