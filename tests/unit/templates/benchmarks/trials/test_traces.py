"""How a training's figures follow from its steps: cases that one can work out on paper."""

from typing import Any

import pytest

import scaling
from measurement.papers import MIXED_OVER_FP32, SPEED_UPS
from measurement.papers import trainings as of_papers
from trials import trial
from trials.protocol import ProtocolError, batch_for, decode_threads, iterations, mean_of
from trials.traces import (
    StepTime,
    Trace,
    images_per_second,
    of_whole_steps,
    split,
    step_variation,
    throughput,
)

# 0.25 s a step: a tenth of it waits for images.
LAP = StepTime(data=0.025, network=0.2, optimiser=0.025)


def test_a_trace_of_known_throughput_gives_that_throughput() -> None:
    # 64 images in 0.25 s.
    assert images_per_second([Trace(64, [LAP] * 8)]) == pytest.approx(256)
    # Two processes, of which one takes 0.5 s: 128 images in that time.
    slow = Trace(64, [StepTime(0.05, 0.4, 0.05)] * 8)
    assert images_per_second([Trace(64, [LAP] * 8), slow]) == pytest.approx(256)


def test_known_waits_give_that_share() -> None:
    shares = split([Trace(64, [LAP, LAP])]).shares()
    assert shares == pytest.approx(
        {"data": 0.1, "forward_backward": 0.8, "all_reduce": 0.0, "optimiser": 0.1}
    )
    assert sum(shares.values()) == pytest.approx(1)


def test_the_all_reduce_is_what_a_step_takes_longer_than_alone() -> None:
    # 0.2 s with the exchange of gradients, 0.15 s without; and a process that is no faster alone.
    other = Trace(64, [LAP] * 4, [StepTime(0.0, 0.15, 0.02)] * 2)
    same = Trace(64, [LAP] * 4, [StepTime(0.0, 0.21, 0.02)] * 2)
    assert split([other]).all_reduce == pytest.approx(0.05)
    assert split([same]).all_reduce == 0
    both = split([other, same])
    assert both.all_reduce == pytest.approx(0.025)
    assert both.seconds == pytest.approx(0.25)


def test_a_single_step_that_was_held_up_is_no_all_reduce() -> None:
    held_up = [*[LAP] * 9, StepTime(0.025, 2.2, 0.025)]
    found = split([Trace(64, held_up, [LAP] * 5)])
    assert found.all_reduce == 0
    # Nine times 0.2 s and once 2.2 s.
    assert found.forward_backward == pytest.approx(0.4)


def test_steps_vary_by_their_deviation_over_their_mean() -> None:
    # 0.9 and 1.1 s: 0.1 of a mean of 1.
    steady, varied = [StepTime(0, 1, 0)] * 2, [StepTime(0, 0.9, 0), StepTime(0, 1.1, 0)]
    assert step_variation([Trace(1, steady), Trace(1, varied)]) == pytest.approx(0.1)


def test_iterations_are_epochs_times_images_over_batch_times_gpus() -> None:
    # 90 epochs of ImageNet with a batch of 64 on 4 GPUs: 115,305,030 / 256.
    assert iterations(90, 1_281_167, 64, 4) == 450_410
    with pytest.raises(ProtocolError, match="set a smaller batch"):
        iterations(1, 100, 64, 2)


@pytest.mark.parametrize(("cores", "gpus", "threads"), [(40, 4, 24), (40, 8, 8), (8, 4, 1)])
def test_four_cores_a_gpu_do_not_decode(cores: int, gpus: int, threads: int) -> None:
    assert decode_threads(cores, gpus) == threads


def test_numbers_of_16_bits_double_the_batch() -> None:
    assert [batch_for(name, 64) for name in ("fp32", "tf32", "bf16", "fp16")] == [64, 64, 128, 128]


def test_runs_that_differ_by_more_than_two_percent_are_flagged() -> None:
    # 990 to 1,010: 20 of a mean of 1,000.
    steady = mean_of([990, 1000, 1000, 1000, 1010], [0.01] * 5)
    assert (steady.images_per_second, steady.run_variation) == pytest.approx((1000, 0.02))
    assert steady.is_steady
    assert not mean_of([980, 1000, 1010], [0.01] * 3).is_steady
    assert not mean_of([1000, 1000], [0.01, 0.05]).is_steady
    assert mean_of([1000], [0.01]).is_steady is None


def run(speed: float) -> dict[str, object]:
    seconds = {"data": 0.1, "forward_backward": 0.6, "all_reduce": 0.2, "optimiser": 0.1}
    return {
        "images_per_second": speed, "step_variation": 0.01, "step_seconds": seconds,
        "model": "resnet50", "precision": "bf16", "batch": 128, "processes": 4, "nodes": 1,
        "device": "V100", "size": 224, "steps": 100,
        "caches_dropped": speed < 1000, "expected_hit_rate": 0.035,
    }  # fmt: skip


