"""Where jobs run, the builds for NVIDIA's GPUs find what ``torch.compile`` compiles with."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import bootstrap
import pytest
import yaml

from tests import roles
from tests.debian import roots

INVENTORIES = bootstrap.DEPLOY / "ansible/inventories"
SYSTEM = roots.system("debian-12")
COMPILER = set(SYSTEM["packages_of"]["modules_compiler"])
# In the place of the roles that know the system, and that install packages.
STAND_INS = {
    "machine": [{"set_fact": {**SYSTEM, "packages": {}, "cacheable": True}}],
    # What the module system's role does afterwards is of no interest here.
    "main": [{"debug": {"msg": "installs {{ packages_names | join(' ') }}"}}, {"meta": "end_host"}],
}


@dataclass(frozen=True)
class Said:
    """What a run of some roles says, which changes nothing."""

    installed: dict[str, set[str]]
    """By the module system's role, on each host."""
    for_gpus: dict[str, bool]
    """Whether environments of that host would be the builds for GPUs."""


def said_by(folder: Path, inventory: Path, *options: str) -> Said:
    stand_in = folder / "roles/packages/tasks"
    stand_in.mkdir(parents=True)
    for name, does in STAND_INS.items():
        (stand_in / f"{name}.yml").write_text(yaml.safe_dump(does))
    tasks: list[object] = [
        {"include_role": {"name": "instance", "tasks_from": "machine"}},
        {"include_role": {"name": "environments", "tasks_from": "validate", "public": True}},
        {"debug": {"msg": "for_gpus {{ environments_cuda }}"}},
        {"include_role": {"name": "modules"}, "when": "'modules' in group_names"},
    ]
    known: dict[str, object] = {"environments_paths": {}}
    said = roles.played_with(folder, inventory, tasks, "--check", *options, vars=known)
    found = re.findall(r"^ok: \[(\w+)\] => \n +msg: (\w+) (.*(?:\n {8}.*)*)", said, re.M)
    result = Said({}, {})
    for host, what, words in found:
        if what == "installs":
            result.installed[host] = set(words.split())
        else:
            result.for_gpus[host] = words == "True"
    assert result.installed, said
    assert result.for_gpus, said
    return result


def unsaid(folder: Path, inventory: str, **hosts: object) -> Path:
    """Copy an inventory which then says nothing of GPUs, with hosts in groups besides its own."""
    copy = folder / "site"
    shutil.copytree(INVENTORIES / inventory, copy)
    settings = copy / "group_vars/all/portal.yml"
    text, count = re.subn(r"^environments_cuda: .*\n", "", settings.read_text(), flags=re.M)
    assert count == 1
    settings.write_text(text)
    given = yaml.safe_load((copy / "hosts.yml").read_text())
    for group, names in hosts.items():
        given["all"]["children"][group] = {"hosts": names}
    (copy / "hosts.yml").write_text(yaml.safe_dump(given))
    return copy / "hosts.yml"


@pytest.mark.parametrize(("inventory", "head"), [("example", "head"), ("attach", "portal1")])
def test_compute_hosts_get_a_compiler_with_the_builds_for_gpus(
    tmp_path: Path, inventory: str, head: str
) -> None:
    said = said_by(tmp_path, INVENTORIES / inventory)
    assert said.installed.keys() == {head, "compute1", "compute2"}
    for packages in said.installed.values():
        assert packages == COMPILER | set(SYSTEM["packages_of"]["modules"])
    assert said.for_gpus[head]


# Of one host, whose answer the others cannot change.
ONE = "--limit=compute1"


@pytest.mark.skipif(Path("/usr/bin/nvidia-smi").exists(), reason="this machine has GPUs")
def test_without_a_word_on_gpus_a_host_without_the_driver_is_not_made_for_them(
    tmp_path: Path,
) -> None:
    said = said_by(tmp_path, unsaid(tmp_path, "attach"), ONE)
    assert said.for_gpus == {"compute1": False}
    assert not said.installed["compute1"] & COMPILER


def test_hosts_that_the_inventory_has_in_group_nvidia_are_a_word_on_gpus(tmp_path: Path) -> None:
    said = said_by(tmp_path, unsaid(tmp_path, "example", nvidia={"compute2": None}), ONE)
    assert said.for_gpus == {"compute1": True}
    assert said.installed["compute1"] >= COMPILER
