"""A Lightning training as a run: devices from Slurm, lines of progress, and how it resumes.

For a LightningModule of yours, too: `resources` goes into the Trainer, `RunCallback` is one of its
callbacks, `StepSampler` the batch sampler of the data to train on.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.plugins.environments import LightningEnvironment, SLURMEnvironment
from ranks import Rank
from record import Progress, Record, StepTimer, Stop, StopChecks
from sampler import Sampler
from schedule import Schedule
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from torch.utils.data import DataLoader

# What Lightning says of itself does not help those who read a job's log.
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
for words in (
    "The `srun` command is available",
    ".*does not have many workers",
    "Checkpoint directory .* exists",
    ".*`isinstance.treespec, LeafSpec.` is deprecated",
):
    warnings.filterwarnings("ignore", words)


class Stopped(Exception):
    """The training has stopped because Slurm wanted it to, after it had kept all it needs."""


def resources(here: Rank, variables: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the Trainer's options that say where it runs: as Slurm has started it, or all GPUs.

    Without srun, Lightning itself starts a process for each GPU; on a CPU there is one.
    """
    accelerator = "gpu" if torch.cuda.is_available() else "cpu"
    if "SLURM_STEP_ID" not in variables:
        return {
            "accelerator": accelerator,
            "devices": torch.cuda.device_count() or 1,
            "num_nodes": 1,
            "plugins": [LightningEnvironment()],
        }
    # An address needs no resolver, and jobs side by side need ports of their own.
    os.environ.setdefault("MASTER_ADDR", here.address)
    os.environ.setdefault("MASTER_PORT", str(here.port))
    return {
        "accelerator": accelerator,
        "devices": here.local_ranks,
        "num_nodes": here.ranks // here.local_ranks,
        # Lightning's own way saves from inside a signal handler, in the middle of a step, where
        # processes may be at different steps. RunCallback does it between two.
        "plugins": [SLURMEnvironment(auto_requeue=False)],
    }


class StepSampler:
    """The batches of the epoch that the Trainer is in, from the step on that comes next.

    A resumed training continues in the middle of an epoch with the examples that came next.
    """

    def __init__(self, trainer: Trainer, sampler: Sampler) -> None:
        self._trainer, self._sampler = trainer, sampler

    def __len__(self) -> int:
        return self._sampler.steps

    def __iter__(self) -> Iterator[list[int]]:
        epoch, first = divmod(self._trainer.global_step, self._sampler.steps)
        for batch in self._sampler.epoch(epoch, first):
            yield [index for _, index in batch]


class StepLoader(DataLoader[Any]):
    """Tells Lightning that it resumes by itself: its `StepSampler` follows the Trainer's step."""

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: the step is in the checkpoint already."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take nothing."""


class LoggerCurves:
    """Curves in the files of Lightning's own logger, beside what the module logs itself."""

    def __init__(self, logger: TensorBoardLogger, step: int) -> None:
        """Go on after a step; TensorBoard leaves out what it has of later ones."""
        self._logger = logger
        begin = Event(step=step + 1, session_log=SessionLog(status=SessionLog.START))
        logger.experiment.file_writer.add_event(begin)

    def add(self, step: int, values: dict[str, float]) -> None:
        """Add a point to each curve."""
        self._logger.log_metrics(values, step)


class RunCallback(Callback):
    """Reports progress, keeps the last checkpoint, and stops in order when Slurm asks for it.

    The module's ``training_step`` returns ``loss``, ``right`` (how many it got right) and ``seen``;
    it logs ``test_accuracy`` when it validates.
    """

    def __init__(
        self, results: Path, schedule: Schedule, stop: Stop, report_every: int, keep_every: int
    ) -> None:
        """Keep ``last.ckpt`` every so many steps, at a report, and after each epoch."""
        self.last = results / "checkpoints" / "last.ckpt"
        self.progress = Progress()
        self._results, self._schedule = results, schedule
        self._report_every, self._keep_every = report_every, keep_every
        self._stop, self._is_stopping, self._timer = stop, False, StepTimer()
        self._record: Record | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return what the checkpoint keeps of this."""
        return asdict(self.progress)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.progress = Progress(**state)

    def record(self, trainer: Trainer) -> Record:
        """Return what the first process writes, after the step that was resumed from."""
        if self._record is None:
            drawing = None
            is_open = trainer.training and trainer.is_global_zero
            if is_open and isinstance(trainer.logger, TensorBoardLogger):
                drawing = LoggerCurves(trainer.logger, trainer.global_step)
            where = self._results, trainer.is_global_zero, trainer.global_step
            self._record = Record(*where, drawing=drawing)
        return self._record

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Say what comes."""
        # Lightning has put a handler before ours that talks to other processes, in mid-step.
        was_wanted, self._stop = self._stop.is_wanted, Stop()
        self._stop.is_wanted |= was_wanted

        def sums(*values: float) -> list[float]:
            mine = torch.tensor(values, dtype=torch.float64, device=module.device)
            return list(trainer.strategy.reduce(mine, reduce_op="sum").tolist())

        self._over_all, self._checks = sums, StopChecks(self._stop, sums)
        self._kept_at = trainer.global_step
        record = self.record(trainer)
        record.say(*self._schedule.words())
        if self._kept_at:
            record.say(f"resumed after step {self._kept_at} of {self._schedule.last_step}")
        self._begin(module)

    def _begin(self, module: LightningModule) -> None:
        self._sums = torch.zeros(3, device=module.device)
        self._timer.begin()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a step; report, keep and stop where it is time to."""
        seen, step = outputs["seen"], trainer.global_step
        loss, right = outputs["loss"].detach() * seen, outputs["right"]
        self._sums += torch.stack([loss, right.to(loss), torch.full_like(loss, seen)])
        self._timer.step(seen, self._sums.tolist)
        ends = self._schedule.ends_at(step)
        is_due = step % self._report_every == 0 or ends
        if not is_due and not self._checks.says_stop(step):
            return
        # All processes agree on what they did, and on whether one of them was asked to stop.
        summed = self._over_all(*self._sums.tolist(), self._stop.is_wanted)
        losses, rights, count, stops = summed
        self._is_stopping = stops > 0
        self.progress.step = step
        stretch = self._timer.end()
        # Of all processes: each must be told the same.
        seconds = self._over_all(stretch.seconds)[0]
        self._checks.told(seconds * self._schedule.batch / count)
        means = losses / count, rights / count
        self.record(trainer).report(self.progress, self._schedule, stretch, *means)
        if not ends and (self._is_stopping or step - self._kept_at >= self._keep_every):
            self._keep(trainer)
        self._begin(module)

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Write down the accuracy."""
        step = trainer.global_step
        accuracy = float(trainer.callback_metrics["test_accuracy"])
        epoch = step // self._schedule.steps_an_epoch
        self.record(trainer).add({"epoch": epoch, "step": step, "test_accuracy": accuracy})

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Keep the last checkpoint: after the test, so that it is not missed when this ends now."""
        self._keep(trainer)
        self._timer.begin()

    def _keep(self, trainer: Trainer) -> None:
        self._kept_at = trainer.global_step
        # Lightning writes into /tmp first, from where a shared file system gets a copy: so that the
        # file is whole at any moment, it takes its place by its name.
        new = self.last.with_suffix(".new")
        trainer.save_checkpoint(new, weights_only=False)
        if trainer.is_global_zero:
            new.replace(self.last)
        if self._is_stopping and self._kept_at < self._schedule.last_step:
            raise Stopped(
                f"stopped after step {self._kept_at} of {self._schedule.last_step}: "
                "run again to resume"
            )
