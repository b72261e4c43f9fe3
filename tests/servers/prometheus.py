"""A real Prometheus that reads the test instance, with the configuration that sites are given."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.instance import ROOT, SETTINGS, Instance, trust
from tests.network.sockets import free_port
from tests.waiting import until

MONITORING = ROOT / "deploy" / "monitoring"
TOKEN = SETTINGS.parent / "prometheus.token"


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer; one that is an error fails with Prometheus' words."""
        answer = httpx.get(
            f"{self.url}/api/v1/{path}", params=parameters, timeout=30, verify=trust()
        ).json()
        assert answer["status"] == "success", (parameters, answer)
        assert not answer.get("warnings"), (parameters, answer)
        return answer["data"]

    def samples(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return what an expression is now: labels and value."""
        result = self.ask("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def value(self, expression: str) -> float | None:
        """Return the one value of an expression; ``None`` where there is none."""
        values = [value for _, value in self.samples(expression)]
        assert len(values) <= 1, expression
        return values[0] if values else None

    def wait_for(self, expression: str, value: float, seconds: float = 60) -> None:
        """Wait until an expression has a value."""
        what = f"{expression} is {value}"
        until(lambda: self.value(expression) == value, seconds=seconds, what=what)

    @property
    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=5, verify=trust()).status_code == 200
        except httpx.HTTPError:
            return False


# What docs/how-to/use-https.md adds to the example.
ENCRYPTED = (
    f"    scheme: https\n    tls_config: {{ca_file: {SETTINGS.parent}/test-tls/authority.crt}}"
)


@contextmanager
def running(portal: Instance, folder: Path) -> Iterator[Prometheus]:
    """Start it as the example says, but often; end it with all that it kept."""
    address = f"127.0.0.1:{free_port()}"
    config = folder / "prometheus.yml"
    config.write_text(_configuration(portal))
    argv = [
        "/usr/bin/prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
    try:
        prometheus = Prometheus(f"http://{address}")
        until(lambda: prometheus.is_ready, seconds=30, what="Prometheus answers")
        yield prometheus
    finally:
        process.terminate()
        process.wait(timeout=30)


def _configuration(portal: Instance) -> str:
    text = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
    for example, ours in (
        ("127.0.0.1:8000", portal.url.removeprefix("https://")),
        ("metrics_path: /hub/metrics", f"metrics_path: /hub/metrics\n{ENCRYPTED}"),
        ("/etc/prometheus/portal.token", str(TOKEN)),
        ("scrape_interval: 30s", "scrape_interval: 1s"),
        ("- alerts.yml", f"- {MONITORING}/alerts.yml"),
    ):
        assert text.count(example) == 1, example
        text = text.replace(example, ours)
    return re.sub("^---\n", "---\nglobal: {evaluation_interval: 1s}\n", text)
