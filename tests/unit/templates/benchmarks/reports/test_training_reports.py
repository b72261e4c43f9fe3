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
    return {
        "configuration": {"data": "synthetic"},
        "versions": {"torch": "2.13.0"},
        "figures": {"trainings": list(trainings)},
    }


def test_ones_own_figures_stand_above_the_papers() -> None:
    lines = training_report.markdown([summary(training("bf16", 2940.4))]).splitlines()
    assert lines[2] == (
        "| resnet50 | PyTorch 2.13.0 | bf16 | V100 | 4 | 64 | 2,940 | 0.4 % | 3.1 % (!) | 5.0 % "
        "| 70.0 % | 15.0 % | 10.0 % |"
    )
    papers = "| resnet50 | PyTorch | mixed | papers: v1.5, V100-PCIe | 8 |  | 5,844 |"
    assert any(line.startswith(papers) for line in lines[3:])
    # The batch of each GPU, where the papers tell it.
    papers = (
        "| resnet50 | TensorFlow | mixed | papers: V100-SXM2, private threads raised | 8 | 256 |"
    )
    assert any(line.startswith(papers) for line in lines[3:])
    # Of networks that were not measured here nothing is said.
    assert not any("vgg16" in line for line in lines)


def test_frameworks_stand_beside_each_other_here_and_in_the_papers() -> None:
    of_whole_steps = {"shares": {"data": 0.02, "training": 0.98}, "version": "2.21.0"}
    tensorflow = training("bf16", 900.0, framework="tensorflow", **of_whole_steps)
    told = {"framework": "mxnet", "model": "resnet50", "precision": "bf16"}
    run = summary(training("bf16", 1000.0), tensorflow)
    run["figures"]["not_measured"] = [{**told, "reason": "there is no kernel of MXNet here"}]
    text = training_report.markdown([run])
    assert (
        "| resnet50 | TensorFlow 2.21.0 | bf16 | V100 | 4 | 64 | 900 | 0.4 % | 3.1 % (!) | 2.0 % "
        "|  |  |  |"
    ) in text.splitlines()
    assert "| resnet50 | MXNet | bf16 | not measured: there is no kernel of MXNet here |" in text
    # 7,112 / 7,251 = 0.98, and 752 / 740 = 1.02.
    beside = (
        "- resnet50 bf16 on 4 with TensorFlow: 0.90 times PyTorch's images/s; the papers 0.98 to "
        "1.02 times (mixed precision)."
    )
    assert beside in text.splitlines()
    assert "| resnet50 | MXNet | mixed | papers: v1.5, V100-PCIe | 8 |  | 9,155 |" in text
    assert "Caffe2 (merged into PyTorch in 2018)" in text
    # What was measured later is no longer missing.
    later = summary(training("bf16", 1500.0, framework="mxnet", **of_whole_steps))
    assert "not measured" not in training_report.markdown([run, later])


def test_resnet_50_v1_stands_beside_the_papers_v1_alone() -> None:
    text = training_report.markdown([summary(training("bf16", 1000.0, model="resnet50_v1"))])
    assert "| resnet50_v1 | TensorFlow | mixed | papers: v1, V100-PCIe | 8 |  | 6,142 |" in text
    assert "v1.5" not in text
    text = training_report.markdown([summary(training("bf16", 1000.0))])
    assert "6,142" not in text
    assert "5,731" in text


def test_16_bits_are_compared_with_fp32_of_the_same_framework() -> None:
    rows = [training("fp32", 1000.0), training("bf16", 1720.0, framework="mxnet")]
    assert "over fp32" not in training_report.markdown([summary(*rows)])


def test_frameworks_have_bars_of_their_own() -> None:
    names = ("pytorch", "tensorflow", "mxnet")
    rows = [
        training(kind, speed, framework=name)
        for name in names
        for kind, speed in (("fp32", 1000.0), ("bf16", 1720.0))
    ]
    assert training_report.figure([summary(*rows)]).startswith(b"\x89PNG")


