"""Trainings from several storages, formats and sizes beside each other."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports import data_sources as report

NAS_JPEG = report.DataSource("NAS", "JPEG", "/nas/jpeg")
NAS_SHARDS = report.DataSource("NAS", "TFRecord, x10", "/nas/shards")


def summary(folder: str, *speeds: float, steps: int = 200, date: str = "2026") -> dict[str, Any]:
    parts = [
        {"model": "alexnet", "precision": "bf16", "images_per_second": speed} for speed in speeds
    ]
    row = {
        "model": "alexnet", "precision": "bf16", "processes": 4, "nodes": 1, "batch": 64,
        "size": 224, "device": "V100", "images_per_second": sum(speeds) / len(speeds),
        "run_variation": 0.01,
    }  # fmt: skip
    return {
        "benchmark": "training",
        "date": date,
        "configuration": {"data": folder, "steps": steps},
        "versions": {"torch": "2.13.0"},
        "parts": parts,
        "figures": {"trainings": [row]},
    }


def test_each_data_set_of_each_storage_is_a_source_with_a_folder_of_its_own() -> None:
    found = report.sources({"NAS": {"JPEG": "/nas/jpeg", "TFRecord, x10": "/nas/shards"}})
    assert found == [NAS_JPEG, NAS_SHARDS]
    assert [source.name for source in found] == ["NAS-JPEG", "NAS-TFRecord-x10"]
    (home,) = report.sources({"home": {"JPEG": "~/jpeg"}})
    assert home.folder == str(Path.home() / "jpeg")


@pytest.mark.parametrize("data_sets", [{"NAS": {"a b": "/1", "a-b": "/2"}}, {"//": {"--": "/1"}}])
def test_names_that_would_share_a_folder_are_refused(data_sets: report.DataSets) -> None:
    with pytest.raises(ValueError, match="needs another name"):
        report.sources(data_sets)


def test_only_a_run_with_the_same_settings_counts_as_finished(tmp_path: Path) -> None:
    for number, steps in enumerate((200, 200, 50)):
        folder = tmp_path / NAS_JPEG.name / str(number)
        folder.mkdir(parents=True)
        one = summary("/nas/jpeg", 100.0, steps=steps, date=f"2026-0{number + 1}")
        (folder / "summary.json").write_text(json.dumps(one))
    newest = report.finished(tmp_path, NAS_JPEG, steps=200)
    assert newest is not None
    assert newest["date"] == "2026-02"
    assert report.finished(tmp_path, NAS_JPEG, steps=10) is None
    # These are of before there was this option.
    assert report.finished(tmp_path, NAS_JPEG, steps=200, flush_nas="") is not None
    assert report.finished(tmp_path, NAS_JPEG, steps=200, flush_nas="/opt/flush") is None
    assert report.finished(tmp_path, report.DataSource("NAS", "JPEG", "/other"), steps=200) is None


def test_only_a_run_with_the_same_variables_of_the_transport_counts(tmp_path: Path) -> None:
    folder = tmp_path / NAS_JPEG.name / "1"
    folder.mkdir(parents=True)
    one = summary("/nas/jpeg", 100.0)
    # One is the site's own.
    one["configuration"]["transport"] = {"NCCL_MIN_NCHANNELS": "4", "UCX_TLS": "tcp"}
    (folder / "summary.json").write_text(json.dumps(one))
    assert report.finished(tmp_path, NAS_JPEG, {"NCCL_MIN_NCHANNELS": 4}) is not None
    assert report.finished(tmp_path, NAS_JPEG, {}) is not None
    for other in ({"NCCL_MIN_NCHANNELS": 8}, {"NCCL_ALGO": "Ring"}):
        assert report.finished(tmp_path, NAS_JPEG, other) is None


def test_sources_are_compared_with_the_first_of_them() -> None:
    found = {
        NAS_JPEG: summary("/nas/jpeg", 90.0, 110.0),
        NAS_SHARDS: summary("/nas/shards", 480.0, 520.0),
    }
    assert report.markdown(found).splitlines()[2:] == [
        "| alexnet | PyTorch 2.13.0 | bf16 | 64 | NAS | JPEG | 100 | 1.0 % | 100.0 % |",
        "| alexnet | PyTorch 2.13.0 | bf16 | 64 | NAS | TFRecord, x10 | 500 | 1.0 % | 500.0 % |",
        "| alexnet |  |  |  | papers | TFRecord, of JPEG |  |  | 500.0 % |",
    ]
    first, other = report.speeds(found)
    assert (first.slowest, first.fastest) == (90.0, 110.0)
    assert (other.slowest, other.fastest) == (480.0, 520.0)


@pytest.mark.parametrize(("model", "said"), [("vgg16", "123.0 % to 140.0 %"), ("resnet50", None)])
def test_the_papers_ratio_of_formats_stands_below_that_network(
    model: str, said: str | None
) -> None:
    one = summary("/nas/jpeg", 90.0, 110.0)
    for row in (*one["parts"], *one["figures"]["trainings"]):
        row["model"] = model
    papers = [line for line in report.markdown({NAS_JPEG: one}).splitlines() if "papers" in line]
    wanted = [f"| {model} |  |  |  | papers | TFRecord, of JPEG |  |  | {said} |"] if said else []
    assert papers == wanted


def test_a_storage_may_lack_a_format_of_another() -> None:
    found = {
        NAS_JPEG: summary("/nas/jpeg", 100.0),
        report.DataSource("local disk", "TFRecord", "/scratch"): summary("/scratch", 600.0, 640.0),
    }
    assert report.figure(found).startswith(b"\x89PNG")
