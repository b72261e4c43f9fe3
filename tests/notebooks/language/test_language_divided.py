"""A model that is divided over processes: only the first has all of it in memory at any time."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.language.test_language import LANGUAGE
from tests.notebooks.running import TRAINING, as_by_srun

MAKE = """
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(1)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=500, hidden_size=512, intermediate_size=1536, num_hidden_layers=14,
    num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=64,
))
model.save_pretrained(sys.argv[1])
print(4 * sum(weight.numel() for weight in model.parameters()))
"""
DIVIDE = """
import argparse, json, os, resource, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import causal_lm, fully_sharded, torch
from process_group import DataParallel
from ranks import place

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

folder, results = map(Path, sys.argv[3:])
group = DataParallel(place(os.environ))
before = peak()
s = argparse.Namespace(length=64, precision="fp32")
model = fully_sharded.divided(folder, s, group, None)
took = peak() - before
tokens = torch.arange(64).view(1, 64)
with torch.no_grad():
    apart = model(input_ids=tokens).logits
    whole = causal_lm.read(folder, torch.float32, 64)(input_ids=tokens).logits
found = {"took": took, "difference": (apart - whole).abs().max().item(), "training": model.training}
(results / f"{group.here.rank}.json").write_text(json.dumps(found))
group.leave()
os._exit(0)
"""


@pytest.mark.timeout(300)
def test_only_the_first_process_has_a_whole_model_in_memory(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    # One whose angles of positions are in no file, but are computed when it is made.
    python, folder = str(python_of("pytorch")), tmp_path / "model"
    made = subprocess.run([python, "-c", MAKE, str(folder)], check=True, capture_output=True)
    size = int(made.stdout)
    program = [python, "-B", "-c", DIVIDE, str(LANGUAGE), str(TRAINING), str(folder), str(tmp_path)]
    assert as_by_srun(program, 2) == [0, 0]
    found: list[dict[str, Any]] = [
        json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)
    ]
    assert [one["difference"] < 1e-4 for one in found] == [True, True], found
    assert [one["training"] for one in found] == [False, False]
    # Each has its half, and what PyTorch loads for that.
    assert found[0]["took"] - found[1]["took"] > 0.9 * size, (found, size)
