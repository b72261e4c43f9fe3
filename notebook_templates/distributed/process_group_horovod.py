"""All processes that train together by Horovod, started by srun: no horovodrun, no ssh, no MPI.

`horovodrun` would start the processes itself, and tell each its place and where Horovod's own
server is that they meet at. Here Slurm starts them and tells them their places, and the first
process is that server until all have met.
"""

import os
import sys
from typing import Any

import torch
from process_group import ProcessGroup
from ranks import Rank, meet
from torch import nn


class EngineError(Exception):
    """Horovod is not here; the message says what to do."""


def loaded() -> Any:
    """Import Horovod for PyTorch; raises `EngineError` where there is none."""
    try:
        import horovod.torch as engine
    except ImportError as error:
        raise EngineError(
            f"Python has no Horovod for its PyTorch ({sys.executable}: {error}). Set engine to "
            "'ddp', which needs nothing more, or module to 'horovod', which an "
            "administrator adds with environments_horovod: true."
        ) from error
    return engine


class HorovodGroup(ProcessGroup):
    """The engine of the papers: NCCL between GPUs where it was built with that, else gloo."""

    # It refuses tensors in any other.
    layout = torch.contiguous_format

    def __init__(self, here: Rank) -> None:
        """Join the others."""
        self._engine = loaded()
        super().__init__(here)
        server = introduce(here)
        self._engine.init()
        self._engine.barrier()
        if server is not None:
            server.stop()

    def total(self, mine: torch.Tensor) -> torch.Tensor:
        """Add up a tensor over all processes."""
        return self._engine.allreduce(mine, op=self._engine.Sum)

    def joined(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Average gradients while they are computed."""
        self._engine.broadcast_parameters(model.state_dict(), root_rank=0)
        names = model.named_parameters()
        return model, self._engine.DistributedOptimizer(optimizer, named_parameters=names)

    def step(self, scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer) -> None:
        """Wait for the mean gradients before the scaler looks whether they are too large."""
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            scaler.step(optimizer)

    def agree(self, model: nn.Module) -> None:
        """Let all have the first one's running means."""
        self._engine.broadcast_parameters(dict(model.named_buffers()), root_rank=0)

    def leave(self) -> None:
        """Let the others go."""
        self._engine.barrier()
        self._engine.shutdown()


def introduce(here: Rank) -> Any:
    """Tell Horovod this process's place; return the server that the first process is."""
    from horovod.runner.common.util.hosts import SlotInfo
    from horovod.runner.http.http_server import RendezvousServer

    nodes = here.ranks // here.local_ranks
    server, port = None, 0
    if here.is_first:
        server = RendezvousServer()
        port = server.start()
        # Of each scope, the server wants to know how many will come.
        server.init(
            [
                SlotInfo(f"node{node}", 0, local, node, here.ranks, here.local_ranks, nodes)
                for node in range(nodes)
                for local in range(here.local_ranks)
            ]
        )
    address, _, found = meet(here, port)[0].rpartition(":")
    os.environ |= {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": found,
        "HOROVOD_HOSTNAME": f"node{here.node}",
        "HOROVOD_RANK": str(here.rank),
        "HOROVOD_SIZE": str(here.ranks),
        "HOROVOD_LOCAL_RANK": str(here.local_rank),
        "HOROVOD_LOCAL_SIZE": str(here.local_ranks),
        "HOROVOD_CROSS_RANK": str(here.node),
        "HOROVOD_CROSS_SIZE": str(nodes),
    }
    return server
