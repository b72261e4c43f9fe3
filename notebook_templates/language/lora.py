"""LoRA: the model stays as it is, and a small product of two matrices beside its layers learns.

Hu et al. 2021, arXiv:2106.09685. Each GPU holds the whole model, so it must fit into one; what is
learnt takes some megabytes.
"""

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import causal_lm
import peft
import torch
from causal_lm import Tokenizer, TokenProgress
from process_group import DataParallel
from record import arrived, write_whole
from torch import nn
from transformers.pytorch_utils import Conv1D


class Lora:
    """A model with LoRA on each process, and its checkpoint: one file, by the first process."""

    keeps_size = True
    """Whether a training can only be continued on as many processes as it was begun on."""

    def __init__(self, folder: Path, results: Path, s: argparse.Namespace, group: DataParallel):
        """Read the model, and put LoRA beside its layers."""
        numbers = torch.bfloat16 if s.precision == "bf16" else torch.float32
        base = causal_lm.read(folder, numbers, s.length)
        names = s.targets.split(",")
        lora = peft.LoraConfig(
            task_type="CAUSAL_LM",
            r=s.lora_rank,
            lora_alpha=2 * s.lora_rank,
            target_modules=s.targets if names == ["all-linear"] else names,
            # GPT-2 keeps its weights the other way round than everybody else.
            fan_in_fan_out=any(isinstance(layer, Conv1D) for layer in base.modules()),
        )
        self.model: nn.Module = peft.get_peft_model(base, lora).to(group.device)
        self._results, self._checkpoint = results, results / "checkpoint.pt"
        self._is_first, self._device = group.here.is_first, group.device
        self._learnt = {
            name: one for name, one in self.model.named_parameters() if one.requires_grad
        }
        groups = causal_lm.decayed(self._learnt.values(), s.weight_decay)
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, fused=group.is_on_gpus)
        self.trained, _ = group.joined(self.model, self.optimizer)
        self._no_sync = getattr(self.trained, "no_sync", nullcontext)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the training was begun before."""
        return self._checkpoint.exists()

    def load(self) -> TokenProgress:
        """Take over what was learnt; returns what `save` was given."""
        kept = torch.load(arrived(self._checkpoint), map_location=self._device, weights_only=True)
        self.model.load_state_dict(kept.pop("learnt"), strict=False)
        self.optimizer.load_state_dict(kept.pop("optimizer"))
        return TokenProgress(**kept)

    def save(self, reached: TokenProgress) -> None:
        """Keep what was learnt, and how far the training is."""
        if self._is_first:
            learnt = {name: weight.detach() for name, weight in self._learnt.items()}
            states = {"learnt": learnt, "optimizer": self.optimizer.state_dict(), **vars(reached)}
            write_whole(self._checkpoint, lambda stream: torch.save(states, stream))

    def part_of_a_step(self, is_last: bool) -> AbstractContextManager[None]:
        """Compute a part of a step in it: gradients go round once, with the last part."""
        return nullcontext() if is_last else self._no_sync()

    def finish(self) -> None:
        """Wait until what was saved is there: it is."""

    def export(self, tokenizer: Tokenizer) -> str:
        """Write what others read, and say which folder it is."""
        if self._is_first:
            self.model.save_pretrained(self._results / "adapter")
            # With the form of conversations that it has learnt.
            tokenizer.save_pretrained(self._results / "adapter")
        return "adapter"
