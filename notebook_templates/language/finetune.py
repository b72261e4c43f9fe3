#!/usr/bin/env python
"""Fine-tune a language model on one CPU, one GPU, or many nodes; resume where it stopped.

    python finetune.py --results run1 --model /mnt/isilon/models/NAME --data ~/my-texts
    srun --ntasks-per-node=4 python finetune.py --results run1 ...     in a job: one process a GPU

Texts are learnt as they are, of conversations only the answers (corpus.py). What learns is LoRA
(lora.py), or, with --weights all, the whole model, divided over all processes with FSDP2
(fully_sharded.py). The model is a folder; nothing is asked of the internet.

In RESULTS stay progress.jsonl, summary.json with the texts before and after, adapter/ (for
peft.PeftModel.from_pretrained) or model/ (for from_pretrained), the checkpoint, tensorboard/, and
error.txt when a process failed.
"""

import argparse
import os
import sys
from pathlib import Path

# The model and its tokenizer are files; without this they are looked for on the internet first.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# A copy of this file finds the modules in the templates.
sys.path += [
    str(place / name)
    for place in (Path("~/templates").expanduser(), Path(__file__).resolve().parents[1])
    for name in ("language", "distributed")
]
import accumulation
import causal_lm
import compiling
import corpus
import fully_sharded
import held_out
import lora
import texts
import tf32
import tiny
import torch
import transformers
from causal_lm import ModelError, TokenProgress
from process_group import DataParallel
from ranks import place
from record import (
    Record,
    ResumeError,
    StepTimer,
    Stop,
    StopChecks,
    run,
    same_run,
)
from sampler import Sampler
from schedule import counted, rate_at
from torch import nn

TINY = "tiny"
SCHEDULES = ("constant", "cosine")
# What came with a later version of this program, and what it was before.
ADDED = {"accumulate": 1, "schedule": "constant", "schedule_steps": 0, "weight_decay": 0.0}
WAYS = {"lora": lora.Lora, "all": fully_sharded.FullySharded}


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--model", default=TINY, help="a model's folder, or 'tiny': one made here in half a minute")
    add("--data", default=texts.LICENCES, help="'licences', 'animals', or .txt, .md, .jsonl")
    add("--weights", default="lora", choices=WAYS, help="what learns: LoRA, or all weights (FSDP2)")
    add("--steps", type=int, default=100, help="of training; more with the same folder continue")
    add("--batch", type=int, default=8, help="blocks per process, computed together")
    add("--accumulate", type=int, default=1, help="batches per process and step: saves memory")
    add("--length", type=int, default=128, help="tokens in a block; at most what the model can")
    add("--rate", type=float, default=2e-3, help="learning rate; real models: LoRA 2e-4, all 2e-5")
    add("--rising", type=int, default=10, help="first steps, in which the rate rises")
    add("--schedule", default="constant", choices=SCHEDULES, help="of the rate, after that")
    add("--schedule-steps", type=int, default=0, help="where a cosine ends; 0: with steps")
    add("--weight-decay", type=float, default=0.0, help="of matrices, not of biases and norms")
    add("--lora-rank", type=int, default=8, help="columns of LoRA's matrices: what can be learnt")
    add("--targets", default="all-linear", help="layers with LoRA, separated by commas")
    add("--precision", default="fp32", choices=("fp32", "bf16"), help="of weights and products")
    add("--compile", default="auto", choices=compiling.CHOICES, help="auto: with a GPU")
    add(
        "--recompute", default="no", choices=("no", "yes"), help="layers twice: slower, less memory"
    )
    add("--held-out", type=float, default=0.1, help="share of the blocks that is not trained on")
    add("--held-out-blocks", type=int, default=32, help="so many of these are tested, at most")
    add("--seed", type=int, default=1, help="same seed and processes: same training")
    add("--prompt", default="This License", help="what the model continues, before and after")
    add("--questions", type=int, default=8, help="with conversations: questions to answer instead")
    add("--new-tokens", type=int, default=40, help="tokens to write, at most")
    add("--report-every", type=int, default=10, help="steps between two lines of progress")
    add("--evaluate-every", type=int, default=0, help="steps between held-out losses; 0: reports")
    add("--checkpoint-every", type=int, default=50, help="steps between checkpoints, at a report")
    add("--mlflow", default="", help="MLflow's experiment in which the run is kept; '': none")
    return parser.parse_args()


