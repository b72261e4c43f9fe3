"""Which environments the role makes, by its settings."""

import ast
from typing import Any

import bootstrap
import jinja2
import pytest
import yaml

from tests.debian import roots

ROLE = bootstrap.DEPLOY / "ansible/roles/environments"


def known(system: str, **settings: Any) -> dict[str, Any]:
    """Return what the role knows of its environments: by its own words, as Ansible does."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701
    environment.filters |= {"bool": bool, "dict2items": _items, "items2dict": _dictionary}
    words = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    told = {**yaml.safe_load((ROLE / "defaults/main.yml").read_text()), "environments_cuda": False}
    told |= {**roots.system(system), **settings}
    for name in ("environments_asked_locks", "environments_kernel_locks", "environments_wanted"):
        told[name] = ast.literal_eval(environment.from_string(words[name]).render(told).strip())
    return told


def made(system: str, **settings: Any) -> dict[str, str]:
    """Return the lock of each framework's environment."""
    found: dict[str, str] = known(system, **settings)["environments_kernel_locks"]
    return found


def _items(given: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in given.items()]


def _dictionary(given: list[dict[str, str]]) -> dict[str, str]:
    return {item["key"]: item["value"] for item in given}


def test_horovod_and_python_2_are_made_where_they_are_asked_for_only() -> None:
    assert not {"horovod", "python2"} & made("debian-12").keys()
    asked = made("debian-12", environments_horovod=True, environments_python2=True)
    assert asked.items() >= {"horovod": "horovod", "python2": "python2"}.items()


@pytest.mark.parametrize(("version", "lock"), [(12, "horovod-cuda12"), (13, "horovod-cuda")])
def test_horovod_is_that_of_pytorchs_build(version: int, lock: str) -> None:
    gpus = {"environments_cuda": True, "environments_cuda_version": version}
    asked = made("debian-12", environments_horovod=True, **gpus)
    assert asked["horovod"] == lock
    assert asked["kernel-pytorch"] == lock.replace("horovod", "kernel-pytorch")


@pytest.mark.parametrize(("system", "left_out"), [("debian-13", "horovod"), ("el-9", "python2")])
def test_a_system_is_without_what_it_has_no_packages_for(system: str, left_out: str) -> None:
    asked = made(system, environments_horovod=True, environments_python2=True)
    assert {"horovod", "python2"} - asked.keys() == {left_out}


def test_the_sessions_environment_is_not_made_where_the_sites_own_tool_makes_it() -> None:
    ours = known("debian-12")["environments_wanted"]
    theirs = known("debian-12", environments_session="/sw/portal")["environments_wanted"]
    assert "session" in ours
    assert theirs == [name for name in ours if name != "session"]
