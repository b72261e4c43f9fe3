"""The tables of measured trainings, with the papers' figures beside one's own."""

from typing import Any

from measurement import tables
from reports import scaling as scaling_report
from reports import training as training_report

SHARES = {"data": 0.05, "forward_backward": 0.7, "all_reduce": 0.15, "optimiser": 0.1}


def training(precision: str, speed: float, **more: object) -> dict[str, Any]:
    return {
        "model": "resnet50", "precision": precision, "processes": 4, "nodes": 1, "batch": 64,
        "size": 224, "device": "V100", "images_per_second": speed, "run_variation": 0.004,
        "step_variation": 0.031, "shares": SHARES,
        "caches_dropped": False, "expected_hit_rate": None, **more,
    }  # fmt: skip


def summary(*trainings: dict[str, Any]) -> dict[str, Any]:
    return {"configuration": {"data": "synthetic"}, "figures": {"trainings": list(trainings)}}


def test_ones_own_figures_stand_above_the_papers() -> None:
    lines = training_report.markdown([summary(training("bf16", 2940.4))]).splitlines()
    assert lines[2] == (
        "| resnet50 | bf16 | V100 | 4 | 64 | 2,940 | 0.4 % | 3.1 % (!) | 5.0 % | 70.0 % | 15.0 % "
        "| 10.0 % |"
    )
    papers = "| resnet50 | mixed | papers: PyTorch v1.5, V100-PCIe | 8 |  | 5,844 |"
    assert any(line.startswith(papers) for line in lines[3:])
    # Of networks that were not measured here nothing is said.
    assert not any("vgg16" in line for line in lines)


def test_what_16_bits_give_is_said_over_fp32_of_the_same() -> None:
    rows = [training("fp32", 1000.0), training("bf16", 1720.0)]
    text = training_report.markdown([summary(*rows)])
    gain = "- resnet50 on 4: bf16 gives +72% images/s over fp32; the papers +65% to +91%."
    assert text.splitlines()[-1] == gain
    others = [training("fp32", 1000.0, device="A100"), training("bf16", 1720.0)]
    assert "over fp32" not in training_report.markdown([summary(*others)])


def test_what_the_papers_read_is_said_of_trainings_from_files() -> None:
    run = summary(training("bf16", 1000.0))
    assert "The papers read" not in training_report.markdown([run])
    run["configuration"]["data"] = "/mnt/isilon/imagenet"
    said = training_report.markdown([run])
    assert "- The papers read 335 MB/s for resnet50 on a node of 4 GPUs, 2,940 images/s" in said
    assert "vgg16 on a node" not in said


def test_what_caches_had_to_do_with_it_is_said_of_trainings_from_files() -> None:
    run = summary(training("bf16", 1000.0, expected_hit_rate=0.0346))
    run["configuration"]["data"] = "/data"
    said = (
        "resnet50 bf16 on 4, /data: caches not dropped: up to 3.5 % of reads can come from memory."
    )
    assert said in training_report.markdown([run])
    run["figures"]["trainings"][0]["caches_dropped"] = True
    said = "resnet50 bf16 on 4, /data: caches dropped before each run."
    assert said in training_report.markdown([run])
    run["figures"]["trainings"][0]["expected_hit_rate"] = None
    assert "caches" not in training_report.markdown([run])


def test_of_the_same_training_the_newest_counts() -> None:
    runs = [summary(training("bf16", 100.0)), summary(training("bf16", 200.0))]
    assert [row["images_per_second"] for row in training_report.rows(runs)] == [200.0]


def test_speed_ups_stand_above_the_papers() -> None:
    point = training("bf16", 5844.0, processes=8, speed_up=7.897, efficiency=0.987)
    run = {
        "configuration": {"model": "resnet50", "precision": "bf16"},
        "date": "2026-11-22T02:52:34+00:00",
        "figures": {"points": [point]},
    }
    lines = scaling_report.markdown([run]).splitlines()
    assert lines[2].startswith(
        "| resnet50 bf16, V100, 2026-11-22 02:52 | 1 | 8 | 5,844 | 7.90 | 98.7 % | 0.4 % |"
    )
    assert "| papers: the best |  | 8 |  | 7.80 | 97.5 % |  |  |  |  |  |" in lines
    # 12,937 / 1,658 = 7.80, and 16,076 / 1,658 = 9.70.
    assert any("googlenet, V100-PCIe |  | 10 |  | 9.70 | 97.0 % |" in line for line in lines)


def test_a_cell_cannot_end_a_column() -> None:
    assert tables.markdown(["a", "b"], [["x|y"]]).splitlines()[-1] == "| x/y |  |"
