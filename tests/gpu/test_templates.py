"""Templates' programs on a real GPU: those that no benchmark of ours runs there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.training import tiny_models

TEMPLATES = ROOT / "notebook_templates"
PRECISIONS = """
import json, sys
from pathlib import Path
import numpy as np, torch
sys.path += [f"{sys.argv[1]}/{name}" for name in ("inference", "distributed")]
import precisions
from networks import resnet
images = np.random.default_rng(1).random((4, 3, 64, 64), dtype=np.float32)
torch.manual_seed(1)
network = resnet.build("50", classes=10).eval()
with torch.inference_mode():
    wanted = network(torch.from_numpy(images)).numpy()
calibration = precisions.Calibration(images, 2, 2)
found = []
for one in precisions.build(network, Path(sys.argv[2]), calibration, images[:2]):
    if isinstance(one, precisions.Missing):
        found.append([one.name, "", one.lacking, None])
        continue
    off = float(abs(one.run(images) - wanted).max() / abs(wanted).max())
    found.append([one.name, one.engine, "", off])
print(json.dumps(found))
"""
SERVED = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from completions import Sampling
from loaded_models import read
from model_folders import described
model = read(described(Path(sys.argv[2])))
greedy = Sampling(max_tokens=20, temperature=0.0)
alone = model.written([model.to_continue("This License is", greedy)])[0]
together = model.written([model.to_continue(text, greedy) for text in ("This License is", "is")])
where = {str(weight.device) for weight in model._network.parameters()}
print(json.dumps([alone.text, together[0].text, alone.tokens, sorted(where)]))
"""


def said(*argv: object) -> str:
    """Run a program of Python's to its good end; return what it printed."""
    ended = subprocess.run(
        [sys.executable, "-B", *map(str, argv)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_each_precision_is_computed_on_the_gpu_or_says_what_is_missing(tmp_path: Path) -> None:
    found = json.loads(said("-c", PRECISIONS, TEMPLATES, tmp_path).splitlines()[-1])
    assert [name for name, *_ in found] == ["fp32", "fp16", "int8"]
    most = {"fp32": 1e-3, "fp16": 2e-2, "int8": 0.2}
    for name, engine, lacking, off in found:
        if lacking:
            assert name == "int8"
            assert "TensorRT" in lacking
        else:
            assert "CPU" not in engine
            assert off < most[name]


def test_a_served_model_writes_on_the_gpu(tmp_path: Path) -> None:
    tiny_models.make(Path(sys.executable), tiny_models.text(tmp_path / "model", is_endless=True))
    answer = json.loads(
        said("-c", SERVED, TEMPLATES / "serving", tmp_path / "model").splitlines()[-1]
    )
    alone, together, tokens, where = answer
    assert alone == together
    assert tokens == 20
    assert where == ["cuda:0"]


def test_trees_grow_on_the_gpu_and_resume_to_the_last_bit(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="this machine has no XGBoost")
    assert xgboost.build_info()["USE_CUDA"], "this build of XGBoost is for CPUs"
    program = TEMPLATES / "tables/train_trees.py"
    short = ["--checkpoint-rounds", 20, "--early-stopping-rounds", 200, "--device", "cuda"]

    def train(name: str, rounds: int) -> dict[str, object]:
        said(program, "--results", tmp_path / name, "--rounds", rounds, *short)
        return dict(json.loads((tmp_path / name / "summary.json").read_text()))

    whole = train("whole", 120)
    assert whole["device"] == "cuda"
    assert train("again", 120)["scores"] == whole["scores"]
    train("parts", 40)
    assert train("parts", 120)["scores"] == whole["scores"]
    models = [(tmp_path / name / "model/model.ubj").read_bytes() for name in ("whole", "parts")]
    assert models[0] == models[1]
