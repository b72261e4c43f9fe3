"""At which addresses a site's machines reach each other, and how IPv6's are written.

Ansible's own way to a machine may be another one.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
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

IPV6 = "2001:db8::1"
# Of each role, what has an address in it.
WITH_ADDRESSES = {
    "portal": (
        "{{ portal_hub_url }}",
        "{{ portal_url }}",
        "{{ portal_base_settings.hub.public_url }}",
        "{{ portal_base_settings.hub.api_url }}",
        "{{ portal_base_settings.cluster.url }}",
        "{{ portal_mlflow_hosts }}",
        "{{ lookup('template', 'portal/templates/nginx.conf.j2') }}",
    ),
    "monitoring": (
        "{{ monitoring_portal_url }}",
        "{{ monitoring_node_command }}",
        "{{ monitoring_server_services[0].command }}",
        "{{ monitoring_server_services[1].command }}",
        "{{ lookup('template', 'monitoring/templates/prometheus.yml.j2') }}",
        "{{ lookup('template', 'monitoring/templates/datasources.yml.j2') }}",
    ),
    "directory": ("{{ directory_user_address }}/",),
    "nas_mounts": ("{{ nas_mounts_first.source }}", "{{ nas_mounts_data[0].source }}"),
    "nfs_client": ("{{ lookup('template', 'nfs_client/templates/folder.mount.j2') }}",),
}
ADDRESSES = (
    "portal_address",
    "portal_hub_address",
    "monitoring_address",
    "monitoring_server_address",
    "directory_address",
    "nas_mounts_address",
    "nfs_client_server",
)
AROUND: dict[str, object] = {
    "nas_mounts_data_addresses": [IPV6],
    "instance_repository": "/src",
    "instance_etc": "/etc/portal",
    "instance_state": "/var/lib/portal",
    "instance_run": "/run/portal",
    "instance_has_systemd": True,
    "ansible_managed": "",
    "item": {"path": "/home", "options": "rw"},
}
IPWRAP = roles.loaded(roles.ROLES.parent / "plugins/filter/addresses.py").ipwrap


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
    environment.filters["ipwrap"] = IPWRAP
    # Ansible's, for what is not asked for here.
    environment.filters.update(dict.fromkeys(("basename", "urlsplit"), str))
    template = (roles.ROLES / "monitoring/templates/prometheus.yml.j2").read_text()
    text = environment.from_string(template).render(
        hostvars=HOSTS, groups=GROUPS, monitoring_node_port=9100
    )
    for target in ("10.0.0.1:9100", "10.1.0.2:9100", "10.0.0.3:9100"):
        assert f'targets: ["{target}"]' in text


def test_names_and_addresses_that_are_wrapped_stay_as_they_are() -> None:
    assert IPWRAP(IPV6) == f"[{IPV6}]"
    for address in ("10.0.0.1", "head.example.org", f"[{IPV6}]"):
        assert IPWRAP(address) == address


def test_an_ipv6_address_is_in_brackets_before_a_port_or_a_path(tmp_path: Path) -> None:
    given: dict[str, object] = {}
    for role in WITH_ADDRESSES:
        for part in ("defaults", "vars"):
            given |= yaml.safe_load((roles.ROLES / role / part / "main.yml").read_text())
    given |= dict.fromkeys(ADDRESSES, IPV6) | AROUND
    (tmp_path / "templates").symlink_to(roles.ROLES)
    texts = [text for every in WITH_ADDRESSES.values() for text in every]
    told = {"content": "{{ texts | to_json }}", "dest": str(tmp_path / "texts")}
    here: dict[str, object] = {"hosts": {"here": {}}}
    children = dict.fromkeys(("portal", "monitoring"), here)
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps({"all": {**here, "children": children, "vars": given}}))
    said = roles.played_with(tmp_path, file, [{"copy": told}], vars={"texts": texts})
    assert (tmp_path / "texts").exists(), said
    for expression, text in zip(texts, json.loads((tmp_path / "texts").read_text()), strict=True):
        assert f"[{IPV6}]:" in str(text), expression
        assert f"{IPV6}:" not in str(text), expression


def test_no_role_writes_an_address_before_a_port_as_it_is() -> None:
    as_it_is = re.compile(r"_(?:address|host|server)(?: }}| ~ '):.*")
    files = [*roles.ROLES.glob("*/*/*.yml"), *roles.ROLES.glob("*/*/*.j2")]
    assert [found[0] for file in files for found in as_it_is.finditer(file.read_text())] == []
