#!/usr/bin/env python
"""Train a ResNet on one CPU, one GPU, or the GPUs of many nodes; resume where it stopped.

    python train_resnet.py --results run1                            one process
    srun --ntasks-per-node=4 python train_resnet.py --results run1   in a Slurm job: one a GPU

The processes find each other by Slurm's variables: no ssh, no list of hosts. In RESULTS stay
progress.jsonl (a line for each report), summary.json, checkpoint.pt (from which the same command
goes on exactly), tensorboard/, and error.txt when a process failed.
"""

import argparse
import json
import math
import os
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import images
import resnet
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# What you may change, each on the command line: --batch 128


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for what stays; a shared one for several nodes")
    add("--model", default="50", choices=resnet.MODELS, help="layers")
    add("--data", default=images.SYNTHETIC, help="'synthetic', MNIST's folder, or JPEG folders")
    add(
        "--mounts", default="", help="mount points, by commas: a rank reads from rank modulo mounts"
    )
    add("--images", type=int, default=12_800, help="synthetic images in an epoch")
    add(
        "--size",
        type=int,
        default=224,
        help="pixels, height and width of JPEG and synthetic images",
    )
    add("--epochs", type=int, default=3, help="times that each image is seen; papers: 90")
    add("--steps", type=int, default=0, help="stop after so many steps; 0: after the epochs")
    add("--batch", type=int, default=64, help="images per process and step; more fill a GPU better")
    add("--precision", default="fp32", choices=("fp32", "bf16", "fp16"), help="of the products")
    add("--rate", type=float, default=0.1, help="learning rate for a global batch of 256 images")
    add("--warmup", type=float, default=0.1, help="share of all steps in which the rate rises")
    add("--momentum", type=float, default=0.9, help="of the gradient's running mean")
    add("--decay", type=float, default=5e-5, help="of the weights, not of biases and norms")
    add("--smoothing", type=float, default=0.1, help="share of a label given to all classes")
    add("--seed", type=int, default=1, help="same seed and processes: same training")
    add("--compile", default="auto", choices=("auto", "yes", "no"), help="auto: with a GPU")
    add("--workers", type=int, default=-1, help="reading processes per process; -1: its cores")
    add("--report-every", type=int, default=20, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=500, help="steps between checkpoints, at a report")
    return parser.parse_args()


# Where this process is among all of them.


@dataclass(frozen=True)
class Place:
    """A process among all that train together."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    address: str
    """Where rank 0 listens for the others."""
    port: int

    @property
    def is_first(self) -> bool:
        """Whether this process writes what stays."""
        return self.rank == 0


def place(variables: dict[str, str]) -> Place:
    """Read Slurm's variables; without `srun` there is one process.

    A batch script has them too, for itself: SLURM_STEP_ID is what srun alone sets.
    """
    if "SLURM_STEP_ID" not in variables or "SLURM_PROCID" not in variables:
        return Place(0, 1, 0, 1, "127.0.0.1", 0)
    return Place(
        rank=int(variables["SLURM_PROCID"]),
        ranks=int(variables["SLURM_NTASKS"]),
        local_rank=int(variables["SLURM_LOCALID"]),
        # "4", "4(x2)" or "4,2": the tasks of each node.
        local_ranks=int(variables["SLURM_STEP_TASKS_PER_NODE"].split(",")[0].split("(")[0]),
        # The node of the batch script, whose first task is rank 0; an address needs no resolver.
        address=variables["SLURM_LAUNCH_NODE_IPADDR"],
        # Another for each job and step, above what the system gives away and below 65536.
        port=61_000
        + (int(variables["SLURM_JOB_ID"]) * 7 + int(variables["SLURM_STEP_ID"])) % 4_000,
    )


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


# How fast it learns at which step.


def rate_at(step: int, steps: int, peak: float, warmup: float) -> float:
    """Return the learning rate: up along a line, then down to 0 along half a cosine.

    Goyal et al. 2017 (arXiv:1706.02677) for the warm-up, Loshchilov and Hutter 2016
    (arXiv:1608.03983) for the cosine.
    """
    rising = round(warmup * steps)
    if step < rising:
        return peak * (step + 1) / rising
    return peak * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising))) / 2


def optimizer_of(model: nn.Module, momentum: float, decay: float) -> torch.optim.SGD:
    """Make SGD, which lets the decay alone on vectors: biases and norms."""
    weights = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": weights, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=0.0, momentum=momentum, nesterov=momentum > 0)


# What stays.


@dataclass
class Progress:
    """How far the training is; with the weights, all that a checkpoint needs."""

    step: int = 0
    images: int = 0
    seconds: float = 0.0
    """Of training, without start-up, testing and checkpoints."""


def write_whole(file: Path, write: Any) -> None:
    """Let a file be there whole or not at all, also when the machine fails now."""
    building = file.with_name(f".{file.name}.{os.getpid()}")
    with building.open("wb") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
    building.replace(file)


def save(file: Path, progress: Progress, parts: dict[str, Any]) -> None:
    """Write a checkpoint."""
    states = {name: part.state_dict() for name, part in parts.items()}
    write_whole(file, lambda stream: torch.save({"progress": asdict(progress), **states}, stream))


def load(file: Path, parts: dict[str, Any], device: torch.device) -> Progress:
    """Read a checkpoint into the parts, if there is one."""
    if not file.exists():
        return Progress()
    states = torch.load(file, map_location=device, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(states[name])
    return Progress(**states["progress"])


class Record:
    """What the first process writes for those who watch; the others write nothing."""

    def __init__(self, results: Path, is_ours: bool, step: int) -> None:
        """Go on after a step: what was written of later ones will be written again."""
        self.is_ours = is_ours
        if not is_ours:
            return
        from torch.utils.tensorboard import SummaryWriter

        self._file = results / "progress.jsonl"
        self._leave_out_after(step)
        self._curves = SummaryWriter(str(results / "tensorboard"), purge_step=step + 1)

    def _leave_out_after(self, step: int) -> None:
        lines = self._file.read_text().splitlines(keepends=True) if self._file.exists() else []
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        write_whole(self._file, lambda stream: stream.write("".join(kept).encode()))

    def say(self, text: str) -> None:
        """Print a line into the job's log."""
        if self.is_ours:
            print(text, flush=True)

    def add(self, line: dict[str, float]) -> None:
        """Write down what was reached at ``line["step"]``."""
        if not self.is_ours:
            return
        with self._file.open("a") as stream:
            stream.write(json.dumps({"time": round(time.time(), 3), **line}) + "\n")
        curves = {name: value for name, value in line.items() if isinstance(value, float)}
        for name, value in curves.items():
            self._curves.add_scalar(name, value, line["step"])
        self._curves.flush()
        values = "  ".join(
            f"{name.replace('_', ' ')} {value:.5g}" for name, value in curves.items()
        )
        self.say(f"epoch {line['epoch']}  step {line['step']}  {values}")


