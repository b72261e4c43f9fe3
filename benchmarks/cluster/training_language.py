"""Tokens/s of the language template's training, beside the same training written otherwise.

    python -m benchmarks.cluster.training_language [--rounds 5] [--weights lora]

With any Python that has PyTorch and transformers, and peft for LoRA, on one GPU or on the CPU; from
the repository's root. The same random GPT-2 learns the same blocks, in turns:

- *ours*: `finetune.py`, which compiles on a GPU;
- *eager*: `finetune.py --compile no`, on a GPU;
- *plain*: a loop of a few lines;
- *trainer*: `transformers.Trainer`.

Each is a process of its own. Compared are tokens/s after the first ten steps; testing, checkpoints
and what is written are in nobody's. The share of the peak is what the template says of itself. On
the CPU give small sizes: `--layers 3 --width 128 --length 128 --vocabulary 1024`. The last line is
one JSON object with the medians of the rounds' ratios.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.cluster.interleaved import compared, interleaved, said_by
from benchmarks.commit import circumstances, commit

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = ROOT / "notebook_templates" / "language"
KINDS = ("ours", "plain", "trainer")
UNTIMED_STEPS = 10
"""The template's own number (record.py)."""
MAKE = """
import sys
import torch
sys.path.insert(0, sys.argv[1])
from texts import texts
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
folder = sys.argv[2]
layers, width, length, vocabulary = map(int, sys.argv[3:7])
words = ByteLevelBPETokenizer()
words.train_from_iterator(texts("licences"), vocabulary, special_tokens=["<end>"])
PreTrainedTokenizerFast(
    tokenizer_object=words._tokenizer, eos_token="<end>", pad_token="<end>"
).save_pretrained(folder)
torch.manual_seed(1)
GPT2LMHeadModel(GPT2Config(
    vocab_size=vocabulary, n_positions=length, n_embd=width, n_layer=layers,
    n_head=max(1, width // 64), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    bos_token_id=0, eos_token_id=0,
)).save_pretrained(folder)
print("GPU" if torch.cuda.is_available() else "CPU")
"""
LOOP = """
import json, sys, tempfile, time
from pathlib import Path
import torch
import transformers
sys.path.insert(0, sys.argv[1])
import causal_lm
kind, folder, weights, precision = sys.argv[2:6]
batch, length, steps, untimed = map(int, sys.argv[6:10])
transformers.logging.set_verbosity_error()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
numbers = torch.bfloat16 if precision == "bf16" else torch.float32
model = causal_lm.read(Path(folder), numbers, length)
if weights == "lora":
    import peft
    model = peft.get_peft_model(model, peft.LoraConfig(
        task_type="CAUSAL_LM", r=8, lora_alpha=16, target_modules="all-linear", fan_in_fan_out=True
    ))
tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
blocks = causal_lm.blocks_of(tokenizer, "licences", length)

def now():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()

if kind == "plain":
    model = model.to(device)
    learnt = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=1e-4, weight_decay=0.0)
    order = torch.randperm(len(blocks)).repeat(1 + steps * batch // len(blocks))
    for step in range(steps):
        if step == untimed:
            since = now()
        rows = blocks[order[step * batch : (step + 1) * batch]].to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = model(input_ids=rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
    seconds = now() - since
else:
    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            if state.global_step in (untimed, steps):
                moments.append(now())

    moments = []
    with tempfile.TemporaryDirectory() as results:
        given = transformers.TrainingArguments(
            output_dir=results, per_device_train_batch_size=batch, max_steps=steps,
            learning_rate=1e-4, weight_decay=0.0, max_grad_norm=1.0,
            bf16=precision == "bf16" and device.type == "cuda", use_cpu=device.type == "cpu",
            save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
        )
        data = [{"input_ids": row, "labels": row} for row in blocks]
        transformers.Trainer(
            model=model, args=given, train_dataset=data, callbacks=[Clock()]
        ).train()
    seconds = moments[1] - moments[0]
print(json.dumps({"tokens_per_second": (steps - untimed) * batch * length / seconds}))
"""


def main() -> None:
    """Let all take turns, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--weights", default="lora", choices=("lora", "all"))
    add("--layers", type=int, default=12, help="of GPT-2; its smallest has 12 of width 768")
    add("--width", type=int, default=768)
    add("--vocabulary", type=int, default=50_257)
    add("--length", type=int, default=1024, help="tokens in a block")
    add("--batch", type=int, default=8, help="blocks in a step")
    add("--steps", type=int, default=60)
    add("--precision", default="bf16", choices=("fp32", "bf16"))
    given = parser.parse_args()
    uses = []
    with tempfile.TemporaryDirectory() as place:
        model = Path(place, "model")
        sizes = (given.layers, given.width, given.length, given.vocabulary)
        made = [sys.executable, "-B", "-c", MAKE, str(LANGUAGE), str(model), *map(str, sizes)]
        kinds = [*KINDS, "eager"] if said_by(made).split()[-1] == "GPU" else KINDS

        def measure(kind: str, number: int) -> float:
            if kind not in ("ours", "eager"):
                return loop(given, kind, model)
            compiles = "no" if kind == "eager" else "auto"
            speed, use = ours(given, compiles, model, Path(place, f"{kind}-{number}"))
            if kind == "ours":
                uses.append(use)
            return speed

        speeds = interleaved(kinds, given.rounds, measure, "tokens/s")
    result = {
        "benchmark": "training_language",
        "settings": vars(given),
        **compared(speeds, "tokens_per_second"),
        "flops_use": round(statistics.median(uses), 4),
        **circumstances(commit()),
    }
    print(json.dumps(result))


def ours(
    given: argparse.Namespace, compiles: str, model: Path, results: Path
) -> tuple[float, float]:
    """Run the template; return its tokens/s, and the share of the device's FLOPS."""
    options = {
        "results": results,
        "model": model,
        "weights": given.weights,
        "compile": compiles,
        "steps": given.steps,
        "batch": given.batch,
        "length": given.length,
        "precision": given.precision,
        "report-every": given.steps - UNTIMED_STEPS,
        "checkpoint-every": 10 * given.steps,
        "new-tokens": 1,
        "held-out-blocks": 1,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    said_by([sys.executable, "-B", str(LANGUAGE / "finetune.py"), *words])
    summary = json.loads((results / "summary.json").read_text())
    return summary["tokens_per_second"], summary["flops_use"]


def loop(given: argparse.Namespace, kind: str, model: Path) -> float:
    """Run one of the others; return its tokens/s."""
    numbers = (given.batch, given.length, given.steps, UNTIMED_STEPS)
    words = [kind, str(model), given.weights, given.precision, *map(str, numbers)]
    said = said_by([sys.executable, "-B", "-c", LOOP, str(LANGUAGE), *words])
    return float(json.loads(said.splitlines()[-1])["tokens_per_second"])


if __name__ == "__main__":
    main()
