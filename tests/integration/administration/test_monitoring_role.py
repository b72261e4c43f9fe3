"""Prometheus, Alertmanager and the exporters, as the deployment starts and configures them."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests import faults, instance
from tests.instance import SETTINGS, USERS, Instance, trust
from tests.servers.prometheus import MONITORING, Prometheus
from tests.waiting import until

# An instance of its own, which watches the test instance: Prometheus asks every second, and the
# other tests count what the hub asks Slurm.
FOLDER = SETTINGS.parent.with_name(f"{SETTINGS.parent.name}-watch") / "monitoring"
HOSTS_TEST = Path(__file__).parents[2] / "monitoring" / "hosts_test.yml"
AT_ONCE = HOSTS_TEST.with_name("at_once.yml")
PROMETHEUS, ALERTMANAGER, NODE, SLURM = 13, 14, 15, 16


def port_of(portal: Instance, more: int) -> int:
    """Give a port of the role's, counted from the portal's."""
    return (urlsplit(portal.url).port or 0) + more


@pytest.fixture(scope="module")
def deployed(portal: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("watch")
    host = {"ansible_connection": "local"}
    content = {
        "all": {"hosts": {"watch": host}, "children": {"monitoring": {"hosts": {"watch": {}}}}}
    }
    (folder / "hosts.yml").write_text(json.dumps(content), encoding="utf-8")
    (folder / "group_vars").mkdir()
    variables = folder / "group_vars" / "all.yml"
    variables.write_text(json.dumps(settings(portal)), encoding="utf-8")
    instance.deploy("up", str(folder))
    yield Prometheus(f"http://127.0.0.1:{port_of(portal, PROMETHEUS)}")
    instance.deploy("down", str(folder))
    assert not FOLDER.exists()


def settings(portal: Instance) -> dict[str, Any]:
    hub = json.loads((SETTINGS.parent / "doctor.d" / "portal.json").read_text(encoding="utf-8"))[
        "hub"
    ]
    return {
        "instance_name": f"{portal.mark}-watch",
        "instance_folder_name": FOLDER.parent.name,
        "instance_keep": False,
        "monitoring_slurm_conf": portal.settings["slurm"]["config_file"],
        "monitoring_portal_hosts": ["watch"],
        "monitoring_portal_token_file": hub["metrics_token_file"],
        "monitoring_portal_url": portal.url,
        "monitoring_portal_ca_file": str(SETTINGS.parent / "test-tls" / "authority.crt"),
        "monitoring_slurm_hosts": ["watch"],
        "monitoring_hub_python": hub["python"],
        "monitoring_slurm_seconds": 1,
        # Its first look may come before all that it looks at has started.
        "monitoring_doctor_seconds": 5,
        "monitoring_prometheus_port": port_of(portal, PROMETHEUS),
        "monitoring_alertmanager_port": port_of(portal, ALERTMANAGER),
        "monitoring_node_port": port_of(portal, NODE),
        "monitoring_slurm_port": port_of(portal, SLURM),
        "monitoring_scrape_interval": "1s",
        "monitoring_rule_files": [str(AT_ONCE)],
        "monitoring_alertmanager": {
            "route": {"receiver": "page", "group_by": ["alertname"], "group_wait": "1s"},
            "receivers": [{"name": "page"}],
        },
    }


def test_every_target_is_up(deployed: Prometheus) -> None:
    deployed.wait_for("count(up)", 5)
    deployed.wait_for("count(up == 1)", 5)
    jobs = {labels["job"] for labels, _ in deployed.samples("up")}
    assert jobs == {"alertmanager", "node", "portal", "prometheus", "slurm"}


def test_every_file_is_good_by_the_servers_own_programs(deployed: Prometheus) -> None:
    for argv in (
        ["/usr/bin/promtool", "check", "config", f"{FOLDER}/prometheus.yml"],
        ["/usr/bin/promtool", "test", "rules", str(HOSTS_TEST)],
        ["/usr/bin/amtool", "check-config", f"{FOLDER}/alertmanager.yml"],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_can_evaluate_every_alert(deployed: Prometheus) -> None:
    rules = [rule for group in deployed.ask("rules")["groups"] for rule in group["rules"]]
    names = {rule["name"] for rule in rules}
    assert {"PortalDown", "HostDown", "HostMountMissing", "SlurmDown"} <= names
    for rule in rules:
        assert rule["health"] == "ok", rule


def expressions() -> list[str]:
    """Return what the cluster's dashboard shows, with what Grafana puts in for its variables."""
    dashboard = json.loads((MONITORING / "cluster-dashboard.json").read_text(encoding="utf-8"))
    return [
        target["expr"].replace("$__rate_interval", "10s").replace("$host", ".*")
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]


