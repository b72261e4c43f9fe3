"""What the NAS's playbook gives to the vendor's modules, beside what their documentation takes.

``arguments_of_dellemc.powerscale_3.9.1.json`` is the ``options`` of each module's DOCUMENTATION.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
ANSIBLE = ROOT / "deploy/ansible"
KNOWN = json.loads(
    (ROOT / "tests/unit/data/arguments_of_dellemc.powerscale_3.9.1.json").read_text("utf-8")
)
PREFIX = "dellemc.powerscale."


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def login(module: str) -> dict[str, Any]:
    """Return what the playbook gives to each call of a module."""
    defaults: dict[str, dict[str, Any]] = load(ANSIBLE / "nas.yml")[0]["module_defaults"]
    return defaults[PREFIX + module]


def calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the calls of the role: task, module, arguments."""
    for file in sorted((ANSIBLE / "roles/nas_setup/tasks").glob("*.yml")):
        for task in load(file):
            for key, arguments in task.items():
                if key.startswith(PREFIX):
                    yield task["name"], key.removeprefix(PREFIX), arguments


def problems(known: dict[str, Any], given: dict[str, Any], where: str = "") -> Iterator[str]:
    """Say what a module would refuse. A value with a variable in it is taken for right."""
    for name, option in known.items():
        if option.get("required") and name not in given:
            yield f"{where}{name} is missing"
    for name, value in given.items():
        if name not in known:
            yield f"{where}{name} is not known"
            continue
        choices, inner = known[name].get("choices"), known[name].get("suboptions", {})
        if isinstance(value, str) and "{{" in value:
            continue
        chosen = value if isinstance(value, list) else [value]
        if choices and any(one not in choices for one in chosen):
            yield f"{where}{name} cannot be {value}"
        for part in chosen:
            if isinstance(part, dict) and inner:
                yield from problems(inner, part, f"{where}{name}.")


@pytest.mark.parametrize(("task", "module", "arguments"), list(calls()))
def test_the_vendors_module_takes_what_it_is_given(
    task: str, module: str, arguments: dict[str, Any]
) -> None:
    assert list(problems(KNOWN[module], login(module) | arguments)) == [], task


def test_the_limits_are_arguments_of_the_quota_module() -> None:
    limit = load(ANSIBLE / "roles/nas_setup/vars/main.yml")["nas_setup_limit"]
    quota = KNOWN["smartquota"]["quota"]["suboptions"]
    assert list(problems(quota, limit | {"hard_limit_size": 1, "container": True})) == []


def test_what_a_module_does_not_know_is_found() -> None:
    given = login("nfs") | {"path": "/ifs", "state": "there", "map_root": {"usr": "nobody"}}
    assert set(problems(KNOWN["nfs"], given)) == {
        "map_root.usr is not known",
        "state cannot be there",
    }


def test_no_password_of_the_nas_is_written_down_or_shown() -> None:
    assert load(ANSIBLE / "roles/nas_setup/defaults/main.yml")["nas_setup_password"] == ""
    for file in (ANSIBLE / "roles/nas_setup/tasks").glob("*.yml"):
        for task in load(file):
            if "nas_setup_password" in json.dumps(task):
                assert task.get("no_log") is True, task["name"]
