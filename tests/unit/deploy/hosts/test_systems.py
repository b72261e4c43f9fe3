"""What role packages says of each system: the same things, in words that others know."""

import bootstrap
import pytest
import yaml

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
