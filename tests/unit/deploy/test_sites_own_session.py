"""What role environments says of an environment for sessions that a site's own tool has made.

The environments are stand-ins, programs that say what an interpreter would;
`tests/site/test_attach.py` makes a real one.
"""

import tomllib
from pathlib import Path

import pytest
import yaml

from tests import roles

ROOT = roles.ROLES.parents[2]
TASKS = [{"include_role": {"name": "environments", "tasks_from": "own_session"}}]
RELEASE = tomllib.loads((ROOT / "portal/pyproject.toml").read_text())["project"]["version"]
SAY = {
    "ours": f"echo {RELEASE}",
    "older": "echo 0.0.9",
    "without": "echo \"ModuleNotFoundError: No module named 'dsportal'\" >&2; exit 1",
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each environment that is refused: each is a host's."""
    folder = tmp_path_factory.mktemp("environments")
    for name, says in SAY.items():
        program = folder / name / "bin/python"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)
    hosts = {name: {"environments_session": f"{folder}/{name}"} for name in [*SAY, "missing"]}
    # `instance_repository` follows from where Ansible's settings are.
    said = roles.refusals(roles.played(folder, hosts, {}, TASKS))
    return {name: " ".join(words.split()) for name, words in said.items()}


def test_that_of_this_release_is_well(refusals: dict[str, str]) -> None:
    assert "ours" not in refusals


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("older", "older says: 0.0.9. It"),
        ("without", "No module named"),
        ("missing", "No such file"),
    ],
)
def test_another_is_refused_with_what_it_says(
    refusals: dict[str, str], name: str, found: str
) -> None:
    assert found in refusals[name]
    assert f"It must be {RELEASE}: make it from that release" in refusals[name]


def test_one_machine_that_has_another_stops_all(tmp_path: Path) -> None:
    program = tmp_path / "older/bin/python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{SAY['older']}\n")
    program.chmod(0o755)
    stage = yaml.safe_load((ROOT / "deploy/ansible/stages/portal.yml").read_text())
    (play,) = (one for one in stage if "the site's own tool" in one["name"])
    given = {"environments_session": str(tmp_path / "older"), "portal_session_hosts": ["node"]}
    assert play.pop("hosts") == "all"
    tasks = [*play.pop("tasks"), {"debug": {"msg": "the hub changes"}}]
    said = roles.played(tmp_path, {"head": {}, "node": {}}, given, tasks, **play)
    assert roles.refusals(said).keys() == {"node"}
    assert "the hub changes" not in said


def test_it_is_named_by_a_plain_path(tmp_path: Path) -> None:
    folders = {"ours": "", "plain": "/sw/portal-0.2.0", "relative": "sw", "ending": "/sw/portal/"}
    hosts = {name: {"environments_session": folder} for name, folder in folders.items()}
    given = {"environments_wanted": [], "environments_horovod": False, "instance_repository": "/"}
    tasks = [{"import_tasks": str(roles.ROLES / "environments/tasks/validate.yml")}]
    refused = roles.refusals(roles.played(tmp_path, hosts, given, tasks))
    assert refused.keys() == {"relative", "ending"}
