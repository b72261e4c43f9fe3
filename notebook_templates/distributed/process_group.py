"""All processes that train together with PyTorch, seen from one of them."""

from abc import ABC, abstractmethod

import torch
import torch.distributed as dist
from ranks import Rank
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class ProcessGroup(ABC):
    """What a training asks of the engine that carries gradients between its processes."""

    layout = torch.channels_last
    """Of images and weights in memory; the fastest that the engine can carry."""

    def __init__(self, here: Rank) -> None:
        """Take a GPU, where there is one."""
        self.here = here
        has_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if has_gpu else "cpu")
        if has_gpu:
            # A task that was given one GPU of its own sees just that.
            torch.cuda.set_device(here.local_rank % torch.cuda.device_count())

    @property
    def is_on_gpus(self) -> bool:
        """Whether each process has a GPU."""
        return self.device.type == "cuda"

    def sums(self, *values: float | torch.Tensor) -> list[float]:
        """Add up each value over all processes."""
        total = torch.tensor([float(value) for value in values], dtype=torch.float64)
        return self.total(total.to(self.device)).tolist()

    @abstractmethod
    def total(self, mine: torch.Tensor) -> torch.Tensor:
        """Add up a tensor over all processes."""

    @abstractmethod
    def joined(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Let gradients be the mean over all processes; returns what is trained, and by what."""

    def step(self, scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer) -> None:
        """Change the weights by their gradients."""
        scaler.step(optimizer)

    @abstractmethod
    def agree(self, model: nn.Module) -> None:
        """Let all have the first one's running means, those that a checkpoint keeps."""

    @abstractmethod
    def leave(self) -> None:
        """Let the others go."""


class DataParallel(ProcessGroup):
    """PyTorch's own engine: NCCL between GPUs, gloo between CPUs."""

    def __init__(self, here: Rank) -> None:
        """Join the others."""
        super().__init__(here)
        if here.ranks > 1:
            dist.init_process_group(
                "nccl" if self.is_on_gpus else "gloo",
                init_method=f"tcp://{here.address}:{here.port}",
                rank=here.rank,
                world_size=here.ranks,
            )

    def total(self, mine: torch.Tensor) -> torch.Tensor:
        """Add up a tensor over all processes."""
        if self.here.ranks > 1:
            dist.all_reduce(mine)
        return mine

    def joined(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Average gradients while they are computed."""
        if self.here.ranks == 1:
            return model, optimizer
        gpu = [torch.cuda.current_device()] if self.is_on_gpus else None
        copies = DistributedDataParallel(model, device_ids=gpu, gradient_as_bucket_view=True)
        return copies, optimizer

    def agree(self, model: nn.Module) -> None:
        """Let all have the first one's running means; the engine does so before a step alone."""
        if self.here.ranks > 1:
            for kept in model.buffers():
                dist.broadcast(kept, 0)

    def leave(self) -> None:
        """Let the others go. The group is left to the end of the process (`record.run`)."""
        if dist.is_initialized():
            dist.barrier()
