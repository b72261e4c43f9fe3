#!/usr/bin/env python
"""Train with PyTorch Lightning, on one CPU, one GPU, the GPUs of a machine, or many nodes.

    python train_lightning.py --results run1                            all GPUs here, or the CPU
    srun --ntasks-per-node=4 python train_lightning.py --results run1   in a job: one process a GPU

The network is small and learns handwritten digits; replace `DigitNet` and `DigitData` by yours. Run
again, it resumes where it stopped, in the middle of an epoch too.

In RESULTS stay progress.jsonl, summary.json, checkpoints/last.ckpt and checkpoints/best.ckpt,
tensorboard/, and error.txt when a process failed.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

# A copy of this file finds the modules in the templates.
sys.path += [
    str(place / name)
    for place in (Path("~/templates").expanduser(), Path(__file__).resolve().parents[1])
    for name in ("lightning", "distributed", "data")
]
import digits
import lightning
import make_mnist_stand_in as stand_in
import numpy as np
import torch
import torch.distributed as dist
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from lightning_run import RunCallback, StepLoader, StepSampler, Stopped, resources
from ranks import place
from record import ResumeError, Stop, arrived, run, same_run
from sampler import Sampler
from schedule import Schedule, ScheduleError
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

MADE = "made"
TO_TRAIN, TO_TEST = 4_096, 1_000  # digits that are made
CLASSES = 10


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--data", default=MADE, help="a folder with MNIST's files, or 'made': digits made here")
    add("--epochs", type=int, default=5, help="times that each digit is seen")
    add("--batch", type=int, default=64, help="digits that a process computes at once")
    add("--rate", type=float, default=0.02, help="learning rate for a global batch of 256 digits")
    add("--warmup", type=float, default=0.1, help="share of all steps in which the rate rises")
    add("--dropout", type=float, default=0.1, help="share of the features that a step leaves out")
    add("--precision", default="auto", choices=("auto", "bf16-mixed", "32-true"),
        help="of the products; auto: bf16-mixed on GPUs")  # fmt: skip
    add("--workers", type=int, default=0, help="reading processes per process")
    add("--seed", type=int, default=1, help="same seed and processes: same training")
    add("--report-every", type=int, default=10, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=200, help="steps between checkpoints, at a report")
    return parser.parse_args()


class DigitNet(LightningModule):
    """A small convolutional network, and how it learns."""

    def __init__(
        self, dropout: float = 0.1, seed: int = 1, schedule: Schedule | None = None
    ) -> None:
        """Make it; ``load_from_checkpoint`` needs no schedule."""
        super().__init__()
        self.save_hyperparameters(ignore=["schedule"])
        self.schedule = schedule
        self.accuracy = MulticlassAccuracy(CLASSES, average="micro")
        self.network = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, stride=2), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()),
            *(nn.Flatten(), nn.Dropout(dropout), nn.Linear(32 * 6 * 6, CLASSES)),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a logit for each digit; images have shape (n, 1, 28, 28), values from 0 to 1."""
        return self.network(images)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Let dropout, too, be that of a training without a break."""
        step = self.hparams["seed"] * 1_000_003 + self.trainer.global_step
        torch.manual_seed(step * self.trainer.world_size + self.trainer.global_rank)

    def training_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Return the loss, and what `RunCallback` reports."""
        images, labels = batch
        logits = self(images)
        right = (logits.detach().argmax(1) == labels).sum()
        return {"loss": cross_entropy(logits, labels), "right": right, "seen": len(labels)}

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Count how many are right; each process has its share, and Lightning adds them up."""
        images, labels = batch
        self.accuracy.update(self(images), labels)
        self.log("test_accuracy", self.accuracy, on_epoch=True, logger=False)

    def configure_optimizers(self) -> Any:
        """AdamW, whose rate follows the schedule from step to step."""
        assert self.schedule
        optimizer = torch.optim.AdamW(self.parameters(), lr=1.0)
        rates = torch.optim.lr_scheduler.LambdaLR(optimizer, self.schedule.rate_at)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}


class DigitData(LightningDataModule):
    """Handwritten digits, divided over all processes."""

    def __init__(self, data: str, batch: int, workers: int, seed: int) -> None:
        super().__init__()
        self.batch, self.workers, self.seed = batch, workers, seed
        train, test = made() if data == MADE else digits.load(Path(data).expanduser())
        self.train, self.test = as_tensors(train), as_tensors(test)

    def train_dataloader(self) -> StepLoader:
        """Read a process's share, from the step on that comes next."""
        assert self.trainer
        here, there = self.trainer.global_rank, self.trainer.world_size
        sampler = Sampler(len(self.train), self.batch, here, there, self.seed)
        order: Any = StepSampler(self.trainer, sampler)
        return StepLoader(self.train, batch_sampler=order, num_workers=self.workers)

    def val_dataloader(self) -> DataLoader[Any]:
        """Read a process's share of the digits to test with, each once."""
        assert self.trainer
        mine = range(self.trainer.global_rank, len(self.test), self.trainer.world_size)
        return DataLoader(self.test, batch_size=self.batch, sampler=mine, num_workers=self.workers)


