#!/usr/bin/env python
"""Fine-tune a vision transformer on your own pictures, on one CPU, one GPU, or many nodes.

    python train_vit.py --results run1 --model /mnt/isilon/models/NAME --data ~/my-pictures
    srun --ntasks-per-node=4 python train_vit.py --results run1 ...     in a job: one process a GPU

The model is a folder; nothing is asked of the internet. DATA has train/CLASS/*.jpg and val/CLASS,
or CLASS/*.jpg alone. Run again, it resumes where it stopped.

In RESULTS stay progress.jsonl, summary.json with the confusion matrix, best/ (the averaged weights
that were best on the test pictures: for AutoModelForImageClassification.from_pretrained and the
inference template), checkpoint.pt, tensorboard/, and error.txt when a process failed.
"""

import argparse
import copy
import json
import os
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

# A copy of this file finds the modules in the templates.
sys.path += [
    str(place / name)
    for place in (Path("~/templates").expanduser(), Path(__file__).resolve().parents[1])
    for name in ("vision", "distributed")
]
import augment
import classifier
import images
import pictures
import shapes
import tf32
import torch
from classifier import Classifier, ClassifierError
from process_group import DataParallel
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
from sampler import Sampler
from schedule import Schedule, ScheduleError
from torch import nn
from torch.nn.functional import cross_entropy

TINY, SHAPES = "tiny", "shapes"
TOP = 5  # the right class among so many likeliest


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--model", default=TINY, help="a model's folder, or 'tiny': a random one, made here")
    add("--data", default=SHAPES, help="a folder of pictures, or 'shapes': some drawn here")
    add("--held-out", type=float, default=0.2, help="share to test with where there is no val")
    add("--epochs", type=int, default=20, help="times that each picture is seen")
    add("--steps", type=int, default=0, help="stop after this many steps; 0: after the epochs")
    add("--batch", type=int, default=32, help="pictures that a process computes at once")
    add("--accumulate", type=int, default=1, help="batches per step (gradient accumulation)")
    add("--precision", default="fp32", choices=("fp32", "bf16"), help="of the products")
    add("--rate", type=float, default=8e-3, help="learning rate for a global batch of 256 pictures")
    add("--warmup", type=float, default=0.1, help="share of all steps in which the rate rises")
    add("--decay", type=float, default=0.05, help="AdamW's, of the weights, not of biases, norms")
    add("--clip", type=float, default=1.0, help="largest gradient norm; 0: no clipping")
    add("--average", type=float, default=0.99, help="decay of the weights' EMA, per step")
    add("--operations", type=int, default=2, help="RandAugment's, on each picture; 0: none")
    add("--magnitude", type=float, default=3, help="of these, from 0 to 10")
    add("--mixup", type=float, default=0.1, help="alpha of mixup's beta distribution; 0: none")
    add("--smoothing", type=float, default=0.1, help="label smoothing")
    add("--least", type=float, default=0.5, help="smallest share of a picture's area in a crop")
    add("--workers", type=int, default=-1, help="data workers per process; -1: its cores minus 1")
    add("--seed", type=int, default=1, help="same seed and processes: same training")
    add("--report-every", type=int, default=10, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=200, help="steps between checkpoints, at a report")
    add("--mlflow", default="", help="MLflow's experiment in which the run is kept; '': none")
    return parser.parse_args()


