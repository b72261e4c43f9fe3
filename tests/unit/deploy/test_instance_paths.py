"""Where an instance has its files is said in one place for all roles."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests import roles
from tests.roles import ROLES

FOLDERS = ("run", "etc", "state", "logs")


def texts(value: object) -> Iterator[str]:
    """Give each text in a variable's value."""
    match value:
        case str():
            yield value
        case dict() | list():
            for one in value.values() if isinstance(value, dict) else value:
                yield from texts(one)


def test_no_two_roles_say_the_same_path() -> None:
    saying = defaultdict(set)
    for file in ROLES.glob("*/*/main.yml"):
        if file.parent.name in ("defaults", "vars"):
            for text in texts(yaml.safe_load(file.read_text())):
                saying[text.strip()].add(file.parents[1].name)
    starts = tuple(f"{{{{ instance_{folder} }}}}/" for folder in FOLDERS)
    paths = {text: found for text, found in saying.items() if text.startswith(starts)}
    assert len(paths) > 20
    assert {text: found for text, found in paths.items() if len(found) > 1} == {}


def test_a_folder_whose_rules_sudo_would_pass_over_is_refused(tmp_path: Path) -> None:
    """Those of files with a dot in their names (sudoers(5), "Including other files")."""
    hosts = {
        "plain": {"instance_folder_name": "data-scientist_portal2"},
        "dotted": {"instance_folder_name": "portal.example"},
    }
    (task,) = (
        task
        for task in yaml.safe_load((ROLES / "instance/tasks/validate.yml").read_text())
        if "sudo" in task["name"]
    )
    assert list(roles.refusals(roles.played(tmp_path, hosts, {}, [task]))) == ["dotted"]
