"""The tables of an inference measurement, of networks over ImageNet."""

from typing import Any

from measurement import papers
from reports import inference

FOUND = {
    "name": "accuracy of resnet50",
    "network": "resnet50",
    "weights": "resnet50-0676ba61.pth",
    "images": 48_750,
    "calibration_images": 1_250,
    "top1": {"fp32": 0.76130, "fp16": 0.76128, "int8": 0.76022},
    "top5": {"fp32": 0.92862, "fp16": 0.92862, "int8": 0.9281},
    "lacking": {},
    "published": [0.7613, 0.92862],
}


def summary(*parts: dict[str, Any], **left_out: str) -> dict[str, Any]:
    return {
        "parts": [{**part, "times": [0, 1]} for part in parts],
        "figures": {"left_out": left_out},
        "configuration": {"calibration_batches": "50", "calibration_batch": "25"},
        "hosts": [],
    }


def test_networks_stand_in_one_table_beside_the_papers_figure() -> None:
    words = inference.accuracy(summary(FOUND, vgg16="/w has no weights of it"))
    lines = words.splitlines()
    assert lines[2:6] == [
        "| resnet50 | fp32 | 76.13 % | 92.86 % | +0.00 |  | 76.13 %, 92.86 % |",
        "| resnet50 | fp16 | 76.13 % | 92.86 % | -0.00 |  |  |",
        "| resnet50 | int8 | 76.02 % | 92.81 % | -0.11 | -0.18 to -0.02 |  |",
        "| vgg16 | left out: /w has no weights of it |  |  |  |  |  |",
    ]
    assert papers.INT8_POINTS == (-0.18, -0.02)
    said = "images: 48,750; int8 calibrated on the first 50 batches of 25, which are not among"
    assert said in words
    assert "(!)" not in words


def test_of_an_older_result_it_is_said_that_the_calibrations_images_were_tested() -> None:
    older = {name: value for name, value in FOUND.items() if name != "calibration_images"}
    words = inference.accuracy(summary({**older, "images": 50_000}))
    assert "images: 50,000; int8 calibrated on 50 batches of 25 of them. Weights" in words


def test_what_is_far_below_the_published_figure_is_marked() -> None:
    swapped = {**FOUND, "top1": {"fp32": 0.001}, "top5": {"fp32": 0.005}}
    words = inference.accuracy(summary(swapped))
    assert "| 76.13 %, 92.86 % (!) |" in words
    assert "in another order?" in words
    # With few images, chance alone is as much.
    assert "(!)" not in inference.accuracy(summary({**swapped, "images": 999}))


def test_a_precision_that_could_not_be_had_says_why() -> None:
    without = {**FOUND, "top1": {"fp32": 0.76}, "top5": {"fp32": 0.92}}
    words = inference.accuracy(summary({**without, "lacking": {"int8": "no TensorRT"}}))
    assert "| resnet50 | int8 | not measured: no TensorRT |  |  |  |  |" in words
