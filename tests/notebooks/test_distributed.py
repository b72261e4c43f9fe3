"""What the trainings compute by themselves, in the kernels' own environments."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT

TRAINING = ROOT / "notebook_templates" / "distributed"
PUBLISHED = {"50": 25_557_032, "101": 44_549_160, "152": 60_192_808}
COUNTS = {
    "pytorch": """
import json, resnet
count = lambda model: sum(p.numel() for p in resnet.build(model, 1000).parameters())
print(json.dumps({model: count(model) for model in ("50", "101", "152")}))
""",
    "tensorflow": """
import json, resnet_keras
count = lambda model: sum(
    w.value.shape.num_elements() for w in resnet_keras.build(model, 1000, 224).trainable_weights)
print(json.dumps({model: count(model) for model in ("50", "101", "152")}))
""",
}


@pytest.mark.parametrize("framework", sorted(COUNTS))
def test_the_networks_have_as_many_weights_as_published(
    framework: str, python_of: Callable[[str], Path]
) -> None:
    # With 1,000 classes: He et al. 2015; the figures that torchvision's documentation gives.
    done = subprocess.run(
        [str(python_of(framework)), "-B", "-c", COUNTS[framework]],
        cwd=TRAINING,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == PUBLISHED
