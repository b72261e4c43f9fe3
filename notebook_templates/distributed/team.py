"""All processes that train together with PyTorch, seen from one of them."""

import torch
import torch.distributed as dist
from places import Place
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Team:
    """All processes that train together, seen from one of them."""

    def __init__(self, here: Place) -> None:
        """Join the others."""
        self.here = here
        has_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if has_gpu else "cpu")
        if has_gpu:
            # A task that was given one GPU of its own sees just that.
            torch.cuda.set_device(here.local_rank % torch.cuda.device_count())
        if here.ranks > 1:
            dist.init_process_group(
                "nccl" if has_gpu else "gloo",
                init_method=f"tcp://{here.address}:{here.port}",
                rank=here.rank,
                world_size=here.ranks,
            )

    @property
    def is_on_gpus(self) -> bool:
        """Whether each process has a GPU."""
        return self.device.type == "cuda"

    def sums(self, *values: float | torch.Tensor) -> list[float]:
        """Add up each value over all processes."""
        total = torch.tensor([float(value) for value in values], dtype=torch.float64)
        total = total.to(self.device)
        if self.here.ranks > 1:
            dist.all_reduce(total)
        return total.tolist()

    def copies(self, model: nn.Module) -> nn.Module:
        """Make a model whose gradients are the mean over all processes."""
        if self.here.ranks == 1:
            return model
        gpu = [torch.cuda.current_device()] if self.is_on_gpus else None
        return DistributedDataParallel(model, device_ids=gpu, gradient_as_bucket_view=True)

    def leave(self) -> None:
        """Let the others go."""
        if self.here.ranks > 1:
            dist.barrier()
            dist.destroy_process_group()
