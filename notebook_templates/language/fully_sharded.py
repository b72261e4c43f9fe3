"""All weights learn, divided over all processes: PyTorch's FSDP2, with checkpoints in parts.

Each process holds its part of the weights, of their gradients and of the optimizer's state (ZeRO
stage 3, Rajbhandari et al. 2020, arXiv:1910.02054); the whole of a layer is put together on every
GPU while it computes. So a model need not fit into one GPU. Of a checkpoint, too, each process
writes its part, while the training goes on, and any number of processes reads it
(https://docs.pytorch.org/docs/stable/distributed.checkpoint.html).
"""

import argparse
import shutil
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import causal_lm
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from causal_lm import Tokenizer, TokenProgress
from process_group import DataParallel
from torch import nn
from torch.distributed.checkpoint import state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

PATIENCE = timedelta(hours=2)
"""For one process that reads or writes a whole model; NCCL itself waits 10 minutes."""
# Written last: a folder without it is not whole.
_METADATA = ".metadata"


class FullySharded:
    """A model's part on each process, and its checkpoints: ``checkpoints/step-N``."""

    keeps_size = False
    """Whether a training can only be continued on as many processes as it was begun on."""

    def __init__(self, folder: Path, results: Path, s: argparse.Namespace, group: DataParallel):
        """Read the model, and keep this process's part of it."""
        if group.here.ranks == 1:
            backend = "nccl" if group.is_on_gpus else "gloo"
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
        # Its own: while a checkpoint is written, gradients go round.
        self._writers = dist.new_group(backend="gloo", timeout=PATIENCE)
        self._folder, self._results, self._length = folder, results, s.length
        self._checkpoints = results / "checkpoints"
        self._is_first, self._writing = group.here.is_first, None
        # A process alone has nothing to divide; its products are in BF16 by autocast.
        if group.here.ranks == 1:
            model = causal_lm.read(folder, torch.float32, s.length).to(group.device)
        else:
            model = divided(folder, s, group, self._writers)
        self.model = self.trained = model
        groups = causal_lm.decayed(self.model.parameters(), s.weight_decay)
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, fused=group.is_on_gpus)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the training was begun before."""
        return self._last is not None

    @property
    def _last(self) -> Path | None:
        whole = self._checkpoints.glob(f"step-*/{_METADATA}")
        return max((one.parent for one in whole), key=step_of, default=None)

    def load(self) -> TokenProgress:
        """Take over what was learnt, by however many processes; returns what `save` was given."""
        weights, optimizer = state_dict.get_state_dict(self.model, self.optimizer)
        states = {"model": weights, "optimizer": optimizer, "reached": vars(TokenProgress())}
        last = [str(self._last)]
        dist.broadcast_object_list(last, group=self._writers)
        dcp.load(states, checkpoint_id=last[0], process_group=self._writers)
        state_dict.set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=states["model"],
            optim_state_dict=states["optimizer"],
        )
        return TokenProgress(**states["reached"])

    def save(self, reached: TokenProgress) -> None:
        """Begin to write this process's part, once the one before is written."""
        self.finish()
        weights, optimizer = state_dict.get_state_dict(self.model, self.optimizer)
        states = {"model": weights, "optimizer": optimizer, "reached": vars(reached)}
        self._writing = dcp.async_save(
            states,
            checkpoint_id=str(self._checkpoints / f"step-{reached.step}"),
            process_group=self._writers,
        )

    def part_of_a_step(self, is_last: bool) -> AbstractContextManager[None]:
        """Compute a part of a step in it: gradients go round with each part.

        Kept until the last one, they would be whole on every GPU, where they need not fit.
        """
        return nullcontext()

    def finish(self) -> None:
        """Wait until what was saved is there, and remove what came before it."""
        if self._writing is None:
            return
        self._writing.result()
        self._writing = None
        dist.barrier(self._writers)
        if self._is_first:
            for folder in self._checkpoints.glob("step-*"):
                if folder != self._last:
                    shutil.rmtree(folder)

    def export(self, tokenizer: Tokenizer) -> str:
        """Write a model that others read, and say which folder it is."""
        whole = state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights = state_dict.get_model_state_dict(self.model, options=whole)
        if self._is_first:
            model: Any = causal_lm.read(self._folder, torch.float32, self._length)
            model.load_state_dict(weights, strict=False)
            model.save_pretrained(self._results / "model")
            tokenizer.save_pretrained(self._results / "model")
        dist.barrier(self._writers)
        return "model"


def divided(
    folder: Path, s: argparse.Namespace, group: DataParallel, patient: dist.ProcessGroup
) -> nn.Module:
    """Return this process's part of a model, which only the first process reads whole.

    The others have no more than their parts at any time, so the memory of a node that is shared by
    several processes holds a model once. ``patient``: a group that waits for the first process.
    """
    whole = causal_lm.read(folder, torch.float32, s.length) if group.here.is_first else None
    model = causal_lm.without_weights(folder, s.length)
    dist.barrier(patient)
    mesh = init_device_mesh(group.device.type, (group.here.ranks,))
    policy = MixedPrecisionPolicy()
    if s.precision == "bf16":
        # Gradients are added up as the weights are kept, in FP32.
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    for layer in layers_of(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device=group.device)
    handed_out = state_dict.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    weights = whole.state_dict() if whole else {}
    state_dict.set_model_state_dict(model, weights, options=handed_out)
    # Tables of positions, and the like, are in no file: a model computes them when it is made.
    tables = dict(whole.named_buffers()) if whole else {}
    for name, table in model.named_buffers():
        if whole:
            table.copy_(tables[name])
        dist.broadcast(table, 0)
    return model


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Return a model's layers, as transformers names what must not be split over GPUs."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    return [layer for layer in model.modules() if type(layer).__name__ in names]


def step_of(folder: Path) -> int:
    """Return the step whose checkpoint a folder holds."""
    return int(folder.name.removeprefix("step-"))
