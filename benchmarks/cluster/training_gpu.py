"""How much of a GPU our training uses: images/s of ResNet-50, beside others on the same card.

    python -m benchmarks.cluster.training_gpu [--rounds 3] [--batches 64,128,256,512]

With any Python that has PyTorch and sees one GPU; from the repository's root; nothing is installed.
First our `train_resnet.py` on synthetic images in each precision and batch size. Then, with the
fastest of these, in turns:

- *ours*: `train_resnet.py`;
- *plain*: the same network in a loop without our options: no channels_last, no compiling;
- *timm*: timm's resnet50 in a loop with channels_last and compiling, where timm is installed.

The share of the peak is the arithmetic of a step, forward and backward as PyTorch counts it
(`torch.utils.flop_counter`), over what a large product of matrices reaches in the same run.
Compared are images/s after the first reports, which hold compiling and warm-up. Without a GPU it
runs, with small parameters, to show that it does: its figures mean nothing then, and say so. The
last line is one JSON object.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.cluster.interleaved import compared, interleaved
from benchmarks.commit import circumstances, commit

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTED = ROOT / "notebook_templates" / "distributed"
PRECISIONS = ("bf16", "fp16", "fp32")
# The reports that hold compiling, the choice of algorithms, and the rise of the clock.
WARM_UP_REPORTS = 2

LOOP = """
import json, sys, time
import torch
sys.path.insert(0, sys.argv[1])
kind, model, precision = sys.argv[2:5]
batch, size, steps, every = map(int, sys.argv[5:9])
if kind == "timm":
    import timm
    network = timm.create_model("resnet" + model, num_classes=1000)
else:
    from networks import resnet
    network = resnet.build(model, 1000)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
numbers = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True
images = torch.randn(batch, 3, size, size, device=device)
labels = torch.arange(batch, device=device) % 1000
network = network.to(device)
if kind == "timm":
    network = network.to(memory_format=torch.channels_last)
    images = images.to(memory_format=torch.channels_last)
    network = torch.compile(network) if device.type == "cuda" else network
optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, weight_decay=5e-5)
scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(1, steps + 1):
    if (step - 1) % every == 0:
        since = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device.type, numbers, enabled=precision != "fp32"):
        loss = loss_of(network(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % every == 0:
        loss.item()  # waits for the GPU
        print(json.dumps({"images_per_second": every * batch / (time.perf_counter() - since)}))
"""
CARD = """
import json, sys, time
import torch
from torch.utils.flop_counter import FlopCounterMode
sys.path.insert(0, sys.argv[1])
from networks import resnet
model, size = sys.argv[2], int(sys.argv[3])
has_gpu = torch.cuda.is_available()
device = torch.device("cuda" if has_gpu else "cpu")
side, times = (8192, 20) if has_gpu else (512, 2)
torch.backends.cuda.matmul.allow_tf32 = True
peaks = {}
for name, numbers in (("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32)):
    a, b = (torch.randn(side, side, device=device, dtype=numbers) for _ in range(2))
    for _ in range(3):
        c = a @ b
    float(c[0, 0])
    since = time.perf_counter()
    for _ in range(times):
        c = a @ b
    float(c[0, 0])
    peaks[name] = times * 2 * side**3 / (time.perf_counter() - since)
network, images = resnet.build(model, 1000), torch.randn(2, 3, size, size)
with FlopCounterMode(display=False) as counter:
    network(images).sum().backward()
print(json.dumps({
    "card": torch.cuda.get_device_name() if has_gpu else None,
    "torch": torch.__version__,
    "cuda": torch.version.cuda,
    "matmul_flop_per_second": peaks,
    "flop_per_image": counter.get_total_flops() / 2,
}))
"""


def main() -> None:
    """Sweep, compare, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="one that has PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="50")
    parser.add_argument("--size", type=int, default=224, help="pixels, height and width")
    parser.add_argument("--batches", default="64,128,256,512")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--report-every", type=int, default=10)
    bench = GpuBench(parser.parse_args())
    card = bench.card()
    sweep = bench.sweep()
    best = max(sweep, key=lambda one: one.images_per_second or 0)
    if not best.images_per_second:
        sys.exit("No training came to its end; what they said is above.")
    speeds = bench.compare(best)
    print(json.dumps(result(bench.given, card, sweep, best, speeds)))


@dataclass(frozen=True)
class Card:
    """A GPU and what it can do."""

    card: str | None
    """``None``: there is no GPU."""
    torch: str
    cuda: str | None
    matmul_flop_per_second: dict[str, float]
    """By precision."""
    flop_per_image: float
    """Of a step, forward and backward."""


@dataclass(frozen=True)
class Measured:
    """One setting of the sweep."""

    precision: str
    batch: int
    images_per_second: float | None
    """``None`` where the card's memory did not do."""


class GpuBench:
    """The trainings."""

    def __init__(self, given: argparse.Namespace) -> None:
        """Take what was asked for."""
        self.given = given

    def card(self) -> "Card":
        """Ask for the card and what it can do."""
        given = self.given
        argv = ["-c", CARD, str(DISTRIBUTED), given.model, str(given.size)]
        return Card(**json.loads(self._run(argv).splitlines()[-1]))

    def sweep(self) -> list[Measured]:
        """Train in each precision and batch size."""
        found = []
        batches = [int(batch) for batch in self.given.batches.split(",")]
        for precision, batch in itertools.product(self.given.precisions.split(","), batches):
            try:
                speed: float | None = self.ours(precision, batch)
            except subprocess.CalledProcessError as error:
                speed = None
                print(str(error.stderr)[-600:], file=sys.stderr)
            print(f"{precision}, batch {batch}: {speed} images/s", flush=True)
            found.append(Measured(precision, batch, speed))
        return found

    def compare(self, best: Measured) -> dict[str, list[float]]:
        """Let ours, the plain loop and timm's network take turns."""
        kinds = ["ours", "plain", *(["timm"] if self._has_timm() else [])]

        def measure(kind: str, _: int) -> float:
            if kind == "ours":
                return self.ours(best.precision, best.batch)
            return self.loop(kind, best.precision, best.batch)

        return interleaved(kinds, self.given.rounds, measure, "images/s")

    def ours(self, precision: str, batch: int) -> float:
        """Run our program; return its images/s."""
        given = self.given
        with tempfile.TemporaryDirectory() as results:
            options = {
                "results": results,
                "model": given.model,
                "size": given.size,
                "batch": batch,
                "precision": precision,
                "steps": given.steps,
                "report-every": given.report_every,
                "images": batch * given.steps,
                "epochs": 1,
                "checkpoint-every": 10**9,
            }
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            self._run([str(DISTRIBUTED / "train_resnet.py"), *words])
            return steady(Path(results, "progress.jsonl").read_text())

    def loop(self, kind: str, precision: str, batch: int) -> float:
        """Run the loop of this benchmark; return its images/s."""
        given = self.given
        sizes = map(str, (batch, given.size, given.steps, given.report_every))
        argv = ["-c", LOOP, str(DISTRIBUTED), kind, given.model, precision, *sizes]
        return steady(self._run(argv))

    def _has_timm(self) -> bool:
        try:
            self._run(["-c", "import timm"])
        except subprocess.CalledProcessError:
            return False
        return self.given.model in ("50", "101", "152")

    def _run(self, argv: Sequence[str]) -> str:
        done = subprocess.run(
            [self.given.python, *argv],
            check=True,
            capture_output=True,
            text=True,
            timeout=900,
            cwd=ROOT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return done.stdout


def steady(lines: str) -> float:
    """Return the mean of images/s after the warm-up."""
    reports = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    speeds = [float(one["images_per_second"]) for one in reports if "images_per_second" in one]
    return statistics.mean(speeds[WARM_UP_REPORTS:])


def result(
    given: argparse.Namespace,
    card: "Card",
    sweep: list[Measured],
    best: Measured,
    speeds: dict[str, list[float]],
) -> dict[str, object]:
    """Put what was measured together, with the machine."""
    arithmetic = statistics.median(speeds["ours"]) * card.flop_per_image
    return {
        "benchmark": "training_gpu",
        "is_on_gpu": card.card is not None,
        "configuration": vars(given),
        "sweep": [asdict(one) for one in sweep],
        "best": {"precision": best.precision, "batch": best.batch},
        **compared(speeds, "images_per_second"),
        "share_of_peak": round(arithmetic / card.matmul_flop_per_second[best.precision], 3),
        "card": asdict(card),
        **circumstances(commit()),
    }


if __name__ == "__main__":
    main()
