"""A step of a language model's training: in parts, over processes, with its rate and decay."""

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.language.test_language import LANGUAGE, finetune, finetuning, lines_of
from tests.notebooks.running import as_by_srun

TOLERANCE = 2e-4
"""Between weights after five steps of 2e-3: a tenth of one step. It was 8e-5 at most, of rounding
that Adam makes larger where gradients are tiny."""
DIFFERENCE = """
import json, sys
from pathlib import Path
from safetensors.torch import load_file
first, *others = [load_file(next(Path(name).glob("*.safetensors"))) for name in sys.argv[1:]]
print(json.dumps([
    max((first[name] - other[name]).abs().max().item() for name in first) for other in others
]))
"""
DECAYED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import causal_lm
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=8, n_embd=8, n_layer=1, n_head=1))
names = {id(weight): name for name, weight in model.named_parameters()}
print(json.dumps([
    [group["weight_decay"], sorted(names[id(weight)] for weight in group["params"])]
    for group in causal_lm.decayed(model.parameters(), float(sys.argv[2]))
]))
"""
TAGS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps([[one.step, one.value] for one in events.Scalars("perplexity")]))
"""
HELD = """
import argparse, json, sys
sys.path.insert(0, sys.argv[1])
import animals, corpus, transformers
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[2])
s = argparse.Namespace(
    seed=int(sys.argv[3]), length=128, held_out=0.1, held_out_blocks=32, questions=32, data=""
)
read = corpus.Instructions(tokenizer, animals.conversations(1), s)
print(json.dumps([one.turns[-2].content for one in read._asked]))
"""
# Some conversations begin with a question that others end with.
LEARNT = """
import argparse, json, sys
sys.path.insert(0, sys.argv[1])
import animals, corpus, transformers
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[2])
s = argparse.Namespace(
    seed=1, length=128, held_out=0.2, held_out_blocks=32, questions=32, data=""
)
read = corpus.Instructions(tokenizer, animals.conversations(1), s)
learnt = "".join(tokenizer.decode(row) for row in read.train._rows)
print(json.dumps([one.turns[-2].content in learnt for one in read._asked]))
"""
PEAK = """
import sys
sys.path[:0] = sys.argv[1:]
from types import SimpleNamespace
import held_out, torch

class Group:
    here, is_on_gpus = SimpleNamespace(rank=1, ranks=2), True
    def sums(self, *mine):
        return [one + other for one, other in zip(mine, (9_000_000_000, 0))]

torch.cuda.max_memory_allocated = lambda: 7_000_000_000
print(held_out.peak_gpu_memory_bytes(Group()))
"""


