"""What role packages says of each system: the same things, in words that others know."""

import bootstrap
import pytest
import yaml

from tests import roles
from tests.debian import roots

SYSTEMS = sorted(
    file.stem for file in (bootstrap.DEPLOY / "ansible/roles/packages/vars/systems").glob("*.yml")
)
TRIED = roots.system("debian-12")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_says_what_the_first_one_does(name: str) -> None:
    said = roots.system(name)
    assert said.keys() == TRIED.keys()
    for topic in ("packages_of", "packages_paths", "packages_versions"):
        assert said[topic].keys() == TRIED[topic].keys()


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_a_system_has_no_packages_for_is_one_of_the_locks(name: str) -> None:
    locks = {file.stem for file in bootstrap.LOCKS.glob("*.txt")}
    assert set(roots.system(name)["packages_lacking_environments"]) <= locks


def test_debian_13_makes_some_of_the_frameworks_by_default() -> None:
    file = bootstrap.DEPLOY / "ansible/roles/environments/defaults/main.yml"
    asked = yaml.safe_load(file.read_text())["environments_kernels"]
    lacking = roots.system("debian-13")["packages_lacking_environments"]
    assert set(asked) - set(lacking) == {"kernel-tensorflow", "kernel-jax"}


# Ansible's facts on Rocky Linux, as recorded for version 8 in https://github.com/ansible/ansible,
# test/units/module_utils/facts/system/distribution/fixtures; and of SELinux, where it is on.
ROCKY = {
    "distribution": "Rocky",
    "distribution_version": "9.4",
    "distribution_major_version": "9",
    "os_family": "RedHat",
    "selinux": {"status": "enabled", "mode": "enforcing", "policyvers": 33, "type": "targeted"},
    "packages": {},
}
DEBIAN = {
    "distribution": "Debian",
    "distribution_version": "12.11",
    "distribution_major_version": "12",
    "os_family": "Debian",
    "selinux": {"status": "Missing selinux Python library"},
    "packages": {"sudo": [], "nginx": []},
}
# Neither dnf nor SELinux is here: who would call them fails, and says so.
PARTS: dict[str, list[object]] = {
    "packages": [
        {
            "include_role": {"name": "packages"},
            "vars": {"packages_names": "{{ packages_of.portal }}"},
        }
    ],
    "labels": [
        {
            "include_role": {"name": "instance", "tasks_from": "labels"},
            "vars": {"instance_labelled": ["/opt/data-scientist-portal/environments"]},
        }
    ],
    "nfs_homes": [{"include_role": {"name": "instance", "tasks_from": "nfs_homes"}}],
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each part of the deployment says on each of the two: a host for each, in one run."""
    hosts = {
        f"{name}_{part}": {"told": facts, "part": part}
        for name, facts in (("rocky", ROCKY), ("debian", DEBIAN))
        for part in PARTS
    }
    tasks: list[object] = [
        {"set_fact": {key: f"{{{{ told.{key} }}}}" for key in ROCKY} | {"cacheable": True}},
        {"include_role": {"name": "packages", "tasks_from": "names", "public": True}},
        {"debug": {"msg": "{{ packages_of.environments | join(' ') }}"}},
    ]
    for part, own in PARTS.items():
        tasks.append({"block": own, "when": f"part == '{part}'"})
    folder = tmp_path_factory.mktemp("systems")
    return roles.refusals(roles.played(folder, hosts, {}, tasks))


def test_a_system_of_els_kind_gets_its_packages_from_dnf(said: dict[str, str]) -> None:
    assert "debian_packages" not in said
    assert "dnf" in said["rocky_packages"]


def test_where_selinux_is_on_it_is_told_of_programs_and_homes(said: dict[str, str]) -> None:
    assert "/usr/sbin/restorecon" in said["rocky_labels"]
    assert "/usr/sbin/getsebool" in said["rocky_nfs_homes"]
    assert not {"debian_labels", "debian_nfs_homes"} & said.keys()
