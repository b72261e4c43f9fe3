"""What the units of services hold, which everybody on a host can read."""

import re

import bootstrap

ROLES = bootstrap.DEPLOY / "ansible/roles"
RESTART_ON = re.compile(r"restart_on: (.*(?:\n {10,}.*)*)")


def test_no_unit_has_a_hash_of_what_is_written_for_it() -> None:
    """The file of nslcd has the password that reads the directory: a hash lets it be guessed."""
    found = {
        (file.parent.parent.name, told)
        for file in ROLES.rglob("*.yml")
        for told in RESTART_ON.findall(file.read_text())
    }
    assert len(found) > 10
    assert [told for told in found if "lookup(" in told[1]] == []
