"""MXNet's processes that train together: beside each runs one of MXNet's parameter servers.

MXNet calls what its servers hold a *key-value store*. They listen on the nodes' network, as all
frameworks' processes do that train together, and do not ask who connects.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import mxnet as mx
from mxnet import nd
from ranks import Rank, free_port, meet

# A server unpickles what any program sends that reaches its port, for optimisers that run on
# servers (mxnet 1.9.1, kvstore_server.py). Here they run in the processes that train.
_SERVER = "import pickle; pickle.loads = None; import mxnet"
_FIRST_KEY = 1_000_000
"""Of the sums; those below are the parameters'."""


class MxnetGroup:
    """All processes that train together, seen from one of them."""

    def __init__(self, here: Rank) -> None:
        """Join the others."""
        self.here = here
        gpus = mx.context.num_gpus()
        self.device = mx.gpu(here.local_rank % gpus) if gpus else mx.cpu()
        self._store = None if here.ranks == 1 else _joined(here, "_device" if gpus else "")
        self._next_key = _FIRST_KEY

    def __enter__(self) -> "MxnetGroup":
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Leave the others, who wait for that; after an error Slurm ends them."""
        if error is not None and self._store is not None:
            # It would not end before the others have come to their end.
            self._store.handle = None
        self._store = None

    def broadcast(self, weights: Sequence[nd.NDArray]) -> None:
        """Give all processes the weights of one of them."""
        if self._store is None:
            return
        for key, values in enumerate(weights):
            # What a graph has already used is not waited for (1.9.1): others asked too early.
            copy = values.copy()
            self._store.init(key, copy)
            self._store.pull(key, out=copy)
            copy.copyto(values)
        # Else somebody's gradients could come in between.
        nd.waitall()
        self.sums(0.0)

    def add_up(self, gradients: Sequence[nd.NDArray]) -> None:
        """Put the sum over all processes into each; the order is that of the weights."""
        if self._store is None:
            return
        for key, values in enumerate(gradients):
            self._store.push(key, values, priority=-key)
            self._store.pull(key, out=values, priority=-key)

    def sums(self, *values: float) -> list[float]:
        """Add up each value over all processes."""
        if self._store is None:
            return list(values)
        mine = nd.array(values, dtype="float64")
        key, self._next_key = self._next_key, self._next_key + 1
        self._store.init(key, nd.zeros_like(mine))
        self._store.push(key, mine)
        self._store.pull(key, out=mine)
        return [float(value) for value in mine.asnumpy()]


def _joined(here: Rank, kind: str) -> Any:
    everybody = meet(here, free_port())
    address, _, port = everybody[0].rpartition(":")
    count = str(here.ranks)
    variables = {
        "DMLC_PS_ROOT_URI": address,
        "DMLC_PS_ROOT_PORT": port,
        "DMLC_NUM_WORKER": count,
        "DMLC_NUM_SERVER": count,
        # Else it is that of any of the node's networks.
        "DMLC_NODE_HOST": everybody[here.rank].rpartition(":")[0],
    }
    for role in ("scheduler", "server") if here.is_first else ("server",):
        # They end when all have left.
        subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            env={**os.environ, **variables, "DMLC_ROLE": role},
            stdin=subprocess.DEVNULL,
        )
    os.environ.update(variables, DMLC_ROLE="worker")
    return mx.kvstore.create(f"dist_sync{kind}")
