"""What `deploy/remove` asks before anything goes."""

import json
import runpy
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import bootstrap
import pytest
import yaml

from tests import roles
from tests.systemctl import Systemctl

ROOT = Path(__file__).resolve().parents[4]


class Terminal(StringIO):
    """Somebody who types an answer."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy/remove"))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, bool]]:
    """Return the variables of each run, which does nothing."""
    runs: list[dict[str, bool]] = []

    def play(_playbook: str, _inventory: str, arguments: list[str]) -> int:
        runs.append(json.loads(arguments[0].removeprefix("--extra-vars=")))
        return 1

    monkeypatch.setattr(bootstrap, "play", play)
    monkeypatch.setattr(bootstrap, "CACHE", tmp_path)
    return runs


@pytest.mark.parametrize(
    ("options", "typed", "keeps"),
    [
        (["--keep-data"], None, True),
        (["--delete-data"], None, False),
        ([], "keep\n", True),
        ([], "delete\n", False),
    ],
)
def test_data_stay_or_go_as_was_said(
    options: list[str],
    typed: str | None,
    keeps: bool,
    script: dict[str, Any],
    played: list[dict[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy/remove", "test", *options])
    monkeypatch.setattr(sys, "stdin", StringIO() if typed is None else Terminal(typed))
    assert script["main"]() == 1
    assert played == [{"instance_keep": False, "instance_keep_data": keeps}]


@pytest.mark.parametrize("stdin", [StringIO("delete\n"), Terminal("y\n"), Terminal("")])
def test_without_a_clear_answer_nothing_is_changed(
    stdin: StringIO,
    script: dict[str, Any],
    played: list[dict[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["deploy/remove", "test"])
    monkeypatch.setattr(sys, "stdin", stdin)
    assert script["main"]() == 2
    assert played == []


def test_tools_stay_after_a_failure(
    script: dict[str, Any],
    played: list[dict[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").touch()
    monkeypatch.setattr(sys, "argv", ["deploy/remove", "test", "--keep-data"])
    assert script["main"]() == 1
    assert (tmp_path / "tools").exists()


OTHERS = {
    "data-scientist-portal-two": False,
    "data-scientist-portal.replaced-20261130T080000Z": True,
    "portal-three/doctor.d": False,
    "portal-three.replaced-20261130T080000Z/doctor.d": True,
}
"""Folders in /etc, and whether an instance is alone beside them: a restore puts things aside."""


@pytest.mark.parametrize(("name", "is_alone"), OTHERS.items())
def test_what_a_restore_has_put_aside_is_no_other_instance(
    name: str,
    is_alone: bool,
    script: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / name).mkdir(parents=True)
    monkeypatch.setitem(script["others_here"].__globals__, "Path", lambda _: tmp_path)
    assert script["others_here"]() is not is_alone


def test_what_instances_share_goes_with_the_last_of_them(tmp_path: Path) -> None:
    *_, task = yaml.safe_load((roles.ROLES / "instance/tasks/erase.yml").read_text())
    hosts = {}
    for number, name in enumerate(OTHERS):
        (tmp_path / str(number)).mkdir()
        hosts[f"host{number}"] = {
            "instance_others": {"matched": 1, "files": [{"path": f"/etc/{name}"}]},
            "instance_shared": [str(tmp_path / str(number))],
        }
    said = roles.played(tmp_path, hosts, {}, [task])
    stays = [(tmp_path / str(number)).exists() for number in range(len(OTHERS))]
    assert stays == [not is_alone for is_alone in OTHERS.values()], said


@pytest.mark.parametrize("other", ["", "data-scientist-portal-other"])
def test_the_last_instance_of_a_machine_gives_the_distributions_units_back(
    other: str, tmp_path: Path
) -> None:
    """Another one has services in their place, which they would meet after a boot."""
    systemctl = Systemctl(tmp_path, "masked", "inactive", "masked")
    (tmp_path / "etc" / other).mkdir(parents=True)
    tasks = yaml.safe_load((roles.ROLES / "instance/tasks/erase.yml").read_text())
    # Without those that remove something of this machine.
    (find,) = (task for task in tasks if "ansible.builtin.find" in task)
    find["ansible.builtin.find"]["paths"] = str(tmp_path / "etc")
    units = [task for task in tasks if "masked" in task.get("ansible.builtin.systemd_service", {})]
    in_order = [task for task in tasks if task in (find, *units)]
    given = {
        "instance_has_systemd": True,
        "instance_package_units": {"munge": "munge"},
        "group_names": ["munge"],
    }
    told = [{**task, "vars": given | task.get("vars", {})} for task in in_order]
    environment = {"PATH": systemctl.path}
    said = roles.played(tmp_path, {"here": {}}, {}, told, environment=environment)
    assert systemctl.told() == ([] if other else ["unmask munge.service"]), said
