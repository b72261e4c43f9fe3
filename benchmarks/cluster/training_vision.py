"""Images/s of the vision template's training, beside the same training written otherwise.

    python -m benchmarks.cluster.training_vision [--rounds 5]

With any Python that has PyTorch and transformers, on one GPU or on the CPU; from the repository's
root. The same size of vision transformer learns the same pictures, JPEG files, each cut at random,
changed by RandAugment and mixed with another (mixup), by AdamW with a mean of its weights (EMA):

- *ours*: `train_vit.py`;
- *plain*: a loop of a few lines, over the template's own pictures;
- *timm*: timm's network, loader, mixup and mean, put together as its own training does it, where
  timm is installed.

Each is a process of its own. Compared are images/s after the first ten steps; testing, checkpoints
and what is written are in nobody's. The share of the peak is the arithmetic of a step, forward and
backward as PyTorch counts it (`torch.utils.flop_counter`), over what a large product of matrices
reaches in the same run. On the CPU give small sizes: `--layers 2 --width 64 --size 32 --batch 8
--steps 15 --precision fp32`. The last line is one JSON object.
"""

import argparse
import importlib.util
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.cluster.interleaved import compared, interleaved, said_by
from benchmarks.commit import circumstances, commit

ROOT = Path(__file__).resolve().parents[2]
VISION = ROOT / "notebook_templates" / "vision"
UNTIMED_STEPS = 10
"""The template's own number (record.py)."""
DIFFERENT = 500
"""Pictures; the others are links to them."""
CLASSES = 8
MAKE = """
import json, os, sys
from pathlib import Path
import numpy as np
import torch
import transformers
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/../language"]
import causal_lm
import classifier
model, data = Path(sys.argv[2]), Path(sys.argv[3])
layers, width, size, patch, count, different, classes = map(int, sys.argv[4:11])
drawn, made = np.random.default_rng(1), []
for number in range(count):
    part = "train" if number < count - classes else "val"
    file = data / part / f"class-{number % classes}" / f"{number:06}.jpg"
    file.parent.mkdir(parents=True, exist_ok=True)
    if number < different:
        coarse = drawn.integers(0, 256, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((400, 300), Image.Resampling.BICUBIC).save(file, quality=90)
        made.append(file)
    else:
        os.link(made[number % different], file)
torch.manual_seed(1)
network = transformers.ViTForImageClassification(transformers.ViTConfig(
    hidden_size=width, num_hidden_layers=layers, num_attention_heads=max(1, width // 64),
    intermediate_size=4 * width, image_size=size, patch_size=patch, num_labels=classes,
))
names = [f"class-{number}" for number in range(classes)]
classifier.write(model, classifier.Classifier(network, names, size, (0.5,) * 3, (0.5,) * 3))
with FlopCounterMode(display=False) as counter:
    network(torch.randn(2, 3, size, size)).logits.sum().backward()
has_gpu = torch.cuda.is_available()
numbers = torch.bfloat16 if sys.argv[11] == "bf16" else torch.float32
torch.backends.cuda.matmul.allow_tf32 = True
peak = causal_lm.fastest_flops(torch.device("cuda" if has_gpu else "cpu"), numbers)
print(json.dumps({
    "card": torch.cuda.get_device_name() if has_gpu else None,
    "torch": torch.__version__,
    "transformers": transformers.__version__,
    "matmul_flop_per_second": peak,
    "flop_per_image": counter.get_total_flops() / 2,
}))
"""
LOOP = """
import json, os, sys, time
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[1])
kind, folder, data, precision = sys.argv[2:6]
batch, steps, untimed, size, layers, width, patch, classes = map(int, sys.argv[6:14])
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"
torch.backends.cuda.matmul.allow_tf32 = True
workers = max(0, len(os.sched_getaffinity(0)) - 1)
amp = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")

def now():
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter()

if kind == "plain":
    import augment
    import classifier
    import pictures
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
    found = pictures.opened(data, 0.2, 1)
    model = classifier.read(Path(folder), found.names)
    train = pictures.Augmented(found.train, size, 0.5, 2, 3)
    order = [(0, index) for index in torch.randperm(len(train)).tolist()]
    loader = torch.utils.data.DataLoader(
        train, batch_size=batch, sampler=order, num_workers=workers, pin_memory=on_gpu,
        drop_last=True,
    )
    network = model.network.to(device)
    mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    average = mean.update_parameters
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.05)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    def prepared(pixels, labels, step):
        pixels = model.normal(pixels.to(device, non_blocking=True))
        return augment.mixup(pixels, labels.to(device, non_blocking=True), classes, 0.1, step)
else:
    import timm.data
    import timm.loss
    import timm.optim
    import timm.utils
    network = timm.create_model(
        "vit_base_patch16_224", img_size=size, patch_size=patch, embed_dim=width, depth=layers,
        num_heads=max(1, width // 64), num_classes=classes,
    ).to(device)
    loader = timm.data.create_loader(
        timm.data.create_dataset("", root=data, split="train"), (3, size, size), batch,
        is_training=True, scale=(0.5, 1.0), color_jitter=0.0, auto_augment="rand-m3-n2",
        interpolation="bilinear", mean=(0.5,) * 3, std=(0.5,) * 3, num_workers=workers,
        pin_memory=on_gpu, device=device, use_prefetcher=on_gpu,
    )
    mixup = timm.data.Mixup(mixup_alpha=0.1, label_smoothing=0.1, num_classes=classes)
    optimizer = timm.optim.create_optimizer_v2(network, opt="adamw", lr=1e-4, weight_decay=0.05)
    mean = timm.utils.ModelEmaV3(network, decay=0.99)
    average = mean.update
    loss_of = timm.loss.SoftTargetCrossEntropy()

    def prepared(pixels, labels, step):
        # As in timm's own training: with its prefetcher the batch is on the device already.
        if not on_gpu:
            pixels, labels = pixels.to(device), labels.to(device)
        return mixup(pixels, labels)

network.train()
for step, (pixels, labels) in enumerate(loader):
    if step == untimed:
        since = now()
    if step == steps:
        break
    pixels, wanted = prepared(pixels, labels, step)
    with amp:
        loss = loss_of(network(pixels), wanted)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    average(network)
seconds = now() - since
print(json.dumps({"images_per_second": (steps - untimed) * batch / seconds}))
# The loader's processes need not be waited for.
sys.stdout.flush()
os._exit(0)
"""


