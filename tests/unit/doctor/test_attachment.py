"""What is said of a Slurm that a site runs itself, before a portal is put on top."""

from pathlib import Path

import pytest

from dsportal.doctor.checks import attachment as checks
from dsportal.doctor.finding import Finding, State
from dsportal.doctor.judgement import attachment

CAPTURED = Path(__file__).parents[1] / "data/config_of_slurm_22.05.txt"
CONFIG = CAPTURED.read_text(encoding="utf-8")


def findings(
    *lines: str, gres: str = "gpu:v100:4\n", operator: str = "slurm"
) -> dict[str, Finding]:
    """Judge the captured settings, with lines that differ."""
    config = "\n".join([CONFIG, *lines])
    judged = attachment.judge(config, gres, operator=operator)
    return {line.check: line.finding for line in judged}


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
        ("JobSubmitPlugins = lua,require_timelimit", "changed jobs", State.WARNING, "lua, require"),
        ("CliFilterPlugins = cli_filter/lua", "changed jobs", State.WARNING, "cli_filter/lua"),
        ("AccountingStorageEnforce = associations,limits,qos", "accounts", State.WARNING, "need"),
        ("AccountingStorageEnforce = nosteps", "accounts", State.OK, "no job needs"),
        ("SelectType = select/linear", "shared nodes", State.WARNING, "a whole node"),
        ("SelectTypeParameters = CR_CORE", "memory", State.WARNING, "not given out"),
        ("DefMemPerCPU = UNLIMITED", "memory", State.WARNING, "all of its node's"),
        ("ProctrackType = proctrack/linuxproc", "confinement", State.WARNING, "linuxproc"),
        ("ConstrainDevices = no", "confinement", State.WARNING, "ConstrainDevices=no"),
        ("FederationParameters = fed_display", "federation", State.WARNING, "fed_display"),
        ("SlurmUser = slurmadm(990)", "operator", State.WARNING, "not SlurmUser (slurmadm)"),
    ],
)
def test_a_setting_is_told(line: str, check: str, state: State, found: str) -> None:
    finding = findings(line)[check]
    assert finding.state is state
    assert found in finding.found
    assert (finding.next_step == "") is (state is State.OK)


def test_hidden_jobs_need_an_operator() -> None:
    without = findings("PrivateData = jobs", operator="")
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
    finding = findings(gres=gres)["GPUs"]
    assert finding.state is state
    assert found in finding.found


def test_a_slurm_that_does_not_answer_is_one_failure(tmp_path: Path) -> None:
    (line,) = checks.asked(str(tmp_path / "slurm.conf"), str(tmp_path), "slurm")
    assert line.finding.state is State.FAILED
    assert "scontrol" in line.finding.found