def test_the_dashboard_has_data_but_where_it_needs_nvidia_or_a_queue(deployed: Prometheus) -> None:
    for expression in expressions():
        if re.search("DCGM_|slurm_jobs|waited_for", expression):
            deployed.samples(expression)
        else:
            has_data = partial(deployed.samples, expression)
            until(has_data, seconds=30, what=f"{expression} has data")


def test_jobs_nodes_and_gpus_are_those_of_slurm(portal: Instance, deployed: Prometheus) -> None:
    deployed.wait_for("sum(slurm_nodes)", 3)
    deployed.wait_for('sum(slurm_node_gpus{state="free"})', 12)
    with portal.gpus_taken(nodes=1):
        deployed.wait_for('sum(slurm_node_gpus{state="held"})', 4)
        deployed.wait_for('sum(slurm_jobs{state="running"})', 1)
    with faults.drained(portal):
        deployed.wait_for('slurm_nodes{state="drained"}', 3)
        deployed.wait_for('sum(slurm_node_gpus{state="unavailable"})', 12)
    deployed.wait_for('sum(slurm_node_gpus{state="free"})', 12)
    assert not any(USERS[4] in str(labels) for labels, _ in deployed.samples('{job="slurm"}'))


def test_a_slurm_that_does_not_answer_is_seen(portal: Instance, deployed: Prometheus) -> None:
    with faults.frozen("slurmctld"):
        deployed.wait_for("slurm_up", 0)
        assert deployed.samples("slurm_nodes") == []
        deployed.wait_for('count(ALERTS{alertname="SlurmDown"})', 1)
    deployed.wait_for("slurm_up", 1)


def test_what_the_doctor_finds_is_told(deployed: Prometheus) -> None:
    deployed.wait_for('portal_doctor_state{check="services"}', 0)
    deployed.wait_for("count(portal_doctor_asked_timestamp_seconds)", 1)


def test_a_stopped_exporter_becomes_an_alert_in_alertmanager(
    portal: Instance, deployed: Prometheus
) -> None:
    with stopped("slurm-exporter"):
        come = partial(alert_of, portal, "ExporterStopped")
        alert = until(come, seconds=60, what="the alert has come")
        assert alert is not None
        assert alert["status"]["state"] == "active"
        assert alert["labels"]["host"]
        # Of another group of rules, which has its own turn.
        deployed.wait_for('count(ALERTS{alertname="SlurmDown", alertstate="pending"})', 1)
    deployed.wait_for('up{job="slurm"}', 1)


@contextmanager
def stopped(service: str) -> Iterator[None]:
    faults.service("stop", service, FOLDER.parent)
    try:
        yield
    finally:
        faults.service("start", service, FOLDER.parent)


def alert_of(portal: Instance, name: str) -> dict[str, Any] | None:
    answer = httpx.get(
        f"http://127.0.0.1:{port_of(portal, ALERTMANAGER)}/api/v2/alerts",
        timeout=10,
        verify=trust(),
    )
    found = [alert for alert in answer.json() if alert["labels"]["alertname"] == name]
    return found[0] if found else None


def test_only_prometheus_reads_its_token_and_nothing_listens_for_strangers(
    portal: Instance, deployed: Prometheus
) -> None:
    token = FOLDER / "portal.token"
    assert (token.owner(), token.stat().st_mode & 0o777) == ("prometheus", 0o400)
    listing = subprocess.run(["/usr/bin/ss", "-Htln"], capture_output=True, text=True, check=True)
    ours = {str(port_of(portal, more)) for more in (PROMETHEUS, ALERTMANAGER, NODE, SLURM)}
    addresses = {line.split()[3].rpartition(":") for line in listing.stdout.splitlines()}
    assert {address for address, _, port in addresses if port in ours} == {"127.0.0.1"}