def made() -> tuple[digits.Digits, digits.Digits]:
    """Make digits in a second: changed copies of scikit-learn's, as in the stand-in for MNIST."""
    chance = np.random.default_rng(stand_in.SEED)
    parts = zip(stand_in.divide_originals(), (TO_TRAIN, TO_TEST), strict=True)
    copies = [stand_in.copies(originals, count, chance) for originals, count in parts]
    train, test = (
        digits.Digits(images[..., np.newaxis].astype(np.float32) / 255, labels.astype(np.int32))
        for images, labels in copies
    )
    return train, test


def as_tensors(part: digits.Digits) -> TensorDataset:
    """Return images of shape (n, 1, 28, 28), and labels."""
    images = torch.from_numpy(part.images).permute(0, 3, 1, 2).contiguous()
    return TensorDataset(images, torch.from_numpy(part.labels).long())


def main(s: argparse.Namespace) -> None:
    """Train: the story from top to bottom."""
    results = Path(s.results).expanduser()
    results.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    where = resources(place(os.environ))
    ranks = where["devices"] * where["num_nodes"]
    is_on_gpus = where["accelerator"] == "gpu"
    auto = "bf16-mixed" if is_on_gpus else "32-true"

    data = DigitData(s.data, s.batch, s.workers, s.seed)
    size = len(data.train), s.batch, ranks, s.epochs
    schedule = Schedule(*size, most_steps=0, rate=s.rate, warmup=s.warmup).checked()
    torch.manual_seed(s.seed)
    model = DigitNet(s.dropout, s.seed, schedule)

    callback = RunCallback(results, schedule, stop, s.report_every, s.checkpoint_every)
    best = ModelCheckpoint(
        callback.last.parent,
        "best",
        "test_accuracy",
        mode="max",
        enable_version_counter=False,
        # Right after the test, so that last.ckpt, which is written next, knows of it.
        save_on_train_epoch_end=False,
    )
    trainer = Trainer(
        **where,
        strategy="ddp" if ranks > 1 else "auto",
        precision=auto if s.precision == "auto" else s.precision,
        max_epochs=s.epochs,
        callbacks=[callback, best],
        logger=TensorBoardLogger(results, "tensorboard", ""),
        use_distributed_sampler=False,  # the loaders divide the digits themselves
        num_sanity_val_steps=0,
        log_every_n_steps=min(s.report_every, schedule.steps_an_epoch),
        enable_progress_bar=False,  # the callback's lines are fit for a log
        enable_model_summary=False,
    )
    is_begun = callback.last.exists()
    if where["num_nodes"] > 1:
        # The first one's word: on NFS, other nodes may not see yet what it wrote a moment ago.
        trainer.strategy.setup_environment()
        is_begun = trainer.strategy.broadcast(is_begun)
    digest = {} if s.data == MADE else {"data_sha256": digits.digest(Path(s.data).expanduser())}
    asked = argparse.Namespace(**vars(s), **digest)
    same_run(results, asked, ranks, trainer.is_global_zero, is_begun)
    last = arrived(callback.last) if is_begun else None
    try:
        trainer.fit(model, data, ckpt_path=last)
    except Stopped as stopped:
        callback.record(trainer).say(str(stopped))
    else:
        device = torch.cuda.get_device_name() if is_on_gpus else "CPU"
        accuracy = float(best.best_model_score)
        versions = {"torch": torch.__version__, "lightning": lightning.__version__}
        record = callback.record(trainer)
        record.finish(s, callback.progress, ranks, device, accuracy, versions)
        record.say(f"best accuracy {accuracy:.4f}: {best.best_model_path}")
    # The group is left to the end of the process (`record.run`).
    if dist.is_initialized():
        dist.barrier()


if __name__ == "__main__":
    run(main, settings(), digits.DataError, ScheduleError, ResumeError)
