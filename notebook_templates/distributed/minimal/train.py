#!/usr/bin/env python
"""The smallest training on several GPUs: plain PyTorch, one file, to start a program of yours from.

python train.py                                      one process, on a GPU if there is one
torchrun --nproc-per-node=4 train.py                 four processes of this machine
srun --ntasks-per-node=4 python train.py             in a Slurm job, over all its nodes

Started again in the same folder, it goes on after the last whole epoch.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 5  # times that each example is seen
BATCH = 64  # examples per process and step
CHECKPOINT = "checkpoint.pt"


def join() -> tuple[int, int, torch.device]:
    """Meet the other processes; return this one's rank, how many there are, and its device."""
    env = os.environ
    if "RANK" not in env and "SLURM_STEP_ID" in env:
        # torchrun sets these variables; srun has names of its own for them.
        env |= {"RANK": env["SLURM_PROCID"], "WORLD_SIZE": env["SLURM_NTASKS"]}
        env |= {"LOCAL_RANK": env["SLURM_LOCALID"], "MASTER_ADDR": env["SLURM_LAUNCH_NODE_IPADDR"]}
        # Of jobs side by side, each has another port.
        env["MASTER_PORT"] = str(61_000 + int(env["SLURM_JOB_ID"]) % 4_000)
    rank, ranks = int(env.get("RANK", 0)), int(env.get("WORLD_SIZE", 1))
    gpus = torch.cuda.device_count()  # Slurm may show a process no GPU but its own
    device = torch.device(f"cuda:{int(env.get('LOCAL_RANK', 0)) % gpus}" if gpus else "cpu")
    if gpus:
        torch.cuda.set_device(device)
    if ranks > 1:
        dist.init_process_group("nccl" if gpus else "gloo")
    return rank, ranks, device


def examples(seed: int, count: int) -> TensorDataset:
    """Make points, and whether each is inside a ball. Your data comes here."""
    points = torch.randn(count, 16, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(points, (points.square().sum(1) < 15.3).long())


def main() -> None:
    """Train, and say how well the network does on examples that it has not seen."""
    rank, ranks, device = join()
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 2)).to(device)
    # Averages gradients over all processes.
    model = DistributedDataParallel(network) if ranks > 1 else network
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    done = 0  # epochs
    begun = torch.tensor(int(os.path.exists(CHECKPOINT)), device=device)
    if ranks > 1:
        # The first one's word: on NFS, another node may not see yet what it has written.
        dist.broadcast(begun, 0)
    if begun:
        saved = torch.load(CHECKPOINT, map_location=device, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["epochs"]
    data = examples(seed=1, count=8_192)
    sampler = DistributedSampler(data, num_replicas=ranks, rank=rank, seed=1)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler)

    for epoch in range(done, EPOCHS):
        sampler.set_epoch(epoch)  # another order in each
        total, seen = torch.zeros((), device=device), 0
        for points, labels in loader:
            loss = nn.functional.cross_entropy(model(points.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # The last batch may have fewer examples, so its mean counts for less.
            total += loss.detach() * len(labels)
            seen += len(labels)
        if ranks > 1:
            dist.all_reduce(total)
        if rank == 0:
            mean = total.item() / (seen * ranks)
            done, where = epoch + 1, f"{ranks} process{'es' if ranks > 1 else ''}"
            print(f"epoch {done} of {EPOCHS}: loss {mean:.4f} on {where}", flush=True)
            # The notebook own_program.ipynb draws what is written here.
            with open("progress.jsonl", "a") as file:
                print(json.dumps({"step": done, "steps": EPOCHS, "loss": mean}), file=file)
            state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "epochs": done}, f"{CHECKPOINT}.new")
            # The whole file, or the one before: the job may be ended at any time.
            os.replace(f"{CHECKPOINT}.new", CHECKPOINT)
    if rank == 0:
        points, labels = examples(seed=2, count=2_048).tensors
        with torch.no_grad():
            right = (network(points.to(device)).argmax(1).cpu() == labels).float().mean().item()
        print(f"test accuracy {right:.4f}")
    if ranks > 1:
        dist.barrier()
        sys.stdout.flush()
        # Gloo's threads can keep or abort a process that ends as others do (PyTorch 2.13,
        # https://github.com/pytorch/pytorch/issues/190489).
        os._exit(0)


if __name__ == "__main__":
    main()
