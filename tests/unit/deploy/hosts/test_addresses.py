"""At which addresses a site's machines reach each other, where Ansible's way is another one."""

import json

import pytest
from jinja2 import Environment

from tests import roles

HOSTS = {
    "head": {"ansible_host": "10.0.0.1"},
    "node": {"ansible_host": "10.0.0.2", "instance_address": "10.1.0.2"},
    "watch": {"ansible_host": "10.0.0.3"},
    # By name for Ansible alone.
    "named": {"ansible_host": "named.example.org", "instance_address": "10.1.0.4"},
}
GROUPS = {
    "portal": ["head"],
    "slurm_node": ["node", "named"],
    "monitoring": ["watch", "head", "node"],
    "nfs_client": ["node", "named", "watch"],
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return whom the firewall of one of them would let in, and who may mount its exports."""
    folder = tmp_path_factory.mktemp("addresses")
    children = {name: {"hosts": dict.fromkeys(hosts)} for name, hosts in GROUPS.items()}
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": HOSTS, "children": children}}))
    content = "{{ firewall_sets | combine({'nfs': nfs_server_clients}) | to_json }}"
    told = {"content": content, "dest": str(folder / "sets")}
    ports = {"slurm_controller_port": 6817, "slurm_node_port": 6818, "instance_name": "portal"}
    packages: dict[str, object] = {"packages_of": {"nfs_server": []}}
    tasks = [
        {"include_role": {"name": "firewall", "tasks_from": "validate", "public": True}},
        {"include_role": {"name": "nfs_server", "tasks_from": "validate", "public": True}},
        {"copy": told, "when": "inventory_hostname == 'node'"},
    ]
    here = {**ports, **packages, "instance_etc": str(folder), "instance_is_local": True}
    output = roles.played_with(folder, inventory, tasks, vars=here)
    assert (folder / "sets").exists(), output
    return dict(json.loads((folder / "sets").read_text()))


def test_the_firewall_knows_machines_by_the_addresses_between_them(
    said: dict[str, list[str]],
) -> None:
    assert (said["head"], said["nodes"]) == (
        ["10.0.0.1"],
        # keepalived speaks at the one, Slurm at the other.
        ["10.1.0.2", "10.0.0.2", "10.1.0.4"],
    )


def test_the_firewall_lets_in_a_monitoring_server_that_is_neither_head_nor_node(
    said: dict[str, list[str]],
) -> None:
    assert said["monitoring"] == ["10.0.0.3"]


def test_the_exports_are_for_machines_at_the_addresses_that_they_come_from(
    said: dict[str, list[str]],
) -> None:
    assert said["nfs"] == ["10.1.0.2", "10.0.0.2", "10.1.0.4", "10.0.0.3"]


def test_prometheus_asks_at_the_addresses_between_machines() -> None:
    environment = Environment()  # noqa: S701  # YAML
    # Ansible's, for what is not asked for here.
    environment.filters.update(dict.fromkeys(("basename", "urlsplit"), str))
    template = (roles.ROLES / "monitoring/templates/prometheus.yml.j2").read_text()
    text = environment.from_string(template).render(
        hostvars=HOSTS, groups=GROUPS, monitoring_node_port=9100
    )
    for target in ("10.0.0.1:9100", "10.1.0.2:9100", "10.0.0.3:9100"):
        assert f'targets: ["{target}"]' in text
