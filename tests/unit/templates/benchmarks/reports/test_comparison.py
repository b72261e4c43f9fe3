"""Measurements side by side."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import compare
from reports.comparison import ComparisonError, Row, Side, compared, markdown, sides
from tests.instance import ROOT

PROGRAM = ROOT / "notebook_templates" / "benchmarks" / "compare.py"


def summary(benchmark: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"benchmark": benchmark, "parts": parts}


def training(*speeds: float, model: str = "resnet50") -> dict[str, Any]:
    runs = enumerate(speeds, 1)
    parts = [{"name": f"{model}, run {n}", "images_per_second": speed} for n, speed in runs]
    return summary("training", parts)


def storage(**mounts: list[float]) -> dict[str, Any]:
    parts = [
        {
            "name": f"read, /{mount}, 1 clients, run {number}",
            "load": "read",
            "clients": 1,
            "mounts": [f"/{mount}"],
            "mb_per_second": speed,
        }
        for mount, speeds in mounts.items()
        for number, speed in enumerate(speeds, 1)
    ]
    return summary("storage", parts)


@pytest.mark.parametrize(
    ("first", "other", "ratio", "spread", "verdict"),
    [
        # Means 100 and 110; 108 over 102, 112 over 98.
        (
            (98, 100, 102),
            (108, 110, 112),
            1.1,
            (108 / 102, 112 / 98),
            "faster, by chance 1 time in 10",
        ),
        (
            (108, 110, 112),
            (98, 100, 102),
            100 / 110,
            (98 / 112, 102 / 108),
            "slower, by chance 1 time in 10",
        ),
        ((98, 100, 102), (101, 103, 105), 1.03, (101 / 102, 105 / 98), "within the noise"),
        ((100,), (150,), 1.5, None, "one run: the noise is not known"),
    ],
)
def test_a_ratio_has_a_spread_and_a_verdict(
    first: tuple[float, ...],
    other: tuple[float, ...],
    ratio: float,
    spread: tuple[float, float] | None,
    verdict: str,
) -> None:
    row = Row("resnet50", first, other)
    assert row.ratio == pytest.approx(ratio)
    assert row.spread == (pytest.approx(spread) if spread else None)
    assert row.verdict == verdict


def test_runs_of_a_part_are_its_values() -> None:
    (side,) = sides("before", training(10, 11, 12))
    assert side == Side("before", {"resnet50": (10, 11, 12)})


def test_the_mounts_of_a_storage_are_sides_of_their_own() -> None:
    found = sides("run1", storage(nas=[10, 11], nvme=[100, 99]))
    assert [side.name for side in found] == ["run1: /nas", "run1: /nvme"]
    (row,) = compared(*found)
    assert (row.what, row.first, row.other) == ("read, 1 client", (10, 11), (100, 99))


def test_what_has_nothing_in_common_is_not_compared() -> None:
    before, after = sides("a", training(1, 2)), sides("b", training(1, 2, model="vgg16"))
    with pytest.raises(ComparisonError, match="a and b have no part"):
        compared(before[0], after[0])
    with pytest.raises(ComparisonError, match="poems has none of images_per_second"):
        sides("c", summary("poems", [{"name": "sonnet", "lines": 14}]))


def written(folder: Path, one: dict[str, Any]) -> str:
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(one))
    return str(folder)


def test_runs_of_different_kinds_are_refused(tmp_path: Path) -> None:
    both = [written(tmp_path / "a", training(1, 2)), written(tmp_path / "b", storage(nas=[1.0]))]
    with pytest.raises(ComparisonError, match="storage and training: compare like with like"):
        compare.compare(both)
    with pytest.raises(ComparisonError, match="is the run finished"):
        compare.compare([both[0], str(tmp_path / "c")])
    with pytest.raises(ComparisonError, match="nothing to be compared with"):
        compare.compare(both[:1])


def test_runs_whose_folders_have_the_same_name_are_all_compared(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name / "training-1x4", training(speed, speed))
        for name, speed in (("one", 1.0), ("two", 2.0), ("three", 3.0))
    ]
    _, found, _ = compare.compare(paths)
    assert {pair: row.ratio for pair, (row,) in found.items()} == {
        (paths[0], paths[1]): 2.0,
        (paths[0], paths[2]): 3.0,
    }


def test_an_image_is_compared_with_none_in_words_and_in_a_figure(tmp_path: Path) -> None:
    bare = written(tmp_path / "bare", training(1000, 1010, 990))
    image = written(tmp_path / "image", training(995, 985, 1005))
    unit, found, _ = compare.compare([bare, image])
    said = markdown(unit, found)
    assert (
        "| resnet50 | bare | 1,000 | image | 995 | 0.995 | -0.5 % | 0.975 to 1.015 | within" in said
    )
    assert compare.figure(unit, found).startswith(b"\x89PNG")


def test_the_program_leaves_a_summary(tmp_path: Path) -> None:
    runs = [
        written(tmp_path / "jpeg", training(10, 11)),
        written(tmp_path / "tf", training(20, 22)),
    ]
    argv = [sys.executable, "-B", str(PROGRAM), *runs, "--results", str(tmp_path / "out")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    said = (
        "| resnet50 | jpeg | 10.5 | tf | 21 | 2.000 | +100 % | 1.818 to 2.200 | faster, by chance"
    )
    assert said in done.stdout
    left = json.loads((tmp_path / "out" / "summary.json").read_text())
    jsonschema.validate(left, json.loads(PROGRAM.with_name("schema.json").read_text()))
    (part,) = left["parts"]
    assert part["verdict"] == "faster, by chance 1 time in 3"
    wrong = subprocess.run(
        [*argv[:3], runs[0], *argv[5:]], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 1
    assert "nothing to be compared with" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_storage_that_hung_on_one_side_is_compared(tmp_path: Path) -> None:
    hung = written(tmp_path / "hung", storage(nas=[0.0, 0.0]))
    later = written(tmp_path / "later", storage(nas=[0.0, 0.0]))
    other = written(tmp_path / "other", storage(nas=[10.0, 11.0]))
    for first, then, gain in ((hung, other, "from 0"), (other, hung, "-100"), (hung, later, "+0")):
        results = tmp_path / gain
        argv = [sys.executable, "-B", str(PROGRAM), first, then, "--results", str(results)]
        subprocess.run(argv, capture_output=True, check=True, timeout=60)
        text = (results / "summary.json").read_text()
        assert json.loads(text)["parts"][0]["gain"].startswith(gain)
        assert "Infinity" not in text


def test_what_was_measured_again_is_compared_again(tmp_path: Path) -> None:
    runs = [written(tmp_path / "a", training(10, 11)), written(tmp_path / "b", training(20, 22))]
    argv = [sys.executable, "-B", str(PROGRAM), *runs, "--results", str(tmp_path / "out")]
    for speeds, ratio in (((20, 22), 2.0), ((100, 110), 10.0)):
        (tmp_path / "b" / "summary.json").write_text(json.dumps(training(*speeds)))
        subprocess.run(argv, capture_output=True, check=True, timeout=60)
        (part,) = json.loads((tmp_path / "out" / "summary.json").read_text())["parts"]
        assert part["ratio"] == pytest.approx(ratio)


def test_the_papers_differences_stand_below_ones_own() -> None:
    before, after = sides("bare", training(100)), sides("image", training(98))
    said = markdown("images/s", {("bare", "image"): compared(before[0], after[0])})
    assert "The papers' containers were within 1.9% of bare metal" in said
    assert "vgg16 1.23 to 1.4 times, alexnet 5 times as fast." in said
    assert "papers" not in markdown("MB/s", {})


def on(card: str, *speeds: float) -> dict[str, Any]:
    return {**training(*speeds), "hosts": [{"gpus": [{"name": card}] * 4}]}


@pytest.mark.parametrize(
    ("times", "gain"),
    [(1.26, "+26 %"), (1.52, "+52 %"), (2.03, "+103 %"), (2.24, "+124 %"), (3.7, "3.7 times")],
)
def test_a_generation_against_the_one_before_has_the_papers_words(
    tmp_path: Path, times: float, gain: str
) -> None:
    older = written(tmp_path / "older", on("Tesla P100-SXM2-16GB", 100))
    newer = written(tmp_path / "newer", on("Tesla V100-SXM2-16GB", 100 * times))
    unit, found, measured = compare.compare([older, newer])
    said = markdown(unit, found, measured)
    assert f"| {times:.3f} | {gain} |" in said
    assert "- newer has V100, older has P100. The papers: V100 over P100 in ResNet-50" in said
    assert (
        "training 26 % (TensorFlow, fp32, batch 128), 52 % (MXNet, fp32, batch 64), "
        "103 % (TensorFlow, mixed, batch 256), 124 % (MXNet, mixed, batch 128); "
        "in inference 3.7 times."
    ) in said
    assert "NVLink" not in said


def test_nvlink_against_pcie_has_the_papers_words(tmp_path: Path) -> None:
    pcie = written(tmp_path / "pcie", on("Tesla V100-PCIE-16GB", 100))
    nvlink = written(tmp_path / "nvlink", on("Tesla V100-SXM2-16GB", 112))
    unit, found, measured = compare.compare([pcie, nvlink])
    said = markdown(unit, found, measured)
    assert "| 1.120 | +12 % |" in said
    assert "- nvlink is on NVLink, pcie on PCIe. The papers: NVLink over PCIe 5 to 20 % in" in said
    assert "4 GPUs with fp32, 3.7 times with MXNet, 3.2 times with Caffe2." in said
    assert "P100" not in said


@pytest.mark.parametrize(
    ("card", "generation", "link"),
    [
        ("NVIDIA H100 80GB HBM3", "H100", None),
        ("NVIDIA A100-SXM4-40GB", "A100", "NVLink"),
        ("NVIDIA A100-PCIE-40GB MIG 1g.5gb", "A100", "PCIe"),
        ("Tesla T4", "T4", None),
        ("NVIDIA L40S", "L40S", None),
    ],
)
def test_a_card_is_told_by_its_name(card: str, generation: str, link: str | None) -> None:
    side = Side("a", {}, (card,))
    assert (side.generation, side.link) == (generation, link)
    assert (Side("a", {}).generation, Side("a", {}).link) == (None, None)
