#!/usr/bin/env python
"""Train a ResNet on one CPU, one GPU, or the GPUs of many nodes; resume where it stopped.

    python train_resnet.py --results run1                            one process
    srun --ntasks-per-node=4 python train_resnet.py --results run1   in a Slurm job: one a GPU

The processes find each other by Slurm's variables: no ssh, no list of hosts. In RESULTS stay
progress.jsonl (a line for each report), summary.json, checkpoint.pt (from which the same command
goes on exactly), tensorboard/, and error.txt when a process failed.
"""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

# A copy of this file finds the modules in the home.
sys.path.append(str(Path("~/templates/distributed").expanduser()))
import compiling
import images
import options
import tf32
import torch
from networks import own_model
from process_group import DataParallel, ProcessGroup
from process_group_horovod import EngineError, HorovodGroup
from ranks import cores_of_task, place
from record import (
    Progress,
    Record,
    ResumeError,
    StepTimer,
    Stop,
    StopChecks,
    arrived,
    run,
    same_run,
    write_whole,
)
from sampler import SYNTHETIC, Sampler
from schedule import Schedule, ScheduleError, counted
from torch import nn

ENGINES: dict[str, type[ProcessGroup]] = {"ddp": DataParallel, "horovod": HorovodGroup}


def settings() -> argparse.Namespace:
    """Read the command line: options.py says what each may be, and these add to it."""
    parser = options.parser("'synthetic', or a folder: MNIST's, folders of pictures, shards", None)
    add = parser.add_argument
    add("--engine", default="ddp", choices=ENGINES, help="what averages the gradients")
    add("--compile", default="auto", choices=compiling.CHOICES, help="auto: with a GPU")
    add("--workers", type=int, default=-1, help="data workers per process; -1: its cores minus 1")
    return parser.parse_args()


def optimizer_of(model: nn.Module, momentum: float, decay: float) -> torch.optim.SGD:
    """Make SGD, which lets the decay alone on vectors: biases and norms."""
    weights = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": weights, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=0.0, momentum=momentum, nesterov=momentum > 0)


def save(file: Path, progress: Progress, parts: dict[str, Any]) -> None:
    """Write a checkpoint."""
    states = {name: part.state_dict() for name, part in parts.items()}
    write_whole(file, lambda stream: torch.save({"progress": asdict(progress), **states}, stream))


