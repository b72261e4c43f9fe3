#!/usr/bin/env python
"""Fine-tune a language model with LoRA on one CPU, one GPU, or many nodes; resume where it stopped.

    python finetune.py --results run1 --model /mnt/isilon/models/NAME --data ~/my-texts
    srun --ntasks-per-node=4 python finetune.py --results run1 ...     in a job: one process a GPU

LoRA (Hu et al. 2021, arXiv:2106.09685) leaves the model's weights as they are and learns a small
product of two matrices beside each: little memory, and some megabytes to keep. Each GPU holds the
whole model, so it must fit into one. The model is a folder; nothing is asked of the internet.

In RESULTS stay progress.jsonl, summary.json with the texts before and after, adapter/ (for
peft.PeftModel.from_pretrained), checkpoint.pt, tensorboard/, and error.txt when a process failed.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

# The model and its tokenizer are files; without this they are looked for on the internet first.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
import peft
import texts
import tiny
import torch
import transformers
from process_group import DataParallel
from ranks import place
from record import (
    SCHEMA_VERSION,
    Record,
    ResumeError,
    StepTimer,
    Stop,
    run,
    same_run,
    write_whole,
)
from sampler import Sampler
from torch import nn
from transformers.pytorch_utils import Conv1D

TINY = "tiny"
Tokenizer = transformers.PreTrainedTokenizerBase


class ModelError(ValueError):
    """The model or the lengths cannot be used; the message says why."""


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--model", default=TINY, help="a model's folder, or 'tiny': one made here in half a minute")
    add("--data", default=texts.LICENCES, help="'licences', or a file or folder: .txt, .md, .jsonl")
    add("--steps", type=int, default=100, help="of training; more with the same folder continue")
    add("--batch", type=int, default=8, help="blocks per process and step")
    add("--length", type=int, default=128, help="tokens in a block; at most what the model can")
    add("--rate", type=float, default=2e-3, help="learning rate; real models: about 2e-4")
    add("--rising", type=int, default=10, help="first steps, in which the rate rises")
    add("--lora-rank", type=int, default=8, help="columns of LoRA's matrices: what can be learnt")
    add("--targets", default="all-linear", help="layers with LoRA, separated by commas")
    add("--precision", default="fp32", choices=("fp32", "bf16"), help="of weights and products")
    add("--held-out", type=float, default=0.1, help="share of the blocks that is not trained on")
    add("--held-out-blocks", type=int, default=32, help="so many of these are tested, at most")
    add("--seed", type=int, default=1, help="same seed and processes: same training")
    add("--prompt", default="This License", help="what the model continues, before and after")
    add("--new-tokens", type=int, default=40, help="how far")
    add("--report-every", type=int, default=10, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=50, help="steps between checkpoints, at a report")
    return parser.parse_args()


def with_lora(folder: str, s: argparse.Namespace) -> nn.Module:
    """Read a model, and put LoRA beside its layers."""
    numbers = torch.bfloat16 if s.precision == "bf16" else torch.float32
    base = transformers.AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=numbers
    )
    most = getattr(base.config, "max_position_embeddings", s.length)
    if s.length > most:
        raise ModelError(f"length is {s.length}; this model reads at most {most} tokens")
    names = s.targets.split(",")
    lora = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=s.lora_rank,
        lora_alpha=2 * s.lora_rank,
        target_modules=s.targets if names == ["all-linear"] else names,
        # GPT-2 keeps its weights the other way round than everybody else.
        fan_in_fan_out=any(isinstance(layer, Conv1D) for layer in base.modules()),
    )
    return peft.get_peft_model(base, lora)


def blocks_of(tokenizer: Tokenizer, data: str, length: int) -> torch.Tensor:
    """Return all texts as rows of so many tokens, an end between two texts."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    numbers: list[int] = []
    for text in texts.texts(data):
        numbers += tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] + end
    rows = len(numbers) // length
    return torch.tensor(numbers[: rows * length], dtype=torch.long).view(rows, length)


