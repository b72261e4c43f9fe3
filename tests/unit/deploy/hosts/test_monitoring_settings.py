"""Whom Prometheus asks, by which rules, where it writes, and which settings are refused."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

from tests import roles

ROLE = roles.ROLES / "monitoring"
# A whole cluster with a standby: Slurm's controller is on neither of the portal's machines.
CLUSTER = {
    "portal": ["portal1", "portal2"],
    "slurm_controller": ["control"],
    "monitoring": ["control", "portal1", "portal2", "node"],
}
SAID = re.compile(r"^ok: \[(\w+)\] =>\s+msg: (.*)$", re.M)


def played(
    folder: Path,
    hosts: dict[str, dict[str, object]],
    show: str = "",
    *first: object,
) -> str:
    """Have the role check the settings of a cluster's machines; return what is said.

    ``first``: tasks of the role before something is shown.
    """
    groups = {name: {"hosts": dict.fromkeys(members)} for name, members in CLUSTER.items()}
    here = {"instance_machine": {"stdout_lines": ["a name", "no systemd"]}}
    file = folder / "hosts.json"
    file.write_text(json.dumps({"all": {"hosts": hosts, "children": groups}}))
    tasks = [
        {"include_role": {"name": "monitoring", "tasks_from": "validate", "public": True}},
        *first,
        {"debug": {"msg": show}},
    ]
    return roles.played_with(folder, file, tasks, vars=here)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of machines, of which some have rules of the site's own."""
    hosts: dict[str, dict[str, object]] = {
        "control": {"monitoring_portal_hosts": []},
        "portal1": {"monitoring_rule_files": ["/site/alerts.yml"]},
        "portal2": {"monitoring_rule_files": ["/site/prometheus.yml"]},
        "node": {"monitoring_rule_files": ["/site/more.yml"]},
    }
    show = (
        "{{ (monitoring_slurm_hosts + (monitoring_rules | map('basename') | list)) | join(' ') }}"
    )
    return played(tmp_path_factory.mktemp("monitoring"), hosts, show)


def test_slurm_is_watched_where_its_controller_is_not_the_portals(said: str) -> None:
    assert dict(SAID.findall(said))["node"] == "portal1 alerts.yml hosts.yml more.yml"


def test_where_no_portal_is_watched_no_rule_misses_it(said: str) -> None:
    assert dict(SAID.findall(said))["control"] == "hosts.yml"


def test_what_runs_on_another_host_now_ends_here(tmp_path: Path) -> None:
    hosts: dict[str, dict[str, object]] = {
        "node": {"monitoring_dcgm": True, "monitoring_dcgm_hosts": ["node"]}
    }
    told = dict(SAID.findall(played(tmp_path, hosts, "{{ monitoring_ended | join(' ') }}")))
    assert told["control"] == "slurm-exporter dcgm-exporter"
    assert told["portal1"] == "dcgm-exporter prometheus alertmanager"
    assert told["node"] == "slurm-exporter prometheus alertmanager"


def test_slurms_exporter_runs_by_the_hubs_interpreter_that_an_earlier_run_has_made(
    tmp_path: Path,
) -> None:
    """A run of the stage `monitoring` alone knows no environments."""
    (tmp_path / "portal.json").write_text('{"hub": {"python": "/opt/hub/bin/python"}}')
    tasks = yaml.safe_load((ROLE / "tasks/main.yml").read_text())
    asking = [task for task in tasks if "ansible.builtin.slurp" in task]
    hosts: dict[str, dict[str, object]] = {
        "portal1": {"doctor_folder": str(tmp_path)},
        "portal2": {"doctor_folder": str(tmp_path), "monitoring_slurm_hosts": []},
        "node": {"doctor_folder": "/nowhere", "monitoring_slurm_hosts": ["node"]},
    }
    show = (
        "{{ monitoring_services | selectattr('name', 'eq', 'slurm-exporter')"
        " | map(attribute='command') | map('first') | join }}."
    )
    told = dict(SAID.findall(played(tmp_path, hosts, show, *asking)))
    assert told == {"control": ".", "portal1": "/opt/hub/bin/python.", "portal2": ".", "node": "."}


def test_the_portal_is_asked_where_it_is(tmp_path: Path) -> None:
    elsewhere: dict[str, object] = {"monitoring_portal_hosts": ["portal1"]}
    # Of each host, which stands for a site: its settings, and where Prometheus asks.
    sites: dict[str, tuple[dict[str, object], str]] = {
        "same": ({**elsewhere, "monitoring_server": "portal1"}, "127.0.0.1"),
        "other": (elsewhere, "10.1.0.1"),
        "standby": ({"portal_hub_address": "10.1.0.9"}, "10.1.0.9"),
        "bound": ({**elsewhere, "portal_address": "192.0.2.1"}, "192.0.2.1"),
        "wide": ({**elsewhere, "portal_address": "::"}, "10.1.0.1"),
        "named": ({**elsewhere, "portal_public_name": "portal.site.test"}, "portal.site.test"),
        "none": ({"monitoring_portal_hosts": []}, "127.0.0.1"),
    }
    hosts = {name: variables for name, (variables, _) in sites.items()}
    hosts["portal1"] = {"ansible_host": "10.0.0.1", "instance_address": "10.1.0.1"}
    told = dict(SAID.findall(played(tmp_path, hosts, "{{ monitoring_portal_url }}")))
    asked = {name: f"http://{address}:8000" for name, (_, address) in sites.items()}
    assert {name: told.get(name) for name in sites} == asked


def test_a_file_that_would_take_the_place_of_the_portals_is_refused(said: str) -> None:
    refused = roles.refusals(said)
    assert refused.keys() == {"portal1", "portal2"}
    assert "they are /site/alerts.yml." in " ".join(refused["portal1"].split())


def test_a_port_that_one_host_alone_has_is_refused(tmp_path: Path) -> None:
    refused = roles.refusals(played(tmp_path, {"node": {"monitoring_node_port": 9101}}))
    words = " ".join(refused["control"].split())
    assert "monitoring_node_port is 9100 on control, and 9101 on other hosts" in words


def test_the_folder_into_which_root_writes_is_in_none_of_another_user() -> None:
    # Whoever can put a link there has root write elsewhere.
    tasks = yaml.safe_load((ROLE / "tasks/main.yml").read_text())
    [made] = [task for task in tasks if "{{ monitoring_textfiles }}" in task.get("loop", ())]
    assert "{{ monitoring_state }}" in made["loop"]
    assert made["ansible.builtin.file"]["owner"] == "root"


def test_grafana_keeps_the_data_source_that_is_the_sites_default() -> None:
    # With two that say so Grafana does not start.
    text = (ROLE / "templates/datasources.yml.j2").read_text()
    given = {"monitoring_server_address": "127.0.0.1", "monitoring_prometheus_port": 9090}
    environment = Environment()  # noqa: S701  # YAML
    # Ansible's, for what is not asked for here.
    environment.filters["ipwrap"] = str
    [source] = yaml.safe_load(environment.from_string(text).render(given))["datasources"]
    assert not source.get("isDefault")
