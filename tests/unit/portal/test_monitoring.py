"""The dashboard, the alerts and the reference page name metrics that exist.

Grafana itself is not to be had here: the dashboard is held against the rules of its JSON model that
a file can break without anybody noticing.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jupyterhub import metrics as hub_metrics
from prometheus_client import REGISTRY

from dsportal import metrics_reference
from jupyterhub_gpu_slurm.errors import Refusal

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana-dashboard.json").read_text())
CLUSTER: dict[str, Any] = json.loads((MONITORING / "cluster-dashboard.json").read_text())
ALERTS = (MONITORING / "alerts.yml").read_text(encoding="utf-8")
HOW_TO = (ROOT / "docs" / "how-to" / "monitor-the-portal.md").read_text(encoding="utf-8")
METRIC = re.compile(r"\b(?:gpu_spawner|jupyterhub|process)_[a-z_]+")
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]


def exported() -> set[str]:
    """Return the names of all that the hub's process shows."""
    assert hub_metrics
    jupyterhubs = {name for names in REGISTRY._collector_to_names.values() for name in names}
    return jupyterhubs | {name for row in metrics_reference.rows() for name in row.exported}


@pytest.mark.parametrize("text", [*EXPRESSIONS, ALERTS])
def test_every_metric_in_the_dashboard_and_the_alerts_exists(text: str) -> None:
    assert METRIC.findall(text)
    assert set(METRIC.findall(text)) <= exported()


def test_every_metric_of_ours_is_in_the_dashboard() -> None:
    shown = {name for expression in EXPRESSIONS for name in METRIC.findall(expression)}
    assert [row.name for row in metrics_reference.rows() if not shown & {*row.exported}] == []


def test_the_names_follow_prometheus_conventions() -> None:
    for row in metrics_reference.rows():
        assert (row.kind == "counter") == row.name.endswith("_total"), row
        if row.kind == "histogram":
            assert row.name.endswith("_seconds"), row
        assert row.sentence.endswith("."), row
        assert not {"user", "username", "session", "node", "job_id"} & {*row.labels}, row


def test_the_reference_page_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "metrics.md"
    assert page.read_text(encoding="utf-8") == metrics_reference.page(), "run: make docs"


@pytest.mark.parametrize("dashboard", [DASHBOARD, CLUSTER], ids=["portal", "cluster"])
def test_panels_have_what_grafana_needs(dashboard: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    titles = [panel["title"] for panel in panels]
    assert len(titles) == len(set(titles))
    for panel in panels:
        assert panel["type"] in {"stat", "timeseries"}, panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters)), panel["title"]
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])
        assert {"defaults", "overrides"} <= panel["fieldConfig"].keys()


@pytest.mark.parametrize("dashboard", [DASHBOARD, CLUSTER], ids=["portal", "cluster"])
def test_panels_do_not_overlap_and_stay_on_the_page(dashboard: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] <= 24 - place["w"], panel["title"]
        cells = {
            (place["x"] + column, place["y"] + line)
            for column in range(place["w"])
            for line in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("dashboard", [DASHBOARD, CLUSTER], ids=["portal", "cluster"])
def test_the_variables_that_the_expressions_use_are_there(dashboard: dict[str, Any]) -> None:
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(dashboard["panels"])))
    assert used == names


def test_no_panel_shows_a_machine_twice() -> None:
    # "or" without "on" adds what has other labels, where the legend names but one of them.
    shown = [target["expr"] for panel in CLUSTER["panels"] for target in panel.get("targets", ())]
    assert [one for one in (*shown, *EXPRESSIONS) if re.search(r"\bor\b(?! on)", one)] == []


def test_gpu_memory_is_shown_in_the_unit_in_which_it_is_told() -> None:
    # NVIDIA's exporter tells it in MiB; Grafana's "decmbytes" are of 1,000,000 bytes.
    units = {
        panel["fieldConfig"]["defaults"]["unit"]
        for panel in CLUSTER["panels"]
        if "DCGM_FI_DEV_FB_USED" in json.dumps(panel.get("targets", ()))
    }
    assert units == {"mbytes"}


def test_no_kind_of_refusal_counts_as_a_start_that_fails() -> None:
    (pattern,) = re.findall(r'start_failures_total\s*{reason!~"(.*?)"}', ALERTS)
    kinds: tuple[type[Refusal], ...] = (Refusal, *Refusal.__subclasses__())
    assert {kind.reason for kind in kinds} <= {*pattern.split("|")}


def test_the_portals_dashboard_can_be_of_any_portal() -> None:
    assert all('job="$job"' in expression for expression in EXPRESSIONS)


@pytest.mark.parametrize("file", ["alerts.yml", "hosts.yml"])
def test_every_alert_says_what_to_do_and_where_to_read_more(file: str) -> None:
    text = (MONITORING / file).read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", text)
    assert len(alerts) >= 6
    for name in alerts:
        block = text.partition(f"- alert: {name}\n")[2].partition("- alert:")[0]
        for key in ("summary:", "description:", "severity:"):
            assert key in block, name
        assert f"docs/how-to/monitor-the-portal.md#{name.lower()}\n" in block
        assert f"### {name}\n" in HOW_TO, name