def flops_of_a_token(model: nn.Module) -> float:
    """Return the operations that training on a token takes, attention's own products left out.

    Two for each weight forward and two backward; the gradients of weights, two more, are LoRA's
    alone (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Looking a token up takes none.
    """
    looked_up = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
    used = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Linear)}
    total = 0.0
    for weight in model.parameters():
        if id(weight) not in looked_up or id(weight) in used:
            total += weight.numel() * (6 if weight.requires_grad else 4)
    return total


def fastest_flops(device: torch.device, numbers: torch.dtype) -> float:
    """Measure the operations in a second that a large product of matrices reaches here."""
    size = 8192 if device.type == "cuda" else 1024
    one = torch.randn(size, size, device=device, dtype=numbers)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        (one @ one)[0, 0].item()
        best = min(best, time.perf_counter() - begin)
    return float(2 * size**3 / best)


def continued(model: nn.Module, tokenizer: Tokenizer, s: argparse.Namespace,
              device: torch.device) -> str:  # fmt: skip
    """Let the model continue the prompt, always with the likeliest token."""
    given = tokenizer(s.prompt, return_tensors="pt", add_special_tokens=True).to(device)
    model.eval()
    with torch.no_grad():
        found = model.generate(
            input_ids=given["input_ids"],
            attention_mask=given["attention_mask"],
            max_new_tokens=s.new_tokens,
            do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )
    model.train()
    return str(tokenizer.decode(found[0], skip_special_tokens=True))


