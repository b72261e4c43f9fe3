"""One page of all that was measured."""

import json
from pathlib import Path
from typing import Any

import pytest

import cluster_report
from measurement.result import ResultError

HOST = {
    "name": "node001",
    "processor": "Xeon",
    "cores": 8,
    "memory_mb": 393_216,
    "gpus": [{"name": "V100", "memory_mb": 32_768, "driver": "550"}],
}
RATE = {
    "from": "node001",
    "to": "node002",
    "streams": 4,
    "gbit_per_second": 38.0,
    "gbit_per_second_lowest": 37.0,
    "gbit_per_second_highest": 39.0,
    "retransmits": 3,
}


def finished(folder: Path, benchmark: str, **more: Any) -> None:
    summary = {
        "schema": 1,
        "benchmark": benchmark,
        "date": "2026-11-22T02:52:34+00:00",
        "command": f"{benchmark}.py --results run1",
        "hosts": [HOST],
        "versions": {"python": "3.11.2", "iperf3": "iperf 3.12"},
        "parts": [{"name": "run 1", "gbit_per_second": 38.0, "times": [1.0, 2.0]}],
        "samples": {},
        **more,
    }
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(summary))


def test_each_benchmark_that_was_run_has_its_part(tmp_path: Path) -> None:
    finished(tmp_path / "runs/network/a", "network", figures={"rates": [RATE]})
    finished(tmp_path / "runs/other", "another-programs")
    page = cluster_report.page(tmp_path / "runs")
    page.write(tmp_path / "page/README.md")
    text = (tmp_path / "page/README.md").read_text()
    assert (tmp_path / "page/network.png").read_bytes().startswith(b"\x89PNG")
    assert "- node001: Xeon, 8 of its processors, 384 GiB, V100" in text
    assert "| node001 | node002 | 4 | 38.00 | 37.00 to 39.00 | 4,750 | 3 |" in text
    assert "- 2026-11-22T02:52:34+00:00: `network.py --results run1`" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Network"]
    assert "![Network](network.png)\n![Network](network-use.png)" in text
    assert (tmp_path / "page/network-use.png").exists()
    assert page.missing == ["training", "scaling", "inference", "storage", "interconnect"]


def test_pictures_may_lie_in_another_folder(tmp_path: Path) -> None:
    finished(tmp_path / "runs/network/a", "network", figures={"rates": [RATE]})
    (tmp_path / "images").mkdir()
    page = cluster_report.page(tmp_path / "runs", "../images/measured-")
    page.write(tmp_path / "docs/measured.md")
    assert (
        "![Network](../images/measured-network.png)" in (tmp_path / "docs/measured.md").read_text()
    )
    assert (tmp_path / "images/measured-network.png").exists()


def test_without_a_finished_run_there_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="no finished measurement"):
        cluster_report.page(tmp_path)


def test_every_benchmark_with_a_report_is_on_the_page() -> None:
    folder = Path(cluster_report.__file__).parent
    programs = {path.stem for path in folder.glob("*.py")}
    reports = {path.stem for path in folder.glob("reports/*.py")}
    assert {section.benchmark for section in cluster_report.SECTIONS} == programs & reports


def test_inference_of_accuracy_alone_has_a_table_and_no_picture(tmp_path: Path) -> None:
    part = {
        "name": "accuracy of vgg16",
        "network": "vgg16",
        "weights": "vgg16.pth",
        "images": 100,
        "top1": {"fp32": 0.71},
        "top5": {"fp32": 0.9},
        "lacking": {},
        "times": [1.0, 2.0],
    }
    configuration = {"model": "50", "calibration_batches": "50", "calibration_batch": "25"}
    figures: dict[str, Any] = {"left_out": {}}
    finished(
        tmp_path / "one", "inference", parts=[part], configuration=configuration, figures=figures
    )
    (section,) = cluster_report.page(tmp_path).parts
    assert section.pictures == {}
    assert "| vgg16 | fp32 | 71.00 % | 90.00 % |" in section.words