def load(file: Path, parts: dict[str, Any], device: torch.device) -> Progress:
    """Read a checkpoint into the parts."""
    states = torch.load(file, map_location=device, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(states[name])
    return Progress(**states["progress"])


def main(s: argparse.Namespace) -> None:
    """Train: the story from top to bottom."""
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    group = ENGINES[s.engine](place(os.environ))
    here, device = group.here, group.device
    torch.manual_seed(s.seed)

    # The data, and what follows from its size.
    mounts = [mount for mount in s.mounts.split(",") if mount]
    without = results if s.broken == "skip" else None
    data = images.open_images(
        s.data, s.size, s.images, mounts, here.rank, here.ranks, s.seed, without
    )
    cores = cores_of_task(len(os.sched_getaffinity(0)), here.local_ranks, os.environ)
    workers = max(0, cores - 1) if s.workers < 0 else s.workers
    workers = 0 if s.data == SYNTHETIC else workers
    readers = 1
    if isinstance(data.train, images.Shards):
        if s.workers < 0:
            workers = min(workers, len(data.train.files) // here.ranks)
            # As many as the first has, which divide the shards: nodes may differ in their cores.
            workers = int(group.sums(workers if here.is_first else 0)[0])
        readers = max(1, workers)
    schedule = Schedule.of(s, len(data.train), here.ranks, readers)
    last_step = schedule.last_step
    sampler = Sampler(len(data.train), s.batch, here.rank, here.ranks, s.seed)

    # The network, and how it learns.
    model = own_model.build(s.model, data.classes, data.channels).to(device)
    model = model.to(memory_format=group.layout)
    optimizer = optimizer_of(model, s.momentum, s.decay)
    scaler = torch.amp.GradScaler(device.type, enabled=s.precision == "fp16")
    loss_of = nn.CrossEntropyLoss(label_smoothing=s.smoothing)
    numbers = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[s.precision]
    precision = torch.autocast(device.type, numbers, enabled=s.precision != "fp32")
    if group.is_on_gpus:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True

    # What was reached before, whichever engine carried the gradients.
    trained, optimizer = group.joined(model, optimizer)
    kept = {"model": model, "optimizer": optimizer, "scaler": scaler}
    checkpoint = results / "checkpoint.pt"
    # The first one's word: on NFS, other nodes may not see yet what it wrote a moment ago.
    is_begun = group.sums(here.is_first and checkpoint.exists())[0] > 0
    # Which images come next in shards follows from how many processes read them.
    of_shards = {"shard_workers": readers} if isinstance(data.train, images.Shards) else {}
    of_data = {"data_sha256": data.digest} if data.digest else {}
    asked = argparse.Namespace(**vars(s), **of_shards, **of_data)
    same_run(results, asked, here.ranks, here.is_first, is_begun)
    progress = load(arrived(checkpoint), kept, device) if is_begun else Progress()
    record = Record(results, here.is_first, progress.step, s)
    if compiling.is_wanted(s.compile, group.is_on_gpus, record.say):
        trained = torch.compile(trained)

    kind = ("GPU", "GPUs") if group.is_on_gpus else ("CPU process", "CPU processes")
    where = counted(here.ranks, *kind)
    is_tf32 = tf32.is_used(s.precision, group.is_on_gpus, torch.backends.cudnn.allow_tf32)
    said = tf32.said(s.precision, is_tf32)
    reading = counted(workers, "reading process", "reading processes")
    record.say(f"ResNet {s.model}, {said}, on {where}; {reading} each")
    record.say(*schedule.words(), *images.broken.left_out(without))
    if progress.step:
        record.say(f"resumed after step {progress.step} of {last_step}")

    def tested() -> float:
        group.agree(model)
        found = test_accuracy(model, data.test, group, precision, s.batch)
        epoch = (progress.step - 1) // schedule.steps_an_epoch + 1
        record.add({"epoch": epoch, "step": progress.step, "test_accuracy": found})
        return found

    accuracy, saved_at, is_stopped, timer = None, progress.step, False, StepTimer()
    checks = StopChecks(stop, group.sums)
    is_untested = data.test is not None and schedule.ends_at(progress.step)
    if is_untested and group.sums(record.lacks_test)[0] > 0:
        # Stopped, or killed, between an epoch's last step and the end of its test.
        accuracy = tested()
    while progress.step < last_step and not is_stopped:
        epoch, first = divmod(progress.step, schedule.steps_an_epoch)
        left = last_step - progress.step
        order = range(first, min(schedule.steps_an_epoch, first + left))
        loss_sum = right = torch.zeros((), device=device)
        seen, pinned = 0, group.is_on_gpus
        timer.begin()
        for pixels, labels in images.batches(data.train, sampler, epoch, order, workers, pinned):
            pixels = images.on_device(pixels, device, group.layout)
            labels = labels.to(device, non_blocking=True)
            # So that dropout draws as without a break, and other units on each process.
            torch.manual_seed((s.seed * 1_000_003 + progress.step) * here.ranks + here.rank)
            for parameters in optimizer.param_groups:
                parameters["lr"] = schedule.rate_at(progress.step)
            with precision:
                logits = trained(pixels)
                loss = loss_of(logits, labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            group.step(scaler, optimizer)
            scaler.update()

            progress.step += 1
            seen += len(labels)
            timer.step(len(labels), loss.item)
            loss_sum = loss_sum + loss.detach() * len(labels)
            right = right + (logits.detach().argmax(1) == labels).sum()
            ends = schedule.ends_at(progress.step)
            is_due = progress.step % s.report_every == 0 or ends
            if not is_due and not checks.says_stop(progress.step):
                continue

            # A report: what all processes did since the last.
            losses, rights, count, stops = group.sums(loss_sum, right, seen, stop.is_wanted)
            is_stopped = stops > 0 and progress.step < last_step
            stretch = timer.end()
            # Of all processes: each must be told the same.
            checks.told(group.sums(stretch.seconds)[0] * s.batch / count)
            record.report(progress, schedule, stretch, losses / count, rights / count)
            # At a report; after a stop in between, the next line is of fewer steps.
            if ends or is_stopped or progress.step - saved_at >= s.checkpoint_every:
                saved_at = progress.step
                if here.is_first:
                    save(checkpoint, progress, kept)
            if is_stopped:
                break
            loss_sum = right = torch.zeros((), device=device)
            seen = 0
            timer.begin()
        if data.test is not None and not is_stopped:
            accuracy = tested()

    if not is_stopped and accuracy is None and data.test is not None:
        # Killed between the end of its last test and the summary.
        group.agree(model)
        accuracy = test_accuracy(model, data.test, group, precision, s.batch)
    if is_stopped:
        record.say(f"stopped after step {progress.step} of {last_step}: run again to resume")
    else:
        device_name = torch.cuda.get_device_name() if group.is_on_gpus else "CPU"
        versions = {"torch": torch.__version__, "tf32": is_tf32}
        record.finish(s, progress, here.ranks, device_name, accuracy, versions)
    record.close(is_whole=not is_stopped)
    group.leave()


def test_accuracy(
    model: nn.Module, test: Any, group: ProcessGroup, precision: torch.autocast, batch: int
) -> float:
    """Return the share of all test images that are read right; the processes divide them."""
    here, right = group.here, 0
    model.eval()
    with torch.no_grad(), precision:
        for pixels, labels in images.to_test(test, here.rank, here.ranks, batch):
            pixels = images.on_device(pixels, group.device, group.layout)
            right += int((model(pixels).argmax(1).cpu() == labels).sum())
    model.train()
    return group.sums(right)[0] / len(test)


if __name__ == "__main__":
    run(
        main,
        settings(),
        images.DataError,
        ScheduleError,
        EngineError,
        ResumeError,
        own_model.NetworkError,
    )