def main(s: argparse.Namespace) -> None:
    """Fine-tune: the story from top to bottom."""
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    group = DataParallel(place(os.environ))
    here, device = group.here, group.device
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    # The model and the texts.
    folder = results / "base" if s.model == TINY else Path(s.model).expanduser()
    if s.model == TINY and here.is_first and not folder.exists():
        print("making the tiny model", flush=True)
        tiny.make(folder, s.seed)
    group.sums(0)
    if not folder.is_dir():
        raise ModelError(f"model is {s.model!r}; there is no such folder")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    blocks = blocks_of(tokenizer, s.data, s.length)
    held = max(1, round(len(blocks) * s.held_out))
    train, test = blocks[:-held], blocks[-held:][: s.held_out_blocks]
    share = Sampler(len(train), s.batch, here.rank, here.ranks, s.seed)
    if share.steps == 0:
        raise ModelError(
            f"{len(train)} blocks of {s.length} tokens do not fill one step of {s.batch} blocks on "
            f"{here.ranks} processes. Set a smaller batch or length, or give more text."
        )

    # What is learnt, and how.
    torch.manual_seed(s.seed)
    model = with_lora(str(folder), s).to(device)
    learnt = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    optimizer = torch.optim.AdamW(learnt.values(), lr=0.0, weight_decay=0.0)
    numbers = torch.bfloat16 if s.precision == "bf16" else torch.float32
    precision = torch.autocast(device.type, torch.bfloat16, enabled=s.precision == "bf16")
    every_token = flops_of_a_token(model)
    fastest = fastest_flops(device, numbers)

    def held_out_loss() -> float:
        """Return the mean loss of the blocks that are not trained on; the processes divide them."""
        model.eval()
        total, mine = 0.0, test[here.rank :: here.ranks]
        with torch.no_grad(), precision:
            for rows in mine.split(s.batch):
                rows = rows.to(device)
                total += float(model(input_ids=rows, labels=rows).loss) * len(rows)
        model.train()
        summed, count = group.sums(total, len(mine))
        return summed / count

    # What was reached before.
    trained, _ = group.joined(model, optimizer)
    checkpoint = results / "checkpoint.pt"
    same_run(results, s, here.ranks, here.is_first, checkpoint.exists())
    step, before, loss_before = 0, "", 0.0
    tokens, seconds = 0, 0.0
    if checkpoint.exists():
        kept = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(kept["learnt"], strict=False)
        optimizer.load_state_dict(kept["optimizer"])
        step, before, loss_before = kept["step"], kept["before"], kept["loss_before"]
        tokens, seconds = kept["tokens"], kept["seconds"]
    else:
        loss_before = held_out_loss()
        before = continued(model, tokenizer, s, device) if here.is_first else ""
    record = Record(results, here.is_first, step)
    all_weights = sum(weight.numel() for weight in model.parameters())
    few = sum(weight.numel() for weight in learnt.values())
    record.say(
        f"{s.model}: {all_weights:,} weights, of which {few:,} are LoRA's and learn",
        f"{len(train):,} blocks of {s.length} tokens to train on, {len(test)} held out",
        f"{s.batch * here.ranks * s.length:,} tokens a step = "
        f"{s.batch} blocks x {s.length} tokens x {here.ranks} processes",
        f"a product of matrices reaches {fastest / 1e12:.3g} TFLOPS on {device.type}",
        f"held-out loss before: {loss_before:.4f}",
    )
    if step:
        record.say(f"resumed after step {step} of {s.steps}")

    def save() -> None:
        states = {"learnt": {name: weight.detach() for name, weight in learnt.items()}}
        states |= {"optimizer": optimizer.state_dict(), "step": step, "tokens": tokens}
        states |= {"seconds": seconds, "before": before, "loss_before": loss_before}
        write_whole(checkpoint, lambda stream: torch.save(states, stream))

    model.train()
    is_stopped, timer, saved_at = False, StepTimer(), step
    loss_sum, count = torch.zeros((), device=device), 0
    timer.begin()
    while step < s.steps and not is_stopped:
        epoch, first = divmod(step, share.steps)
        for chosen in share.epoch(epoch, first):
            # So that a model's dropout, too, is that of a training without a break.
            torch.manual_seed((s.seed * 1_000_003 + step) * here.ranks + here.rank)
            rows = train[[index for _, index in chosen]].to(device)
            for parameters in optimizer.param_groups:
                parameters["lr"] = s.rate * min(1.0, (step + 1) / s.rising)
            with precision:
                loss = trained(input_ids=rows, labels=rows).loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learnt.values(), 1.0)
            optimizer.step()
            step += 1
            timer.step(rows.numel(), loss.item)
            loss_sum, count = loss_sum + loss.detach(), count + 1
            if step % s.report_every and step != s.steps:
                continue

            # A report: what all processes did since the last.
            losses, counts, stops = group.sums(loss_sum, count, stop.is_wanted)
            is_stopped = stops > 0
            stretch = timer.end()
            speed = stretch.images * here.ranks / stretch.seconds
            if stretch.is_settled:
                tokens, seconds = tokens + stretch.images * here.ranks, seconds + stretch.seconds
            line = {
                "epoch": epoch + 1,
                "step": step,
                "steps": s.steps,
                "loss": losses / counts,
                "held_out_loss": held_out_loss(),
                "tokens_per_second": round(speed, 1),
                "flops_use": round(speed * every_token / (fastest * here.ranks), 4),
            }
            record.add(line)
            if is_stopped or step == s.steps or step - saved_at >= s.checkpoint_every:
                saved_at = step
                if here.is_first:
                    save()
            if is_stopped or step == s.steps:
                break
            loss_sum, count = torch.zeros((), device=device), 0
            timer.begin()

    if is_stopped and step < s.steps:
        record.say(f"stopped after step {step} of {s.steps}: run again to resume")
    else:
        loss_after = held_out_loss()
        if here.is_first:
            speed = tokens / seconds if seconds else None
            use = None if speed is None else speed * every_token / (fastest * here.ranks)
            summary = {
                "schema": SCHEMA_VERSION,
                "settings": vars(s),
                "processes": here.ranks,
                "device": torch.cuda.get_device_name() if group.is_on_gpus else "CPU",
                "steps": step,
                "weights": all_weights,
                "weights_learnt": few,
                "tokens_per_second": speed,
                "flops_use": use,
                "held_out_loss": [loss_before, loss_after],
                "generated": [before, continued(model, tokenizer, s, device)],
                "torch": torch.__version__,
            }
            model.save_pretrained(results / "adapter")
            text = json.dumps(summary, indent=1).encode()
            write_whole(results / "summary.json", writer(text))
            record.say(f"held-out loss {loss_before:.4f} before, {loss_after:.4f} after")
    group.leave()


def writer(content: bytes) -> Callable[..., object]:
    """Return what writes these bytes into a stream."""
    return lambda stream: stream.write(content)


if __name__ == "__main__":
    run(main, settings(), texts.TextError, ModelError, ResumeError)