def test_the_mean_of_runs_is_said_with_its_variation() -> None:
    mean = trial.mean([run(950.0), run(1000.0), run(1050.0)])
    assert mean["shares"]["all_reduce"] == pytest.approx(0.2)
    # Caches answered in some of the runs.
    assert (mean["caches_dropped"], mean["expected_hit_rate"]) == (False, 0.035)
    # Runs of before an upgrade say nothing of the NAS, and of some flushed runs none can be said.
    assert mean["nas_flushed_by"] is None
    flushed = {"nas_flushed_by": "/opt/flush"}
    assert trial.mean([run(950.0) | flushed, run(960.0)])["nas_flushed_by"] is None
    assert trial.mean([run(950.0) | flushed] * 2)["nas_flushed_by"] == "/opt/flush"
    assert trial.words(mean) == (
        "resnet50 bf16 on 4: 1,000 images/s, mean of 3, variation of runs 10.0 % (!), "
        "of steps 1.0 %"
    )


def test_of_steps_that_were_timed_as_a_whole_no_parts_are_made_up() -> None:
    timed = [Trace(8, [StepTime(0.1, 0.3, 0.0), StepTime(0.3, 0.5, 0.0)])]
    seconds = of_whole_steps(timed)
    assert seconds == pytest.approx({"data": 0.2, "training": 0.4})
    mean = trial.mean([run(1000.0) | {"framework": "tensorflow", "step_seconds": seconds}])
    assert mean["shares"] == pytest.approx({"data": 1 / 3, "training": 2 / 3})
    assert trial.words(mean).startswith("resnet50 bf16 on 4 with TensorFlow: 1,000 images/s")
    sample = {"gpu_shares": [0.5], "cpu_share": 0.2, "received_mb_per_second": 0.0}
    runs = [{"throughput": [(0.0, 0.0), (2.0, 1000.0)]}]
    samples = {"node": [{"time": 1.0, **sample}]}
    # How long gradients took is not known.
    said = trial.judged(mean | {"shares": {"data": 0.0}}, runs, samples, None)
    assert "No time was lost on data: steps are too short" in said["verdict"]


def test_one_node_is_filled_before_others_join() -> None:
    assert scaling.placements(9, 8) == [
        (1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8), (9, 8),
    ]  # fmt: skip
    assert scaling.placements(1, 1) == [(1, 1)]
    assert scaling.placements(2, 10)[-3:] == [(1, 8), (1, 10), (2, 10)]


def test_a_speed_up_is_over_one_process_and_efficiency_over_their_number() -> None:
    points = [
        {"processes": 1, "images_per_second": 740},
        {"processes": 8, "images_per_second": 5844},
    ]
    alone, eight = scaling.speed_ups(points)
    assert (alone["speed_up"], alone["efficiency"]) == (1, 1)
    # 5,844 / 740, and an eighth of it.
    assert eight["speed_up"] == pytest.approx(7.897, abs=5e-4)
    assert eight["efficiency"] == pytest.approx(0.987, abs=5e-4)


def test_a_network_that_is_not_known_is_named() -> None:
    assert trial.chosen("alexnet,vgg16", ("alexnet", "vgg16"), "models") == ["alexnet", "vgg16"]
    with pytest.raises(ProtocolError, match="--models lenet is not one of alexnet, vgg16"):
        trial.chosen("lenet", ("alexnet", "vgg16"), "models")


def test_the_papers_figures_load_and_agree_with_each_other() -> None:
    assert of_papers("resnet50")["PyTorch v1.5, V100-PCIe"] == {1: 740, 8: 5844, 10: 7251}
    assert of_papers("inception3") == {"V100-PCIe": {1: 520, 8: 4035, 10: 4939}}
    assert of_papers("resnet152") == {"V100-PCIe": {8: 2611}}
    # The speed-up on 8 GPUs that they name is GoogLeNet's: 12,937 / 1,658.
    (best,) = (one for one in SPEED_UPS if one.gpus == 8)
    googlenet = of_papers("googlenet")["V100-PCIe"]
    assert googlenet[8] / googlenet[1] == pytest.approx(best.value, abs=0.05)
    assert MIXED_OVER_FP32 == (0.65, 0.91)


def test_the_course_of_a_training_is_by_moments() -> None:
    # 64 images of each of two processes in 0.25 s, then in 0.5 s.
    slow = StepTime(0.05, 0.4, 0.05)
    every = [Trace(64, [LAP] * 4 + [slow] * 4), Trace(64, [LAP] * 8)]
    found = throughput(every, began=1000.0, points=2)
    assert found == [(1000.0, 0.0), (1001.0, 512.0), (1003.0, 256.0)]


def test_what_held_a_training_up_is_judged_by_its_own_time() -> None:
    def line(second: float, gpu: float) -> dict[str, Any]:
        return {
            "time": second,
            "gpu_shares": [gpu],
            "cpu_share": 0.5,
            "received_mb_per_second": 90.0,
        }

    runs = [{"throughput": [(10.0, 0.0), (20.0, 100.0)]}]
    samples = {"a": [line(5, 0.0), line(15, 0.6), line(20, 0.8), line(25, 0.0)]}
    mean = {"shares": {"data": 0.3, "all_reduce": 0.0}}
    found = trial.judged(mean, runs, samples, link=100.0)
    assert found["use"]["gpu"] == pytest.approx(0.7)
    assert "the network link is full (90%)" in found["verdict"]
    assert trial.judged(mean, runs, {"a": samples["a"][:1]}, link=None) == {}
