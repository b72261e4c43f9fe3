"""Causal language models: texts as blocks of tokens, the cost of a token, what a model writes."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import texts
import torch
import transformers
from torch import nn

Tokenizer = transformers.PreTrainedTokenizerBase


class ModelError(ValueError):
    """The model or the lengths cannot be used; the message says why."""


@dataclass
class TokenProgress:
    """How far a training is: what a checkpoint keeps besides what was learnt."""

    step: int = 0
    tokens: int = 0
    """Of all processes, in the steps that are timed."""
    seconds: float = 0.0
    """Of these."""
    before: str = ""
    """What the model wrote before the first step."""
    loss_before: float = 0.0


def read(folder: Path, numbers: torch.dtype, length: int) -> nn.Module:
    """Read a model that can take blocks of so many tokens; nothing is asked of the internet."""
    model: nn.Module = transformers.AutoModelForCausalLM.from_pretrained(
        str(folder), local_files_only=True, dtype=numbers
    )
    _check_length(model.config, length)
    return model


def without_weights(folder: Path, length: int) -> nn.Module:
    """Build a model as `read` does, in FP32, whose weights take no memory yet (device "meta")."""
    config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
    _check_length(config, length)
    with torch.device("meta"):
        made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model: nn.Module = made.eval()
    with suppress(OSError):  # not every model has one
        model.generation_config = transformers.GenerationConfig.from_pretrained(
            str(folder), local_files_only=True
        )
    return model


def _check_length(config: transformers.PreTrainedConfig, length: int) -> None:
    most = getattr(config, "max_position_embeddings", length)
    if length > most:
        raise ModelError(f"length is {length}; this model reads at most {most} tokens")


def blocks_of(tokenizer: Tokenizer, data: str, length: int) -> torch.Tensor:
    """Return all texts as rows of so many tokens, an end between two texts."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    numbers: list[int] = []
    for text in texts.texts(data):
        numbers += tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] + end
    rows = len(numbers) // length
    return torch.tensor(numbers[: rows * length], dtype=torch.long).view(rows, length)


def decayed(weights: Iterable[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    """Divide weights for AdamW: the decay is of matrices, not of vectors, biases and norms.

    Without a decay all stay in one group, as in checkpoints of before there was any.
    """
    learnt = list(weights)
    if decay == 0:
        return [{"params": learnt, "weight_decay": 0.0}]
    vectors = [weight for weight in learnt if weight.ndim < 2]
    matrices = [weight for weight in learnt if weight.ndim >= 2]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def flops_of_a_token(model: nn.Module) -> float:
    """Return the operations that training on a token takes, attention's own products left out.

    Two for each weight forward and two backward, and two more for the gradient of a weight that
    learns (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Looking a token up takes none.
    """
    looked_up = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
    used = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Linear)}
    total = 0.0
    for weight in model.parameters():
        if id(weight) not in looked_up or id(weight) in used:
            total += weight.numel() * (6 if weight.requires_grad else 4)
    return total


def fastest_flops(device: torch.device, numbers: torch.dtype) -> float:
    """Measure the operations in a second that a large product of matrices reaches here."""
    size = 8192 if device.type == "cuda" else 1024
    one = torch.randn(size, size, device=device, dtype=numbers)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        (one @ one)[0, 0].item()
        best = min(best, time.perf_counter() - begin)
    return float(2 * size**3 / best)


def continued(
    model: nn.Module, tokenizer: Tokenizer, prompt: str, new_tokens: int, device: torch.device
) -> str:
    """Let the model continue the prompt, always with the likeliest token."""
    given = tokenizer(prompt, add_special_tokens=True)["input_ids"]
    new = generated(model, tokenizer, given, new_tokens, device)
    return str(tokenizer.decode(given + new, skip_special_tokens=True))


def answered(
    model: nn.Module,
    tokenizer: Tokenizer,
    question: list[int],
    new_tokens: int,
    device: torch.device,
) -> str:
    """Let the model answer a question, given in tokens, until it ends the text."""
    new = generated(model, tokenizer, question, new_tokens, device)
    if tokenizer.eos_token_id in new:
        new = new[: new.index(tokenizer.eos_token_id)]
    return str(tokenizer.decode(new, skip_special_tokens=True)).strip()


def generated(
    model: nn.Module,
    tokenizer: Tokenizer,
    given: list[int],
    new_tokens: int,
    device: torch.device,
) -> list[int]:
    """Return at most so many tokens that follow, each time the likeliest.

    No more than the model has places for; nothing follows what is empty or fills them all.
    """
    most = getattr(model.config, "max_position_embeddings", None)
    room = new_tokens if most is None else min(new_tokens, most - len(given))
    if not given or room < 1:
        return []
    tokens = torch.tensor([given], device=device)
    model.eval()
    with torch.no_grad():
        found = model.generate(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=room,
            do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )
    model.train()
    return list(found[0, len(given) :].tolist())