def main() -> None:
    """Let all take turns, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=5)
    add("--layers", type=int, default=12, help="of the transformer; ViT-B has 12 of width 768")
    add("--width", type=int, default=768)
    add("--size", type=int, default=224, help="pixels, height and width")
    add("--patch", type=int, default=16, help="pixels, height and width")
    add("--batch", type=int, default=128, help="pictures in a step")
    add("--steps", type=int, default=60)
    add("--precision", default="bf16", choices=("fp32", "bf16"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        card = json.loads(made(given, Path(place)).splitlines()[-1])
        kinds = ["ours", "plain", *(["timm"] if importlib.util.find_spec("timm") else [])]

        def measure(kind: str, _: int) -> float:
            return ours(given, Path(place)) if kind == "ours" else loop(given, kind, Path(place))

        speeds = interleaved(kinds, given.rounds, measure, "images/s")
    arithmetic = statistics.median(speeds["ours"]) * card["flop_per_image"]
    result = {
        "benchmark": "training_vision",
        "settings": vars(given),
        **compared(speeds, "images_per_second"),
        "share_of_peak": round(arithmetic / card["matmul_flop_per_second"], 3),
        "card": card,
        **circumstances(commit()),
    }
    print(json.dumps(result))


def made(given: argparse.Namespace, place: Path) -> str:
    """Make the pictures and the network; return what the card can do, as JSON."""
    count = given.batch * (given.steps + 1) + CLASSES
    numbers = (given.layers, given.width, given.size, given.patch, count, DIFFERENT, CLASSES)
    folders = (VISION, place / "model", place / "data")
    words = map(str, (*folders, *numbers, given.precision))
    return said_by([sys.executable, "-B", "-c", MAKE, *words])


def ours(given: argparse.Namespace, place: Path) -> float:
    """Run the template; return its images/s."""
    results = place / "run"
    shutil.rmtree(results, ignore_errors=True)
    options = {
        "results": results,
        "model": place / "model",
        "data": place / "data",
        "epochs": 1,
        "steps": given.steps,
        "batch": given.batch,
        "precision": given.precision,
        "report-every": given.steps - UNTIMED_STEPS,
        "checkpoint-every": 10 * given.steps,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    said_by([sys.executable, "-B", str(VISION / "train_vit.py"), *words])
    return float(json.loads((results / "summary.json").read_text())["images_per_second"])


def loop(given: argparse.Namespace, kind: str, place: Path) -> float:
    """Run one of the others; return its images/s."""
    numbers = (given.batch, given.steps, UNTIMED_STEPS, given.size)
    shape = (given.layers, given.width, given.patch, CLASSES)
    words = (VISION, kind, place / "model", place / "data", given.precision, *numbers, *shape)
    said = said_by([sys.executable, "-B", "-c", LOOP, *map(str, words)])
    return float(json.loads(said.splitlines()[-1])["images_per_second"])


if __name__ == "__main__":
    main()
