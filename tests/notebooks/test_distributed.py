"""What the training computes by itself, in the kernel's own environment."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.instance import ROOT

TRAINING = ROOT / "notebook_templates" / "distributed"
PROGRAM = """
import json
import images, resnet, train_resnet as t

step = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "12",
        "SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
        "SLURM_LAUNCH_NODE_IPADDR": "10.1.2.3"}
batch = {name: step[name] for name in ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID")}
shares = [images.Share(103, 4, rank, 3, seed=1) for rank in range(3)]
print(json.dumps({
    "in a step": vars(t.place(step)),
    "in a batch script": vars(t.place(batch)),
    "rates": [t.rate_at(n, 100, 1.0, 0.1) for n in (0, 4, 9, 10, 55, 99)],
    "mounts": [images.mount_of(rank, ["/a", "/b", "/c"]) for rank in range(4)],
    "epochs": [[list(share.epoch(epoch)) for share in shares] for epoch in (0, 1)],
    "resumed": list(shares[1].epoch(1, first_step=5)),
    "weights": {
        model: sum(p.numel() for p in resnet.build(model, 1000).parameters())
        for model in ("50", "101", "152")
    },
}))
"""


@pytest.fixture(scope="module")
def found(python_of: Callable[[str], Path]) -> dict[str, Any]:
    done = subprocess.run(
        [str(python_of("pytorch")), "-B", "-c", PROGRAM],
        cwd=TRAINING,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return dict(json.loads(done.stdout))


def test_a_process_finds_its_place_by_slurms_variables(found: dict[str, Any]) -> None:
    place = found["in a step"]
    assert (place["rank"], place["ranks"], place["local_rank"], place["local_ranks"]) == (
        5,
        8,
        1,
        4,
    )
    assert place["address"] == "10.1.2.3"
    assert 61_000 <= place["port"] < 65_000


def test_a_batch_script_without_srun_is_one_process(found: dict[str, Any]) -> None:
    assert found["in a batch script"]["ranks"] == 1


def test_the_rate_rises_to_its_peak_and_falls_to_nothing(found: dict[str, Any]) -> None:
    first, rising, peak, after, middle, last = found["rates"]
    assert (first, rising, peak, after) == pytest.approx((0.1, 0.5, 1.0, 1.0))
    assert middle == pytest.approx(0.5)
    assert 0 < last < 0.001


def test_a_process_reads_from_rank_modulo_mounts(found: dict[str, Any]) -> None:
    assert found["mounts"] == ["/a", "/b", "/c", "/a"]


def test_in_an_epoch_each_image_is_seen_once_by_one_process(found: dict[str, Any]) -> None:
    for number, ranks in enumerate(found["epochs"]):
        seen = [tuple(at) for steps in ranks for step in steps for at in step]
        assert len(seen) == len(set(seen)) == 103 // 12 * 12
        assert {epoch for epoch, _ in seen} == {number}
    assert found["epochs"][0] != [
        [[[0, index] for _, index in step] for step in steps] for steps in found["epochs"][1]
    ]


def test_a_resumed_process_goes_on_with_the_images_that_came_next(found: dict[str, Any]) -> None:
    assert found["resumed"] == found["epochs"][1][1][5:]


def test_the_networks_have_as_many_weights_as_published(found: dict[str, Any]) -> None:
    # With 1,000 classes: He et al. 2015; the figures that torchvision's documentation gives.
    assert found["weights"] == {"50": 25_557_032, "101": 44_549_160, "152": 60_192_808}