def test_what_16_bits_give_is_said_over_fp32_of_the_same() -> None:
    rows = [training("fp32", 1000.0), training("bf16", 1720.0)]
    text = training_report.markdown([summary(*rows)])
    gain = "- resnet50 on 4: bf16 gives +72% images/s over fp32; the papers +65% to +91%."
    assert text.splitlines()[-1] == gain
    # What the papers have is ResNet-50's.
    rows = [{**row, "model": "vgg16"} for row in rows]
    gain = "- vgg16 on 4: bf16 gives +72% images/s over fp32."
    assert training_report.markdown([summary(*rows)]).splitlines()[-1] == gain
    others = [training("fp32", 1000.0, device="A100"), training("bf16", 1720.0)]
    assert "over fp32" not in training_report.markdown([summary(*others)])
    # Of two batches it is the one that was doubled.
    rows = [
        training("fp32", 1000.0, batch=64),
        training("fp32", 1100.0, batch=128),
        training("bf16", 1980.0, batch=256),
    ]
    assert "bf16 gives +80% images/s over fp32;" in training_report.markdown([summary(*rows)])


def test_a_compiled_training_does_not_take_the_place_of_the_plain_one() -> None:
    plain, compiled = summary(training("fp32", 1000.0)), summary(training("fp32", 1300.0))
    compiled["configuration"] |= {"compile": "yes", "image": "/home/ada/images/mine.sif"}
    text = training_report.markdown([plain, compiled])
    assert "1,000" in text
    assert "1,300" in text
    assert ", compiled, in mine.sif" in text


def test_a_training_from_several_mounts_does_not_take_the_place_of_one_mounts() -> None:
    one, both = summary(training("fp32", 1000.0)), summary(training("fp32", 1900.0))
    one["configuration"] = {"data": "imagenet", "mounts": "/mnt/isilon1"}
    both["configuration"] = {"data": "imagenet", "mounts": "/mnt/isilon1,/mnt/isilon2"}
    text = training_report.markdown([one, both])
    assert "| V100, imagenet on /mnt/isilon1 | 4 | 64 | 1,000 |" in text
    assert "| V100, imagenet on /mnt/isilon1, /mnt/isilon2 | 4 | 64 | 1,900 |" in text


def test_trainings_from_files_and_of_other_batches_have_bars_of_their_own() -> None:
    from_files = summary(training("fp32", 600.0))
    from_files["configuration"] = {"data": "/mnt/isilon/imagenet"}
    made_up = summary(training("fp32", 1000.0), training("fp32", 1100.0, batch=128))
    bars = {training_report._kind(row) for row in training_report.rows([made_up, from_files])}
    assert len(bars) == 3


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
    run["figures"]["trainings"][0]["nas_flushed_by"] = "/opt/flush"
    said = "before each run; the NAS's flushed before each by /opt/flush."
    assert said in training_report.markdown([run])
    run["figures"]["trainings"][0]["expected_hit_rate"] = None
    assert "caches" not in training_report.markdown([run])


def asked_nas(*samples: tuple[float, float, float]) -> dict[str, Any]:
    """Return trainings from files with the NAS's time, disk reads/s and MB/s from its disks."""
    run = summary(training("bf16", 1000.0), training("fp32", 500.0))
    run["configuration"]["data"] = "/mnt/isilon/imagenet"
    run["parts"] = [
        # Those of bf16 from 100 to 110 and from 130 to 140, of fp32 from 200 to 210.
        {"model": "resnet50", "precision": precision, "throughput": [[begin, 0], [begin + 10, 9]]}
        for precision, begin in (("bf16", 100.0), ("bf16", 130.0), ("fp32", 200.0))
    ]
    run["nas"] = [
        {"time": time, "disk_reads_per_second": reads, "disk_read_mb_per_second": mb}
        for time, reads, mb in samples
    ]
    return run


def test_what_the_nas_read_is_the_mean_of_the_runs_beside_the_papers() -> None:
    # The sizes are 64 KiB and 16 KiB; three reads of four are of 16.
    within = [(105.0, 10_000.0, 655.36), (140.0, 30_000.0, 491.52)]
    outside = [(99.0, 9e9, 1.0), (120.0, 9e9, 1.0), (211.0, 9e9, 1.0)]
    lines = training_report.markdown([asked_nas(*within, *outside)]).splitlines()
    (said,) = (line for line in lines if "the NAS's disks" in line)
    assert said == (
        "- resnet50 bf16 on 4, /mnt/isilon/imagenet: the NAS's disks served 20,000 reads/s of 28 "
        "KiB on average; the papers print 212 K reads/s of 9.17 MB, but their throughput makes 37 "
        "of these."
    )
    assert any("The papers read 335 MB/s for resnet50" in line for line in lines)