class Stop:
    """Whether somebody wants this job to end: Slurm, before it is preempted or out of time."""

    def __init__(self) -> None:
        self.is_wanted = False
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.is_wanted = True


def main() -> None:
    """Train: the story from top to bottom."""
    s = settings()
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    team = Team(place(dict(os.environ)))
    here, device = team.here, team.device
    torch.manual_seed(s.seed)

    # The data, and what follows from its size. Iterations = epochs x images / (batch x GPUs), as
    # the papers count.
    mounts = [mount for mount in s.mounts.split(",") if mount]
    data = images.open_images(s.data, s.size, s.images, mounts, here.rank)
    share = images.Share(len(data.train), s.batch, here.rank, here.ranks, s.seed)
    if share.steps == 0:
        raise images.DataError(
            f"{len(data.train)} images do not fill one step of {s.batch} images on {here.ranks} "
            "processes. Set a smaller batch."
        )
    cores = len(os.sched_getaffinity(0)) // here.local_ranks
    workers = max(0, cores - 1) if s.workers < 0 else s.workers
    workers = 0 if s.data == images.SYNTHETIC else workers
    steps = s.epochs * share.steps
    last_step = min(s.steps, steps) if s.steps else steps
    peak = s.rate * s.batch * here.ranks / 256

    # The network, and how it learns.
    model = resnet.build(s.model, data.classes, data.channels).to(device)
    model = model.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(model, s.momentum, s.decay)
    scaler = torch.amp.GradScaler(device.type, enabled=s.precision == "fp16")
    loss_of = nn.CrossEntropyLoss(label_smoothing=s.smoothing)
    numbers = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[s.precision]
    precision = torch.autocast(device.type, numbers, enabled=s.precision != "fp32")
    if team.is_on_gpus:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True

    # What was reached before.
    kept = {"model": model, "optimizer": optimizer, "scaler": scaler}
    progress = load(results / "checkpoint.pt", kept, device)
    record = Record(results, here.is_first, progress.step)
    trained = team.copies(model)
    if s.compile == "yes" or (s.compile == "auto" and team.is_on_gpus):
        trained = torch.compile(trained)

    total = s.batch * here.ranks
    where = f"{here.ranks} {'GPUs' if team.is_on_gpus else 'CPU processes'}"
    record.say(f"ResNet {s.model}, {s.precision}, on {where}; {workers} reading processes each")
    record.say(f"{total} images a step = {s.batch} a process x {here.ranks} processes")
    record.say(f"{share.steps} steps an epoch = {len(data.train):,} images / {total} a step")
    record.say(f"{steps} steps = {s.epochs} epochs x {len(data.train):,} images / {total} a step")
    record.say(f"learning rate up to {peak:.4g} = {s.rate:g} x {total} / 256")
    if progress.step:
        record.say(f"resumed after step {progress.step} of {last_step}")

    accuracy, saved_at, is_stopped = None, progress.step, False
    while progress.step < last_step and not is_stopped:
        epoch, first = divmod(progress.step, share.steps)
        order = list(share.epoch(epoch, first))[: last_step - progress.step]
        loss_sum = right = torch.zeros((), device=device)
        seen, since = 0, time.perf_counter()
        for pixels, labels in images.loader(data.train, order, workers, team.is_on_gpus):
            pixels = pixels.to(device, non_blocking=True, memory_format=torch.channels_last)
            labels = labels.to(device, non_blocking=True)
            rate = rate_at(progress.step, steps, peak, s.warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate
            with precision:
                logits = trained(pixels)
                loss = loss_of(logits, labels)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

            progress.step += 1
            seen += len(labels)
            loss_sum = loss_sum + loss.detach() * len(labels)
            right = right + (logits.detach().argmax(1) == labels).sum()
            ends = progress.step in (last_step, (epoch + 1) * share.steps)
            if progress.step % s.report_every and not ends:
                continue

            # A report: what all processes did since the last.
            losses, rights, count, stops = team.sums(loss_sum, right, seen, stop.is_wanted)
            seconds, is_stopped = time.perf_counter() - since, stops > 0
            progress.images += int(count)
            progress.seconds += seconds
            record.add(
                {
                    "epoch": epoch + 1,
                    "step": progress.step,
                    "steps": last_step,
                    "loss": losses / count,
                    "accuracy": rights / count,
                    "images_per_second": round(count / seconds, 2),
                    "rate": rate,
                }
            )
            # At a report, so that the lines after it are those of a training without a break.
            if ends or is_stopped or progress.step - saved_at >= s.checkpoint_every:
                saved_at = progress.step
                if here.is_first:
                    save(results / "checkpoint.pt", progress, kept)
            if is_stopped:
                break
            loss_sum = right = torch.zeros((), device=device)
            seen, since = 0, time.perf_counter()
        if data.test is not None and not is_stopped:
            accuracy = test_accuracy(model, data.test, team, precision, s.batch)
            line = {"epoch": epoch + 1, "step": progress.step, "test_accuracy": accuracy}
            record.add(line)

    if is_stopped:
        record.say(f"stopped after step {progress.step} of {last_step}: run again to resume")
    elif here.is_first:
        summary = {
            "settings": vars(s),
            "processes": here.ranks,
            "device": torch.cuda.get_device_name() if team.is_on_gpus else "CPU",
            "steps": progress.step,
            "images": progress.images,
            "seconds": round(progress.seconds, 3),
            "images_per_second": round(progress.images / max(progress.seconds, 1e-9), 2),
            "test_accuracy": accuracy,
            "torch": torch.__version__,
        }
        text = json.dumps(summary, indent=1).encode()
        write_whole(results / "summary.json", lambda stream: stream.write(text))
        record.say(f"done: {summary['images_per_second']:.5g} images/s")
    team.leave()


def test_accuracy(
    model: nn.Module, test: Any, team: Team, precision: torch.autocast, batch: int
) -> float:
    """Return the share of all test images that are read right; the processes divide them."""
    mine = [(0, index) for index in range(team.here.rank, len(test), team.here.ranks)]
    batches = [mine[begin : begin + batch] for begin in range(0, len(mine), batch)]
    right = 0
    model.eval()
    with torch.no_grad(), precision:
        for pixels, labels in images.loader(test, batches, 0, False):
            right += int((model(pixels.to(team.device)).argmax(1).cpu() == labels).sum())
    model.train()
    return team.sums(right)[0] / len(test)


def told(error: BaseException) -> int:
    """Say why this process failed, and in error.txt, whose first words count.

    When one process fails, the others fail for its sake a moment later.
    """
    rank = os.environ.get("SLURM_PROCID", "0")
    words = str(error) if isinstance(error, images.DataError) else traceback.format_exc()
    text = f"Process {rank} on {os.environ.get('SLURMD_NODENAME', 'this machine')}: {words}\n"
    print(text, file=sys.stderr, flush=True)
    try:
        with (Path(settings().results).expanduser() / "error.txt").open("x") as file:
            file.write(text)
    except OSError:
        pass  # another process was first, or there is no place to write
    return 1


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # noqa: BLE001  # all that ends a process is told
        # Without the tidying up that waits for processes which wait for this one.
        os._exit(told(error))
