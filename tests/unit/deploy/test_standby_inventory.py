"""What hosts are told of the hub where several machines may run it."""

import json
import re
import shutil
from pathlib import Path

import inventory
import pytest

from tests import roles

VALIDATE = roles.ROLES / "doctor/tasks/validate.yml"
MOVING = "192.0.2.40"
ONE = {"portal1": {"ansible_host": "192.0.2.10"}}
TWO = ONE | {"portal2": {"ansible_host": "192.0.2.13"}}
SAID = re.compile(r"msg: (\S+)$", re.MULTILINE)


def told(folder: Path, name: str, portals: dict[str, dict[str, str]], **variables: str) -> set[str]:
    """Return the hub's address in a copy of an inventory, with these machines for the hub."""
    site = folder / "site"
    shutil.copytree(inventory.FOLDER / name, site)
    hosts = site / "hosts.yml"
    text = hosts.read_text()
    (line,) = re.findall(r"head_node:\n +hosts:\n( +\w+: \{ansible_host: .*\n)", text)
    ours = "".join(f"        {name}: {json.dumps(given)}\n" for name, given in portals.items())
    hosts.write_text(text.replace(line, ours))
    (site / "group_vars/all/zz_here.yml").write_text(json.dumps(variables))
    asks = [{"ansible.builtin.debug": {"msg": "{{ doctor_hub_url }}"}}]
    return set(SAID.findall(roles.played_with(folder, site, asks)))


@pytest.mark.parametrize("name", sorted(inventory.EXAMPLES))
def test_hosts_ask_the_address_that_moves(tmp_path: Path, name: str) -> None:
    assert told(tmp_path, name, TWO, portal_hub_address=MOVING) == {f"http://{MOVING}:8000"}


def test_hosts_ask_the_only_machine_by_its_name(tmp_path: Path) -> None:
    assert told(tmp_path, "attach", ONE) == {"http://portal1:8000"}


def test_a_machine_of_several_is_refused_as_where_the_hub_is(tmp_path: Path) -> None:
    urls = {
        "by_name": "http://portal1:8000",
        "by_address": "https://192.0.2.13:8000",
        "moving": f"http://{MOVING}:8000",
        "not_compared": "",
    }
    hosts = {name: {"doctor_hub_url": url} for name, url in urls.items()}
    portals = {name: {"doctor_hub_url": "", **given} for name, given in TWO.items()}
    given = {"hosts": hosts, "children": {"portal": {"hosts": portals}}}
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps({"all": given}))
    said = roles.played_with(tmp_path, file, [{"import_tasks": str(VALIDATE)}])
    refused = roles.refusals(said)
    assert refused.keys() == {"by_name", "by_address"}
    assert "portal_hub_address" in refused["by_name"]