def test_nothing_is_said_of_a_nas_that_was_not_asked_or_did_not_answer() -> None:
    assert "the NAS's disks" not in training_report.markdown([asked_nas()])
    silent = asked_nas((105.0, 1.0, 1.0))
    silent["nas"][0]["disk_reads_per_second"] = None
    assert "the NAS's disks" not in training_report.markdown([silent])
    idle = training_report.markdown([asked_nas((105.0, 0.0, 0.0))])
    assert "the NAS's disks served 0 reads/s; the papers" in idle
    synthetic = asked_nas((105.0, 1.0, 1.0))
    synthetic["configuration"]["data"] = "synthetic"
    assert "the NAS's disks" not in training_report.markdown([synthetic])


def test_of_the_same_training_the_newest_counts() -> None:
    runs = [summary(training("bf16", 100.0)), summary(training("bf16", 200.0))]
    assert [row["images_per_second"] for row in training_report.rows(runs)] == [200.0]


def test_speed_ups_stand_above_the_papers() -> None:
    point = training("bf16", 5844.0, processes=8, speed_up=7.897, efficiency=0.987)
    run = {
        "configuration": {"model": "resnet50", "precision": "bf16"},
        "date": "2026-11-22T02:52:34+00:00",
        "versions": {"torch": "2.13.0"},
        "figures": {"points": [point]},
    }
    lines = scaling_report.markdown([run]).splitlines()
    assert lines[2].startswith(
        "| resnet50 bf16, V100, 2026-11-22 02:52 | PyTorch 2.13.0 | 1 | 8 | 64 | 5,844 | 7.90 "
        "| 98.7 % | 0.4 % |"
    )
    assert "| papers: the best |  |  | 8 |  |  | 7.80 | 97.5 % |  |  |  |  |  |" in lines
    for framework, precision, batch, times, efficiency in (
        ("MXNet", "fp32", 64, "29.40", "91.9 %"),
        ("MXNet", "mixed", 128, "25.80", "80.6 %"),
        ("TensorFlow", "fp32", 128, "22.00", "68.8 %"),
        ("TensorFlow", "mixed", 256, "23.70", "74.1 %"),
        ("Caffe2", "fp32", 64, "26.50", "82.8 %"),
        ("Caffe2", "mixed", 128, "27.30", "85.3 %"),
    ):
        what = f"papers: resnet50, V100-PCIe, {precision} | {framework} | 8 | 32 | {batch}"
        assert f"| {what} |  | {times} | {efficiency} |  |  |  |  |  |" in lines
    assert lines[-1].endswith("grew in proportion from 8 to 72 GPUs, in nodes of 8.")
    # 12,937 / 1,658 = 7.80, and 16,076 / 1,658 = 9.70.
    googlenet = "| papers: googlenet, V100-PCIe, mixed |  |  | 10 |  |  | 9.70 | 97.0 % |"
    assert any(line.startswith(googlenet) for line in lines)


def test_speed_ups_of_tensorflow_are_named_and_have_no_parts_made_up() -> None:
    of_whole_steps = {"shares": {"data": 0.02, "training": 0.98}, "version": "2.21.0"}
    of_whole_steps["framework"] = "tensorflow"
    point = training("bf16", 100.0, speed_up=1.0, efficiency=1.0, **of_whole_steps)
    run = {
        "configuration": {"model": "resnet50", "precision": "bf16"},
        "date": "2026-11-22T02:52:34+00:00",
        "figures": {"points": [point]},
    }
    line = scaling_report.markdown([run]).splitlines()[2]
    what = "| resnet50 bf16, V100, 2026-11-22 02:52 | TensorFlow 2.21.0 | 1 | 4 | 64 | "
    assert line.startswith(what)
    named = "resnet50 bf16 with TensorFlow, V100, 2026-11-22 02:52"
    assert scaling_report.name_of(run) == named, "in the figure"
    assert line.endswith("| 0.4 % | 2.0 % |  |  |  |")
    assert scaling_report.figure([run]).startswith(b"\x89PNG")


def test_a_cell_cannot_end_a_column() -> None:
    assert tables.markdown(["a", "b"], [["x|y"]]).splitlines()[-1] == "| x/y |  |"
