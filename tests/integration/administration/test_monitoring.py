"""The hub's metrics, as a real Prometheus reads them; the dashboard and the alerts made of them."""

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests import faults
from tests.instance import ADMIN, USERS, Instance, trust
from tests.servers import prometheus
from tests.servers.prometheus import MONITORING, TOKEN, Prometheus
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = pytest.mark.waits

Visit = Callable[[str], Visitor]
NAME = USERS[2]
ALERTS_TEST = Path(__file__).parents[2] / "monitoring" / "alerts_test.yml"
SESSION_GPUS = "gpu_spawner_session_gpus"
# What has no data while nothing has failed: failures, and ends of the last hour.
MAY_BE_EMPTY = ("_failures_total", "> 0")


@pytest.fixture(scope="module")
def watching(portal: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with prometheus.running(portal, tmp_path_factory.mktemp("prometheus")) as watching:
        watching.wait_for('up{job="portal"}', 1)
        yield watching


def expressions() -> list[str]:
    """Return what the dashboard shows, with what Grafana would put in for its variables."""
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return [
        target["expr"].replace("$__rate_interval", "1m").replace("$job", "portal")
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]


def metrics(portal: Instance, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{portal.url}/hub/metrics", headers=headers, timeout=30, verify=trust())


def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    for verb, file in (("check", MONITORING / "alerts.yml"), ("test", ALERTS_TEST)):
        done = subprocess.run(
            ["/usr/bin/promtool", verb, "rules", str(file)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_metrics_are_for_prometheus_and_administrators(portal: Instance, visit: Visit) -> None:
    token = TOKEN.read_text(encoding="utf-8").strip()
    assert metrics(portal, token).status_code == 200
    assert metrics(portal, visit(ADMIN).token()).status_code == 200
    assert metrics(portal, visit(NAME).token()).status_code == 403
    assert httpx.get(f"{portal.url}/hub/metrics", verify=trust()).status_code == 403


def test_the_token_of_prometheus_is_for_nothing_else(portal: Instance) -> None:
    headers = {"Authorization": f"Bearer {TOKEN.read_text(encoding='utf-8').strip()}"}
    for path in ("/users", "/proxy", "/services", f"/users/{NAME}"):
        answer = httpx.get(f"{portal.url}/hub/api{path}", headers=headers, verify=trust())
        assert answer.status_code in (403, 404), path
    assert TOKEN.stat().st_mode & 0o077 == 0


def test_a_session_is_seen_from_its_start_to_its_end(
    portal: Instance, visit: Visit, watching: Prometheus
) -> None:
    user = visit(NAME)
    # A forecast, as an open form asks for one.
    forecast = user.api("GET", f"/gpu-session/forecast/{NAME}", params={"gpus": "2"})
    forecast.raise_for_status()
    stopped = watching.value('gpu_spawner_session_ends_total{kind="stopped"}') or 0
    user.start_and_wait(gpus=2)
    watching.wait_for('gpu_spawner_sessions{state="running"}', 1)
    watching.wait_for("sum(gpu_spawner_session_gpus)", 2)
    # At the next look at the cluster, which the scrape itself asks for.
    watching.wait_for('sum(gpu_spawner_cluster_gpus{state="held"})', 2)
    watching.wait_for("sum(gpu_spawner_cluster_gpus)", 12)
    # It says how it is used soon after its start.
    watching.wait_for('gpu_spawner_session_gpus{use="used"}', 2, seconds=90)

    for expression in expressions():
        if any(part in expression for part in MAY_BE_EMPTY):
            watching.samples(expression)
        else:
            # A rate needs two scrapes.
            has_data = partial(watching.samples, expression)
            until(has_data, seconds=20, what=f"{expression} has data")

    user.stop()
    watching.wait_for('gpu_spawner_session_ends_total{kind="stopped"}', stopped + 1)
    watching.wait_for('gpu_spawner_sessions{state="running"}', 0)
    watching.wait_for("sum(gpu_spawner_session_gpus)", 0)


def test_a_killed_hub_does_not_make_the_metrics_lie(
    portal: Instance, visit: Visit, watching: Prometheus
) -> None:
    user = visit(NAME)
    user.start_and_wait(gpus=3)
    watching.wait_for("sum(gpu_spawner_session_gpus)", 3)
    faults.kill("hub")
    faults.wait_for_hub(portal)
    text = metrics(portal, TOKEN.read_text(encoding="utf-8").strip()).text
    lines = text.splitlines()
    assert 'gpu_spawner_sessions{state="running"} 1.0' in lines
    gpus = [float(line.split()[1]) for line in lines if line.startswith(f"{SESSION_GPUS}{{")]
    assert sum(gpus) == 3
    # Slurm ends it: the new hub sees that too.
    cancelled = 'gpu_spawner_session_ends_total{kind="cancelled"}'
    watching.wait_for(cancelled, 0)
    portal.slurm("scancel", *portal.jobs(user=NAME))
    watching.wait_for(cancelled, 1)
    watching.wait_for(f"sum({SESSION_GPUS})", 0)


def test_a_session_that_waits_holds_nothing(
    portal: Instance, visit: Visit, watching: Prometheus
) -> None:
    user = visit(NAME)
    with portal.gpus_taken():
        user.start(gpus=4)
        watching.wait_for('gpu_spawner_sessions{state="waiting"}', 1)
        watching.wait_for("sum(gpu_spawner_session_gpus)", 0)
        watching.wait_for("gpu_spawner_session_longest_wait_seconds > bool 2", 1)
        user.stop()
    watching.wait_for('gpu_spawner_sessions{state="waiting"}', 0)


def test_a_slurm_that_does_not_answer_is_seen(portal: Instance, watching: Prometheus) -> None:
    watching.wait_for("gpu_spawner_slurm_up", 1)
    with faults.frozen("slurmctld"):
        watching.wait_for("gpu_spawner_slurm_up", 0, seconds=90)
        # What it said before is not shown as what is.
        watching.wait_for("count(gpu_spawner_cluster_gpus) or vector(0)", 0)
        name = "PortalSlurmNotAnswering"
        watching.wait_for(f'count(ALERTS{{alertname="{name}"}}) or vector(0)', 1)
    watching.wait_for("gpu_spawner_slurm_up", 1, seconds=90)


def test_prometheus_can_evaluate_every_alert(watching: Prometheus) -> None:
    (group,) = watching.ask("rules")["groups"]
    assert len(group["rules"]) >= 6
    for rule in group["rules"]:
        assert rule["health"] == "ok", rule
        assert not rule.get("lastError"), rule
