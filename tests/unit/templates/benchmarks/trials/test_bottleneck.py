"""What a training most likely waited for, on hand-made means."""

from typing import Any

import pytest

from trials.bottleneck import Busy, busy, verdict


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Busy(gpu=0.98, cores=0.5, data_wait=0.2), "98% of the time: nothing held them up"),
        (Busy(gpu=0.6, cores=0.95, data_wait=0.3), "the cores that decode are busy (95%)"),
        (Busy(gpu=0.6, cores=0.3, data_wait=0.3, link=0.9), "the network link is full (90%)"),
        (Busy(gpu=0.6, cores=0.3, data_wait=0.3, link=0.1), "the storage is slow"),
        (Busy(gpu=0.6, cores=0.3, data_wait=0.3), "the storage is slow"),
        (Busy(gpu=0.8, cores=0.3, data_wait=0.1, all_reduce=0.15), "15% of a step is the exchange"),
        (Busy(gpu=0.8, cores=0.3, data_wait=0.0, all_reduce=0.0), "steps are too short"),
        (Busy(gpu=0.8, cores=0.3), "steps are too short"),
        (Busy(gpu=None, cores=0.99), "No GPU: the cores did the computing"),
        (Busy(gpu=None, cores=0.99, data_wait=0.5), "No GPU. 50% of a step is waiting for data"),
    ],
)
def test_the_likely_bottleneck_is_named(seen: Busy, words: str) -> None:
    assert words in verdict(seen).replace("in 98% of the time", "98%")


def line(gpus: list[float], cores: float, received: float) -> dict[str, Any]:
    return {"gpu_shares": gpus, "cpu_share": cores, "received_mb_per_second": received}


def test_means_are_over_all_gpus_and_nodes() -> None:
    samples = {"a": [line([1.0, 0.5], 0.2, 100)], "b": [line([0.0, 0.5], 0.6, 300)]}
    found = busy(samples, data_wait=0.1, link_mb_per_second=400)
    assert found == Busy(gpu=0.5, cores=0.4, data_wait=0.1, link=0.5)


def test_nothing_is_said_without_samples() -> None:
    assert busy({"a": []}) is None
    assert busy({"a": [line([], 0.5, 0)]}) == Busy(gpu=None, cores=0.5)