@pytest.fixture(scope="module")
def base(preloaded: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model before it has learnt anything: a step is the same from wherever it begins."""
    folder = tmp_path_factory.mktemp("language")
    make = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import tiny; "
    make += "tiny.STEPS = 0; tiny.make(Path(sys.argv[2]), 1)"
    argv = [str(preloaded("pytorch")), "-B", "-c", make, str(LANGUAGE), str(folder / "base")]
    subprocess.run(argv, check=True, capture_output=True, timeout=280)
    return folder / "base"


def said_by(python: Path, program: str, *words: object) -> Any:
    argv = [str(python), "-B", "-c", program, *map(str, words)]
    return json.loads(subprocess.run(argv, check=True, capture_output=True, timeout=120).stdout)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("weights", "result"), [("lora", "adapter"), ("all", "model")])
def test_a_step_in_parts_and_on_two_processes_is_that_of_one_large_batch(
    weights: str, result: str, base: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, runs = preloaded("pytorch"), [tmp_path / name for name in ("one", "parts", "processes")]
    # Conversations of one and of two answers: parts have different numbers of tokens to learn.
    same = {"data": "animals", "model": base, "weights": weights, "questions": 1, "new-tokens": 1}
    same |= {"steps": 5, "held-out-blocks": 4, "report-every": 1, "rising": 1}
    finetune(python, runs[0], batch=8, **same)
    finetune(python, runs[1], batch=2, accumulate=4, **same)
    on_two = finetuning(python, runs[2], batch=2, accumulate=2, **same)
    assert as_by_srun(on_two, 2) == [0, 0]
    apart = said_by(python, DIFFERENCE, *(run / result for run in runs))
    assert max(apart) < TOLERANCE, apart
    wanted = [line["loss"] for line in lines_of(runs[0]).values()]
    assert len(wanted) == 5
    for run in runs[1:]:
        assert [line["loss"] for line in lines_of(run).values()] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_compiled_training_learns_what_another_does(
    base: Path, python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    # Conversations: the width of a batch changes from step to step.
    python, same = python_of("pytorch"), {"data": "animals", "model": base, "weights": "all"}
    same |= {"steps": 4, "held-out-blocks": 4, "report-every": 1, "batch": 2, "accumulate": 2}
    same |= {"questions": 1, "new-tokens": 1}
    losses = []
    for compiles in ("no", "yes"):
        said = finetune(python, tmp_path / compiles, compile=compiles, **same)
        assert "not compiled" not in said
        losses.append([line["loss"] for line in lines_of(tmp_path / compiles).values()])
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


@pytest.mark.timeout(600)
def test_a_broken_run_with_a_cosine_and_a_decay_is_the_unbroken_one(
    base: Path, preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, whole, broken = preloaded("pytorch"), tmp_path / "whole", tmp_path / "broken"
    same = {"data": "animals", "model": base, "questions": 1, "new-tokens": 1, "batch": 2}
    same |= {"held-out-blocks": 4, "report-every": 2, "rising": 2, "accumulate": 2}
    cosine = {"schedule": "cosine", "weight-decay": 0.1, "schedule-steps": 8}
    finetune(python, whole, steps=8, **same, **cosine)
    finetune(python, broken, steps=4, **same, **cosine)
    assert "resumed after step 4 of 8" in finetune(python, broken, steps=8, **same, **cosine)
    assert said_by(python, DIFFERENCE, whole / "adapter", broken / "adapter") == [0.0]
    rates = [line["rate"] for line in lines_of(broken).values()]
    assert rates == pytest.approx([2e-3, 2e-3 * 0.933, 2e-3 * 0.5, 2e-3 * 0.067], rel=1e-2)

    # Where the rate falls to its end is part of the training, and what else shapes a step.
    other = {**cosine, "weight-decay": 0.2, "schedule-steps": 16}
    said = finetune(python, broken, steps=16, **{**same, "accumulate": 4}, **other)
    for words in ("accumulate = 2, not 4", "schedule_steps = 8, not 16", "decay = 0.1, not 0.2"):
        assert words in said
    assert "the learning rate is 0 from 8 (schedule_steps) on" in finetune(
        python, broken, steps=9, **same, **cosine
    )

    # A training of before there were these settings goes on as it was begun.
    kept = broken / "settings.json"
    older = json.loads(kept.read_text())
    for name in ("accumulate", "schedule", "schedule_steps", "weight_decay"):
        del older[name]
    kept.write_text(json.dumps(older))
    said = finetune(python, broken, steps=16, **{**same, "accumulate": 4})
    assert "holds a training with accumulate = 1, not 4: use" in said


def test_the_decay_is_of_matrices_alone(preloaded: Callable[[str], Path]) -> None:
    (decay, matrices), (none, vectors) = said_by(preloaded("pytorch"), DECAYED, LANGUAGE, 0.1)
    assert (decay, none) == (0.1, 0.0)
    assert all(name.endswith(("wte.weight", "wpe.weight")) or ".c_" in name for name in matrices)
    assert not any("ln_" in name or name.endswith("bias") for name in matrices)
    assert len(vectors) == 10
    ((decay, everything),) = said_by(preloaded("pytorch"), DECAYED, LANGUAGE, 0.0)
    assert (decay, len(everything)) == (0.0, len(matrices) + len(vectors))


def test_perplexity_is_measured_every_so_many_steps_and_at_the_end(
    base: Path, preloaded: Callable[[str], Path], tmp_path: Path, without_gpu: None
) -> None:
    python = preloaded("pytorch")
    same = {"data": "animals", "model": base, "questions": 1, "new-tokens": 1, "batch": 2}
    often = {"report-every": 5, "evaluate-every": 4}
    assert "precision fp32\n" in finetune(python, tmp_path, steps=10, **same, **often)
    lines = lines_of(tmp_path)
    measured = {step: line for step, line in lines.items() if "held_out_loss" in line}
    assert sorted(lines) == [4, 5, 8, 10]
    assert sorted(measured) == [4, 8, 10]
    for line in measured.values():
        assert line["perplexity"] == pytest.approx(math.exp(line["held_out_loss"]))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["perplexity"] == pytest.approx([math.exp(x) for x in summary["held_out_loss"]])
    assert summary["perplexity"][1] == pytest.approx(measured[10]["perplexity"])
    assert summary["tf32"] is False
    assert summary["peak_gpu_memory_bytes"] is lines[10]["peak_gpu_memory_bytes"] is None
    points = said_by(python, TAGS, tmp_path / "tensorboard")
    assert points == [[step, pytest.approx(measured[step]["perplexity"])] for step in measured]


def test_the_peak_of_memory_is_that_of_the_fullest_gpu(preloaded: Callable[[str], Path]) -> None:
    distributed = LANGUAGE.parent / "distributed"
    assert said_by(preloaded("pytorch"), PEAK, LANGUAGE, distributed) == 9_000_000_000


def test_no_question_that_is_held_out_is_learnt_from_another_conversation(
    base: Path, preloaded: Callable[[str], Path]
) -> None:
    assert said_by(preloaded("pytorch"), LEARNT, LANGUAGE, base) == [False] * 19


def test_other_conversations_are_held_out_with_another_seed_only(
    base: Path, preloaded: Callable[[str], Path]
) -> None:
    first, again, other = (
        said_by(preloaded("pytorch"), HELD, LANGUAGE, base, seed) for seed in "112"
    )
    assert first == again != other
    assert len(first) == 10


# A node of NFS that has not found a file does not see at once that it is there.
ARRIVES = """
import sys, threading, time
from pathlib import Path
sys.path[:0] = sys.argv[2:]
import lora, torch

way = lora.Lora.__new__(lora.Lora)
way.model, way._device = torch.nn.Linear(2, 2), torch.device("cpu")
way.optimizer = torch.optim.AdamW(way.model.parameters())
way._learnt, way._is_first = dict(way.model.named_parameters()), True
place = Path(sys.argv[1])
way._checkpoint = place / "elsewhere.pt"
way.save(lora.TokenProgress(step=7))
way._checkpoint = place / "checkpoint.pt"
threading.Timer(1.5, lambda: (place / "elsewhere.pt").rename(way._checkpoint)).start()
print(way.load().step)
"""


def test_a_checkpoint_that_the_first_process_sees_is_waited_for(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    folders = [str(LANGUAGE), str(LANGUAGE.parent / "distributed")]
    argv = [str(preloaded("pytorch")), "-B", "-c", ARRIVES, str(tmp_path), *folders]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.split() == ["7"], done.stderr
