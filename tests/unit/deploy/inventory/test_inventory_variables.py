"""An inventory's variables are those of the roles: others are refused before anything changes."""

import json
import os
import re
import subprocess
from pathlib import Path

import bootstrap
import pytest
import roles_reference
import yaml

from dsportal.settings_file import check_part

ANSIBLE = bootstrap.DEPLOY / "ansible"
# Made of the roles' defaults and argument specs in the commit fa6a669.
BEFORE = Path(__file__).parents[2] / "data/variables_of_portal_0.1.txt"
KNOWN = {
    name for role in roles_reference.ROLES.iterdir() for name in roles_reference.defaults(role)
}
PREFIXES = tuple(f"{role.name}_" for role in roles_reference.ROLES.iterdir())
INVENTORIES = (*(ANSIBLE / "inventories").iterdir(), bootstrap.REPOSITORY / "tests/site/inventory")


def former() -> dict[str, str]:
    """Return what is said of variables of earlier releases."""
    variables = yaml.safe_load((ANSIBLE / "roles/instance/vars/main.yml").read_text())
    return dict(variables["instance_former_variables"])


def asked(folder: Path, **variables: object) -> tuple[int, str]:
    """Return how the first stage of a deployment ends, and what it says."""
    hosts = {"head": {"slurm_conf_dir": "/etc/slurm"}, "node": variables}
    given = {"ansible_connection": "local", "site_own": 1, "vault_x": "{{ what_is_not_there }}"}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": given}}))
    program = bootstrap.deploy_environment() / "bin/ansible-playbook"
    done = subprocess.run(
        [program, "-i", folder / "hosts.json", "stages/variables.yml", "--limit=head"],
        cwd=ANSIBLE,
        env={**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_each_variable_of_0_1_is_there_or_refused_with_what_to_do() -> None:
    assert set(BEFORE.read_text().split()) - KNOWN == former().keys()


def test_what_is_to_be_set_instead_is_a_variable() -> None:
    for said in former().values():
        assert said.split()[:1] == ["set"]
        assert said.split()[1] in KNOWN


def test_former_and_misspelt_variables_are_refused_by_name_all_at_once(tmp_path: Path) -> None:
    status, said = asked(tmp_path, environments_cuda_kernels=[], portal_prot=8000, packages_x=1)
    assert status == 2
    assert "- environments_cuda_kernels: set environments_cuda_builds instead" in said
    assert "- portal_prot: is it misspelt?" in said
    # Of a role without variables.
    assert "- packages_x: is it misspelt?" in said
    assert "slurm_conf_dir" not in said
    assert "site_own" not in said


def test_variables_of_roles_and_of_the_sites_own_are_not_refused(tmp_path: Path) -> None:
    status, said = asked(tmp_path, portal_port=8000, service_log_bytes=1)
    assert status == 0, said


def test_it_is_the_first_thing_that_any_stage_does() -> None:
    first = yaml.safe_load((ANSIBLE / "site.yml").read_text())[0]
    assert (first["import_playbook"], first["tags"]) == ("stages/variables.yml", ["always"])


@pytest.mark.parametrize("folder", INVENTORIES, ids=lambda folder: folder.name)
def test_our_inventories_set_variables_of_roles(folder: Path) -> None:
    found = {name for file in folder.rglob("*.yml") for name in yaml.safe_load(file.read_text())}
    assert {name for name in found if name.startswith(PREFIXES)} <= KNOWN


def test_the_settings_that_comments_show_are_settings() -> None:
    files = [*ANSIBLE.rglob("*.yml"), *(bootstrap.REPOSITORY / "docs").rglob("*.md")]
    shown = {
        example
        for file in files
        for example in re.findall(
            r"portal_settings: (\{\w+: \{.*\}\})$", file.read_text(), re.MULTILINE
        )
    }
    assert len(shown) >= 3
    for example in shown:
        check_part(json.dumps(yaml.safe_load(example)))
