"""The reference page of the metrics, made from the metrics' own descriptions.

``python -m dsportal.metrics_reference docs/reference/metrics.md`` writes it.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import REGISTRY
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from jupyterhub_gpu_slurm import registration

PREFIX = "gpu_spawner_"
_HEAD = """\
# Metrics

<!-- Made by `python -m dsportal.metrics_reference docs/reference/metrics.md`: change
spawner/jupyterhub_gpu_slurm/metrics.py, not this page. -->

The spawner's metrics for Prometheus at `/hub/metrics`, in addition to [JupyterHub's own
metrics](https://jupyterhub.readthedocs.io/en/stable/reference/metrics.html). [Monitor the
portal](../how-to/monitor-the-portal.md) says how to read them, and has a dashboard and alerts based
on them. Counters and histograms start from zero whenever the hub starts, as Prometheus expects;
gauges are computed at each scrape, and an unknown value has no sample. No label names a user, a
session or a node.

| metric | kind | labels | what it is |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class MetricRow:
    """A metric's entry on the page."""

    name: str
    kind: str
    labels: tuple[str, ...]
    sentence: str

    @property
    def exported(self) -> tuple[str, ...]:
        """The names that Prometheus knows it by."""
        ends = ("_bucket", "_count", "_sum") if self.kind == "histogram" else ("",)
        return tuple(self.name + end for end in ends)


def rows() -> list[MetricRow]:
    """Return the spawner's metrics, by name."""
    registration.join_hub()
    found = (row for collector in _collectors() for row in _rows(collector))
    return sorted(found, key=lambda row: row.name)


def page() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(map(_line, rows()))


def _collectors() -> list[Collector]:
    # The registry has no public list of them with their labels, which Prometheus' text lacks where
    # there is no sample yet.
    return list(REGISTRY._collector_to_names)


def _rows(collector: Collector) -> Iterator[MetricRow]:
    for metric in getattr(collector, "describe", list)():
        if metric.name.startswith(PREFIX):
            yield _row(
                metric, getattr(metric, "_labelnames", getattr(collector, "_labelnames", ()))
            )


def _row(metric: Metric, labels: Sequence[str]) -> MetricRow:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    return MetricRow(name, metric.type, tuple(labels), metric.documentation)


def _line(row: MetricRow) -> str:
    labels = ", ".join(f"`{label}`" for label in row.labels)
    return f"| `{row.name}` | {row.kind} | {labels} | {row.sentence} |\n"


def main(arguments: Sequence[str]) -> None:
    """Write the page to a file."""
    (file,) = arguments
    Path(file).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
