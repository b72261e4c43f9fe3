"""Which inventory is meant, and whether it is a site's own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import bootstrap
import inventory
import pytest
import yaml

ROLE = bootstrap.DEPLOY / "ansible/roles/portal"


def test_the_example_itself_is_refused_with_file_and_line() -> None:
    folder = inventory.find("example")
    with pytest.raises(inventory.InventoryError) as refusal:
        inventory.check(folder)
    assert "hosts.yml:11: head: {ansible_host: 192.0.2.10}" in str(refusal.value)
    assert "accounts.yml:" in str(refusal.value)


def test_a_copy_with_own_values_is_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    shutil.copytree(inventory.FOLDER / "example", folder)
    for file in folder.rglob("*.yml"):
        text = file.read_text()
        for theirs, ours in (("192.0.2.", "10.1.2."), ("example.org", "uni.test")):
            text = text.replace(theirs, ours)
        file.write_text(text.replace("dc=example,dc=org", "dc=uni,dc=test"))
    inventory.check(inventory.find(str(folder)))


def test_a_placeholder_in_a_comment_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all: {}  # such as 192.0.2.1\n# example.org\n")
    inventory.check(tmp_path)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        inventory.InventoryError, match=r"name one of all_in_one, test, or a folder"
    ):
        inventory.find("no-such-site")


@pytest.mark.parametrize("name", inventory.names())
def test_what_is_deployed_here_has_no_placeholder(name: str) -> None:
    inventory.check(inventory.find(name))


ONE_HOST = """
all:
  children:
    portal: {hosts: {head: {ansible_connection: local}}}
    slurm_node: {hosts: {head: }}
"""
HEAD_AND_NODES = """
all:
  children:
    portal: {hosts: {head: {ansible_connection: local}}}
    slurm_node: {hosts: {head: , compute1: }}
"""
NO_NODES = """
all:
  children:
    portal: {hosts: {head: {ansible_connection: local}}}
"""


@pytest.mark.parametrize(
    ("hosts", "is_on"), [(ONE_HOST, False), (HEAD_AND_NODES, True), (NO_NODES, False)]
)
def test_sessions_on_other_machines_are_spoken_to_by_tls(
    tmp_path: Path, hosts: str, is_on: bool
) -> None:
    (tmp_path / "hosts.yml").write_text(hosts)
    assert default_of("portal_internal_ssl", tmp_path) is is_on


def test_the_example_leaves_it_at_that() -> None:
    assert default_of("portal_internal_ssl", inventory.FOLDER / "example") is True


def default_of(variable: str, folder: Path) -> object:
    """Have Ansible work out a default of the role in an inventory."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    show = f"msg={defaults[variable]}"
    hosts = json.dumps({"portal_session_hosts": defaults["portal_session_hosts"]})
    ansible = [str(Path(sys.executable).with_name("ansible")), "-i", str(folder / "hosts.yml")]
    done = subprocess.run(
        [*ansible, "head", "-m", "ansible.builtin.debug", "-a", show, "-e", hosts],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=bootstrap.DEPLOY / "ansible",
    )
    answer = yaml.safe_load(done.stdout.partition("=>")[2])
    return answer["msg"]