def optimizer_of(network: nn.Module, decay: float) -> torch.optim.AdamW:
    """Make AdamW, which lets the decay alone on vectors: biases and norms."""
    weights = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim <= 1]
    groups = [{"params": weights, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, fused=weights[0].is_cuda)


@torch.no_grad()
def follow(mean: nn.Module, network: nn.Module, step: int, keeps: float) -> None:
    """Bring the running mean of a network's weights nearer to them; it forgets the first faster."""
    share = min(keeps, (1 + step) / (10 + step))
    # All in a few operations, and the share a number of Python's: a GPU waits for nothing.
    torch._foreach_lerp_(list(mean.parameters()), list(network.parameters()), 1 - share)
    for kept, new in zip(mean.buffers(), network.buffers(), strict=True):
        kept.copy_(new)


def confusions(
    network: nn.Module,
    model: Classifier,
    test: Any,
    group: DataParallel,
    precision: torch.autocast,
    batch: int,
) -> tuple[torch.Tensor, float]:
    """Count true classes (rows) by those that were found, and the share of the right in the top.

    The processes divide the pictures.
    """
    classes, here = len(model.names), group.here
    counts = torch.zeros(classes * classes, dtype=torch.float64, device=group.device)
    in_top = 0
    network.eval()
    with torch.no_grad(), precision:
        for pixels, labels in images.to_test(test, here.rank, here.ranks, batch):
            labels = labels.to(group.device)
            logits = network(model.normal(pixels.to(group.device)))
            likeliest = logits.topk(min(TOP, classes)).indices
            in_top += int((likeliest == labels[:, None]).sum())
            pairs = labels * classes + likeliest[:, 0]
            counts += torch.bincount(pairs, minlength=classes * classes)
    counts = group.total(counts).view(classes, classes)
    return counts.cpu(), group.sums(in_top)[0] / len(test)


def main(s: argparse.Namespace) -> None:
    """Fine-tune: the story from top to bottom."""
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    group = DataParallel(place(os.environ))
    here, device = group.here, group.device

    # The pictures and the model.
    folder = results / "start" if s.model == TINY else Path(s.model).expanduser()
    data = results / SHAPES if s.data == SHAPES else Path(s.data).expanduser()
    if here.is_first and s.model == TINY and not folder.exists():
        classifier.make_tiny(folder, s.seed)
    if here.is_first and s.data == SHAPES and not data.exists():
        shapes.make(data, s.seed)
    group.sums(0)
    found = pictures.opened(str(data), s.held_out, s.seed)
    torch.manual_seed(s.seed)
    model = classifier.read(folder, found.names)
    train = pictures.Augmented(found.train, model.size, s.least, s.operations, s.magnitude, s.seed)
    test = images.Pictures(found.test or [], model.size, at_random=False)
    together = s.batch * s.accumulate
    schedule = Schedule(
        len(train), together, here.ranks, s.epochs, s.steps, s.rate, s.warmup
    ).checked()
    sampler = Sampler(len(train), together, here.rank, here.ranks, s.seed)
    cores = cores_of_task(len(os.sched_getaffinity(0)), here.local_ranks, os.environ)
    workers = max(0, cores - 1) if s.workers < 0 else s.workers

    # How it learns.
    network = model.network.to(device)
    mean = copy.deepcopy(network).requires_grad_(False)
    optimizer = optimizer_of(network, s.decay)
    precision = torch.autocast(device.type, torch.bfloat16, enabled=s.precision == "bf16")
    if group.is_on_gpus:
        torch.backends.cuda.matmul.allow_tf32 = True
    is_tf32 = tf32.is_used(s.precision, group.is_on_gpus, is_allowed=True)

    # What was reached before.
    checkpoint = results / "checkpoint.pt"
    # With other pictures, some that were trained on would be tested with.
    asked = argparse.Namespace(**vars(s), pictures_sha256=found.digest())
    # The first one's word: on NFS, other nodes may not see yet what it wrote a moment ago.
    is_begun = group.sums(here.is_first and checkpoint.exists())[0] > 0
    same_run(results, asked, here.ranks, here.is_first, is_begun)
    parts = {"network": network, "mean": mean, "optimizer": optimizer}
    progress, best = Progress(), -1.0
    if is_begun:
        kept = torch.load(arrived(checkpoint), map_location=device, weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(kept[name])
        progress, best = Progress(**kept["progress"]), kept["best"]
    trained, _ = group.joined(network, optimizer)
    record = Record(results, here.is_first, progress.step, s)
    last_step = schedule.last_step
    record.say(
        f"{s.model}: {sum(p.numel() for p in network.parameters()):,} weights, pictures of "
        f"{model.size}x{model.size}",
        f"precision {tf32.said(s.precision, is_tf32)}",
        f"{len(train):,} pictures of {len(model.names)} classes to train on, {len(test):,} to test",
        *schedule.words(),
    )
    if progress.step:
        record.say(f"resumed after step {progress.step} of {last_step}")

    def save() -> None:
        states = {name: part.state_dict() for name, part in parts.items()}
        states |= {"progress": asdict(progress), "best": best}
        write_whole(checkpoint, lambda stream: torch.save(states, stream))

    saved_at, is_stopped, timer = progress.step, False, StepTimer()
    checks = StopChecks(stop, group.sums)
    while progress.step < last_step and not is_stopped:
        epoch, first = divmod(progress.step, schedule.steps_an_epoch)
        order = range(first, min(schedule.steps_an_epoch, first + last_step - progress.step))
        loss_sum = right = torch.zeros((), device=device)
        seen = 0
        network.train()
        timer.begin()
        for pixels, labels in images.batches(
            train, sampler, epoch, order, workers, group.is_on_gpus
        ):
            # So that dropout and mixing, too, are those of a training without a break.
            chance = (s.seed * 1_000_003 + progress.step) * here.ranks + here.rank
            torch.manual_seed(chance)
            labels = labels.to(device, non_blocking=True)
            inputs = model.normal(pixels.to(device, non_blocking=True))
            inputs, shares = augment.mixup(inputs, labels, len(model.names), s.mixup, chance)
            for parameters in optimizer.param_groups:
                parameters["lr"] = schedule.rate_at(progress.step)

            # In parts that fit into the memory; the last one's gradients go to the others.
            optimizer.zero_grad()
            pieces = list(zip(inputs.split(s.batch), shares.split(s.batch), strict=True))
            for number, (piece, wanted) in enumerate(pieces, 1):
                is_last = number == len(pieces)
                alone = nullcontext() if is_last or here.ranks == 1 else trained.no_sync()
                with alone:
                    with precision:
                        logits = trained(piece)
                        loss = cross_entropy(logits, wanted, label_smoothing=s.smoothing)
                    (loss * (len(piece) / len(labels))).backward()
                loss_sum = loss_sum + loss.detach() * len(piece)
                right = right + (logits.detach().argmax(1) == wanted.argmax(1)).sum()
            if s.clip:
                nn.utils.clip_grad_norm_(network.parameters(), s.clip)
            optimizer.step()
            follow(mean, network, progress.step, s.average)
            progress.step += 1
            seen += len(labels)
            timer.step(len(labels), loss_sum.item)
            ends = schedule.ends_at(progress.step)
            is_due = progress.step % s.report_every == 0 or ends
            if not is_due and not checks.says_stop(progress.step):
                continue

            # A report: what all processes did since the last.
            losses, rights, count, stops = group.sums(loss_sum, right, seen, stop.is_wanted)
            is_stopped, stretch = stops > 0, timer.end()
            # Of all processes: each must be told the same.
            checks.told(group.sums(stretch.seconds)[0] * together / count)
            record.report(progress, schedule, stretch, losses / count, rights / count)
            if ends:
                group.agree(mean)
                counts, in_top = confusions(mean, model, test, group, precision, s.batch)
                accuracy = float(counts.trace() / counts.sum())
                line = {"epoch": epoch + 1, "step": progress.step}
                record.add(line | {"test_accuracy": accuracy, "test_top5": in_top})
                if accuracy > best:
                    best = accuracy
                    if here.is_first:
                        keep_best(results, mean, model, counts, in_top, progress.step)
            # At a report; after a stop in between, the next line is of fewer steps.
            if ends or is_stopped or progress.step - saved_at >= s.checkpoint_every:
                saved_at = progress.step
                if here.is_first:
                    save()
            if is_stopped:
                break
            loss_sum = right = torch.zeros((), device=device)
            seen = 0
            timer.begin()

    if is_stopped and progress.step < last_step:
        record.say(f"stopped after step {progress.step} of {last_step}: run again to resume")
    elif here.is_first:
        name = torch.cuda.get_device_name() if group.is_on_gpus else "CPU"
        summary = {
            "settings": vars(s),
            "processes": here.ranks,
            "device": name,
            "steps": progress.step,
            "images_per_second": progress.images_per_second,
            "data": str(data.resolve()),
            **json.loads((results / "best" / "found.json").read_text()),
            "tf32": is_tf32,
            "torch": torch.__version__,
        }
        record.summarize(summary)
        record.say(f"best accuracy {best:.4f}, after step {summary['best_step']}")
    record.close(is_whole=progress.step >= last_step)
    group.leave()


def keep_best(
    results: Path,
    mean: nn.Module,
    model: Classifier,
    counts: torch.Tensor,
    in_top: float,
    step: int,
) -> None:
    """Write the averaged weights as a model's folder, and beside them what they found."""
    found = {
        "best_step": step,
        "test_accuracy": float(counts.trace() / counts.sum()),
        "test_top5": in_top,
        "classes": model.names,
        "confusions": counts.int().tolist(),
    }
    averaged = Classifier(mean, model.names, model.size, model.mean, model.deviation)
    classifier.write(results / "best", averaged, {"found.json": json.dumps(found)})


if __name__ == "__main__":
    run(main, settings(), images.DataError, ScheduleError, ClassifierError, ResumeError)
