"""Which inventory is meant, and whether it is a site's own."""

import shutil
from pathlib import Path

import inventory
import pytest


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