def main(s: argparse.Namespace) -> None:
    """Fine-tune: the story from top to bottom."""
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    group = DataParallel(place(os.environ))
    here, device = group.here, group.device
    torch.backends.cuda.matmul.allow_tf32 = True
    is_tf32 = tf32.is_used(s.precision, group.is_on_gpus, is_allowed=True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    # The model and the texts.
    # An adapter tells by this path which model it belongs to, wherever it is opened from.
    folder = (results / "base" if s.model == TINY else Path(s.model).expanduser()).absolute()
    if s.model == TINY and here.is_first and not folder.exists():
        print("making the tiny model", flush=True)
        tiny.make(folder, s.seed)
    group.sums(0)
    if not folder.is_dir():
        raise ModelError(f"model is {s.model!r}; there is no such folder")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    read = corpus.opened(tokenizer, s)
    train, test = read.train, read.test
    together = s.batch * s.accumulate * here.ranks
    sampler = Sampler(len(train), together, 0, 1, s.seed)
    if sampler.steps == 0:
        raise ModelError(
            f"{len(train)} {read.unit} do not fill one step of {s.batch} x {s.accumulate} on "
            f"{counted(here.ranks, 'process', 'processes')}. "
            "Set a smaller batch or length, or give more text."
        )
    falls_until = (s.schedule_steps or s.steps) if s.schedule == "cosine" else 0
    if falls_until and s.steps > falls_until:
        raise ModelError(
            f"steps is {s.steps}; the learning rate is 0 from {falls_until} (schedule_steps) on"
        )

    # What is learnt, and how.
    torch.manual_seed(s.seed)
    way = WAYS[s.weights](folder, results, s, group)
    model, optimizer = way.model, way.optimizer
    if s.recompute == "yes":
        # Of each layer only the input is kept for the backward pass (Chen et al. 2016,
        # arXiv:1604.06174).
        model.gradient_checkpointing_enable({"use_reentrant": False})
    learnt = [weight for weight in model.parameters() if weight.requires_grad]
    numbers = torch.bfloat16 if s.precision == "bf16" else torch.float32
    precision = torch.autocast(device.type, torch.bfloat16, enabled=s.precision == "bf16")
    every_token = causal_lm.flops_of_a_token(model)
    fastest = causal_lm.fastest_flops(device, numbers)

    def held_out_loss() -> float:
        return held_out.loss(model, test, s.batch, group, precision)

    def written() -> str:
        return read.written(model, device)

    # What was reached before.
    is_begun = group.sums(here.is_first and way.has_checkpoint)[0] > 0
    asked = {**vars(s), "schedule_steps": falls_until}
    # With other texts, some that were trained on would be held out.
    asked |= {"train_sha256": train.digest(), "held_out_sha256": test.digest()}
    if not way.keeps_size:
        asked |= {"batch": together, "accumulate": 1}
    processes = here.ranks if way.keeps_size else 0
    same_run(results, argparse.Namespace(**asked), processes, here.is_first, is_begun, ADDED)
    reached = (
        way.load() if is_begun else TokenProgress(before=written(), loss_before=held_out_loss())
    )
    record = Record(results, here.is_first, reached.step, s)
    all_weights = sum(weight.numel() for weight in model.parameters())
    few = sum(weight.numel() for weight in learnt)
    record.say(
        f"{s.model}: {all_weights:,} weights, of which {few:,} learn",
        f"precision {tf32.said(s.precision, is_tf32)}",
        *read.words(
            f"{s.batch} {read.unit} x {s.accumulate} (accumulate) x "
            f"{counted(here.ranks, 'process', 'processes')}",
            together,
        ),
        f"a product of matrices reaches {fastest / 1e12:.3g} TFLOPS on {device.type}",
        f"held-out loss before: {reached.loss_before:.4f}",
    )
    if s.recompute == "yes":
        record.say("activation checkpointing: layers are recomputed in the backward pass")
    if compiling.is_wanted(s.compile, group.is_on_gpus, record.say):
        way.trained = torch.compile(way.trained)
    if reached.step:
        record.say(f"resumed after step {reached.step} of {s.steps}")

    model.train()
    if group.is_on_gpus:
        # What the model's making, and the measured product, took is not the training's.
        torch.cuda.reset_peak_memory_stats()
    is_stopped, timer, saved_at = False, StepTimer(), reached.step
    checks = StopChecks(stop, group.sums)
    loss_sum, count = torch.zeros((), device=device), 0
    timer.begin()
    while reached.step < s.steps and not is_stopped:
        epoch, first = divmod(reached.step, sampler.steps)
        for chosen in sampler.epoch(epoch, first):
            # So that a model's dropout, too, is that of a training without a break.
            torch.manual_seed((s.seed * 1_000_003 + reached.step) * here.ranks + here.rank)
            indices = [index for _, index in chosen]
            for parameters in optimizer.param_groups:
                parameters["lr"] = rate_at(reached.step, s.rate, s.rising, falls_until)
            optimizer.zero_grad()
            step = accumulation.mean_over_tokens(way, train, indices, s.batch, group, precision)
            nn.utils.clip_grad_norm_(learnt, 1.0)
            optimizer.step()
            reached.step += 1
            timer.step(step.read, step.loss.item)
            loss_sum, count = loss_sum + step.loss, count + 1
            evaluates = reached.step % (s.evaluate_every or s.report_every) == 0
            is_due = reached.step % s.report_every == 0 or evaluates or reached.step == s.steps
            if not is_due and not checks.says_stop(reached.step):
                continue

            # A report: what all processes did since the last.
            losses, counts, stops = group.sums(loss_sum, count, stop.is_wanted)
            is_stopped = stops > 0
            stretch = timer.end()
            tokens, seconds = group.sums(stretch.images, stretch.seconds)
            checks.told(seconds / here.ranks / count)
            speed = tokens / stretch.seconds
            if stretch.is_settled:
                reached.tokens += round(tokens)
                reached.seconds += stretch.seconds
            line = {
                "epoch": epoch + 1,
                "step": reached.step,
                "steps": s.steps,
                "loss": losses / counts,
                "rate": rate_at(reached.step - 1, s.rate, s.rising, falls_until),
                "tokens_per_second": round(speed, 1),
                "flops_use": round(speed * every_token / (fastest * here.ranks), 4),
                "peak_gpu_memory_bytes": held_out.peak_gpu_memory_bytes(group),
            }
            is_last = is_stopped or reached.step == s.steps
            if evaluates or is_last:
                loss_now = held_out_loss()
                line |= {"held_out_loss": loss_now, "perplexity": held_out.perplexity(loss_now)}
            record.add(line)
            if is_last or reached.step - saved_at >= s.checkpoint_every:
                saved_at = reached.step
                way.save(reached)
            if is_last:
                break
            loss_sum, count = torch.zeros((), device=device), 0
            timer.begin()
    way.finish()

    if is_stopped and reached.step < s.steps:
        record.say(f"stopped after step {reached.step} of {s.steps}: run again to resume")
    else:
        peak = held_out.peak_gpu_memory_bytes(group)
        loss_after, after = held_out_loss(), written()
        exported = way.export(tokenizer)
        if here.is_first:
            speed = reached.tokens / reached.seconds if reached.seconds else None
            use = None if speed is None else speed * every_token / (fastest * here.ranks)
            losses_of = [reached.loss_before, loss_after]
            summary = {
                "settings": vars(s),
                "processes": here.ranks,
                "device": torch.cuda.get_device_name() if group.is_on_gpus else "CPU",
                "steps": reached.step,
                "weights": all_weights,
                "weights_learnt": few,
                "tokens_per_second": speed,
                "flops_use": use,
                "held_out_loss": losses_of,
                "perplexity": [held_out.perplexity(one) for one in losses_of],
                "peak_gpu_memory_bytes": peak,
                **read.summary(reached.before, after),
                "result": exported,
                "tf32": is_tf32,
                "torch": torch.__version__,
            }
            record.summarize(summary)
            record.say(f"held-out loss {reached.loss_before:.4f} before, {loss_after:.4f} after")
    record.close(is_whole=reached.step >= s.steps)
    group.leave()


if __name__ == "__main__":
    run(main, settings(), texts.TextError, ModelError, ResumeError)
