"""What stays of a training, and how it ends: the same files, whatever framework wrote them."""

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import tracker
import transport
from schedule import Schedule

SCHEMA_VERSION = 1
"""Of settings.json and summary.json; where none is said, it is this one."""
UNTIMED_STEPS = 10
STOP_CHECK_SECONDS = 20.0
# What may be another when a training goes on: it changes nothing that is learned.
FREE = frozenset(
    {
        *("results", "mounts", "steps", "rounds", "compile", "recompute"),
        *("workers", "private_threads"),
        *("report_every", "checkpoint_every", "evaluate_every", "mlflow"),
    }
)


class ResumeError(ValueError):
    """A folder holds another training than the one that is asked for; the message says which."""


@dataclass
class Progress:
    """How far the training is; with the weights, all that a checkpoint needs."""

    step: int = 0
    images: int = 0
    """Of all processes, in the steps that are timed."""
    seconds: float = 0.0
    """Of these: without start-up, compiling, the first steps, testing and checkpoints."""

    @property
    def images_per_second(self) -> float | None:
        """Over all that was timed; ``None`` where nothing was."""
        return round(self.images / self.seconds, 2) if self.images else None


@dataclass(frozen=True)
class Stretch:
    """The steps between two reports, as one process timed them."""

    images: int
    seconds: float
    is_settled: bool
    """Whether it counts: the first steps of a process do not."""


class StepTimer:
    """Times stretches of steps.

    The first steps of a process are left out: in them graphs are traced and compiled, memory is
    allocated, and the fastest ways are looked for.
    """

    def __init__(
        self, untimed: int = UNTIMED_STEPS, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Leave out so many steps."""
        self._left, self._clock = untimed, clock
        self.begin()

    def begin(self) -> None:
        """Begin a stretch."""
        self._since, self._images = self._clock(), 0
        self._before = (0, 0.0)

    def step(self, images: int, settle: Callable[[], object]) -> None:
        """Count a step; ``settle`` waits until the device has done what it was given."""
        self._images += images
        if self._left:
            self._left -= 1
            if not self._left:
                settle()
                self._before = (self._images, self._clock() - self._since)

    def end(self) -> Stretch:
        """End a stretch: what was in it of the first steps does not count, if there was more."""
        images, seconds = self._images, self._clock() - self._since
        if self._left or images == self._before[0]:
            return Stretch(images, seconds, is_settled=False)
        return Stretch(images - self._before[0], seconds - self._before[1], is_settled=True)


def write_whole(file: Path, write: Callable[[Any], object]) -> None:
    """Let a file be there whole or not at all, also when the machine fails now."""
    building = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with building.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        building.replace(file)
    finally:
        # A part of a checkpoint would keep a disk full.
        building.unlink(missing_ok=True)


def write_json(file: Path, value: object) -> None:
    """Write a value as JSON, whole or not at all."""
    text = json.dumps(value, indent=1).encode()
    write_whole(file, lambda stream: stream.write(text))


def arrived(file: Path, seconds: float = 90.0) -> Path:
    """Wait until this node sees a file that the first process's node has.

    On NFS, what a node has not found is not looked for again for up to 60 s (nfs(5), acdirmax).
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            file.stat()
            break
        except FileNotFoundError:
            time.sleep(min(1.0, seconds / 10))
    return file


def leave_out_after(file: Path, step: int) -> None:
    """Keep the lines of progress up to a step: what came after it will be written again."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    write_whole(file, lambda stream: stream.write("".join(kept).encode()))


def _last_line(file: Path) -> dict[str, float]:
    lines = file.read_text().splitlines() if file.exists() else []
    return dict(json.loads(lines[-1])) if lines else {}


def same_run(
    results: Path,
    settings: argparse.Namespace,
    processes: int,
    is_first: bool,
    is_begun: bool,
    added: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Raise `ResumeError` where a training was begun in a folder with other settings.

    ``is_begun``: whether there is a checkpoint. The first process keeps the settings. ``added``:
    settings that came with a later version of the program, and what they were before.
    """
    wanted = {name: value for name, value in vars(settings).items() if name not in FREE}
    wanted = json.loads(json.dumps(wanted | {"processes": processes, "schema": SCHEMA_VERSION}))
    kept = results / "settings.json"
    if is_begun and kept.exists():
        before = {**added, **json.loads(kept.read_text())}
        differing = [
            f"{name} = {before[name]!r}, not {value!r}"
            for name, value in sorted(wanted.items())
            # One that came with a later version of the program was what it is without being said.
            if name in before and before[name] != value
        ]
        if differing:
            is_of_data = any(one.partition(" = ")[0].endswith("_sha256") for one in differing)
            same = "the data that it was begun with" if is_of_data else "the same settings"
            raise ResumeError(
                f"{results} holds a training with {'; '.join(differing)}: use another folder, or "
                f"{same} to continue"
            )
    elif is_first:
        write_json(kept, wanted)


class Record:
    """What the first process writes for those who watch; the others write nothing."""

    def __init__(
        self,
        results: Path,
        is_ours: bool,
        step: int,
        settings: argparse.Namespace | None = None,
        drawing: "Drawing | None" = None,
    ) -> None:
        """Go on after a step.

        ``settings``: if they name an experiment, MLflow keeps the run. ``drawing`` draws curves
        where TensorBoard's own package does not.
        """
        self.is_ours = is_ours
        self.lacks_test = False
        """Whether it ended after a step's report, before a test was written down."""
        self._results, self._file = results, results / "progress.jsonl"
        self._began = time.monotonic()
        self._tracker = None
        if is_ours:
            # Of a process that was killed in the middle; nobody else writes one here.
            for half in results.glob(".checkpoint.*"):
                half.unlink(missing_ok=True)
            leave_out_after(self._file, step)
            last = _last_line(self._file)
            self.lacks_test = step > 0 and "test_accuracy" not in last
            # What was before a break counts, the break does not.
            self._began -= float(last.get("elapsed_seconds", 0.0))
            self._curves = drawing or curves(results / "tensorboard", step)
            if self._curves is None:
                self.say("no curves for TensorBoard: its package is not installed here")
            if settings is not None and settings.mlflow:
                self._tracker = tracker.Tracker(settings.mlflow, results, vars(settings), self.say)

    def say(self, *texts: str) -> None:
        """Print lines into the job's log."""
        if self.is_ours:
            print(*texts, sep="\n", flush=True)

    def add(self, line: dict[str, float]) -> None:
        """Write down what was reached at ``line["step"]``."""
        if not self.is_ours:
            return
        with self._file.open("a") as stream:
            elapsed = round(time.monotonic() - self._began, 3)
            when = {"time": round(time.time(), 3), "elapsed_seconds": elapsed}
            stream.write(json.dumps({**when, **line}) + "\n")
        values = {name: value for name, value in line.items() if isinstance(value, float)}
        if self._curves:
            self._curves.add(int(line["step"]), values)
        if self._tracker:
            self._tracker.add(int(line["step"]), values)
        words = "  ".join(f"{name.replace('_', ' ')} {value:.5g}" for name, value in values.items())
        epoch = f"epoch {line['epoch']}  " if "epoch" in line else ""
        self.say(f"{epoch}step {line['step']}  {words}")

    def close(self, is_whole: bool) -> None:
        """Say to MLflow, if there is a run in it, whether the training came to its end."""
        if self._tracker:
            self._tracker.close("FINISHED" if is_whole else "KILLED")

    def report(
        self,
        progress: Progress,
        schedule: Schedule,
        stretch: Stretch,
        loss: float,
        accuracy: float,
    ) -> None:
        """Count what all processes did since the last report, and write it down."""
        images = stretch.images * schedule.ranks
        if stretch.is_settled:
            progress.images += images
            progress.seconds += stretch.seconds
        line = {
            "epoch": (progress.step - 1) // schedule.steps_an_epoch + 1,
            "step": progress.step,
            "steps": schedule.last_step,
            "loss": loss,
            "accuracy": accuracy,
            "images_per_second": round(images / stretch.seconds, 2),
            "rate": schedule.rate_at(progress.step - 1),
        }
        self.add(line)

    def finish(
        self,
        settings: argparse.Namespace,
        progress: Progress,
        processes: int,
        device: str,
        test_accuracy: float | None,
        versions: Mapping[str, str | bool],
    ) -> None:
        """Write what `summarize` does, of a training of images."""
        if not self.is_ours:
            return
        summary = {
            "settings": vars(settings),
            "processes": processes,
            "device": device,
            "steps": progress.step,
            "images": progress.step * settings.batch * processes,
            "seconds": round(progress.seconds, 3),
            "images_per_second": progress.images_per_second,
            "test_accuracy": test_accuracy,
            **versions,
        }
        self.summarize(summary)
        speed = progress.images_per_second
        self.say("done" if speed is None else f"done: {speed:.5g} images/s")

    def summarize(self, summary: Mapping[str, object]) -> None:
        """Write the summary, by which others know that the training came to its end.

        With it stands what NCCL was told; one process writes it.
        """
        if self.is_ours:
            whole = {"schema": SCHEMA_VERSION, **summary, **transport.recorded(os.environ)}
            write_json(self._results / "summary.json", whole)


class Drawing(Protocol):
    """Draws curves."""

    def add(self, step: int, values: dict[str, float]) -> None:
        """Add a point to each curve."""


def curves(folder: Path, step: int) -> "Curves | None":
    """Go on with a folder's curves; ``None`` where an environment has no TensorBoard."""
    try:
        return Curves(folder, step)
    except ModuleNotFoundError:
        return None


class Curves:
    """Curves for TensorBoard, written with TensorBoard's own package, which every kernel has."""

    def __init__(self, folder: Path, step: int) -> None:
        """Go on after a step; TensorBoard leaves out what it has of later ones."""
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        folder.mkdir(exist_ok=True)
        self._writer = EventFileWriter(str(folder))
        self._write(step + 1, session_log=SessionLog(status=SessionLog.START))

    def add(self, step: int, values: dict[str, float]) -> None:
        """Add a point to each curve."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        points = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(step, summary=Summary(value=points))

    def _write(self, step: int, **what: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, **what))
        self._writer.flush()


class Stop:
    """Whether somebody wants this job to end: Slurm, before it is preempted or out of time."""

    def __init__(self) -> None:
        self.is_wanted = False
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.is_wanted = True


class StopChecks:
    """After which steps the processes ask each other whether one of them is to stop.

    After each, a GPU would have to wait for it; at reports alone, it may be too late where steps
    take long: from Slurm's signal to the end are two minutes. All processes must be told the same.
    """

    def __init__(self, stop: Stop, sums: Callable[..., Sequence[float]]) -> None:
        """Ask after each step until a step's time is told; ``sums`` adds up over all processes."""
        self._stop, self._sums = stop, sums
        self._every = 1

    def told(self, seconds_a_step: float) -> None:
        """Take what a step took."""
        self._every = max(1, int(STOP_CHECK_SECONDS / max(seconds_a_step, 1e-3)))

    def is_due(self, step: int) -> bool:
        """Whether they are to ask after this step."""
        return step % self._every == 0

    def says_stop(self, step: int) -> bool:
        """Whether they are to ask after this step, and one of them is to stop."""
        return self.is_due(step) and self._sums(self._stop.is_wanted)[0] > 0


def run(
    main: Callable[[argparse.Namespace], None],
    settings: argparse.Namespace,
    *plain: type[Exception],
) -> None:
    """Train; where that fails, say why and end the process.

    The ``plain`` errors can be put right by other settings; of all else the traceback is told.
    """
    try:
        main(settings)
    except Exception as error:  # noqa: BLE001  # all that ends a process is told
        words = str(error) if isinstance(error, plain) else traceback.format_exc()
        told(words, Path(settings.results).expanduser())
        tracker.close_all("FAILED")
        # Without the tidying up that waits for processes which wait for this one.
        os._exit(1)
    torch = sys.modules.get("torch")
    if torch and torch.distributed.is_available() and torch.distributed.is_initialized():
        # DistributedDataParallel keeps Gloo's threads. One that still holds a tensor when the group
        # is destroyed, or the interpreter ends, can keep or abort the process (PyTorch 2.13,
        # https://github.com/pytorch/pytorch/issues/190489). So it ends here, with all of them.
        sys.stdout.flush()
        os._exit(0)


def told(words: str, results: Path) -> None:
    """Say why this process failed, and in error.txt, whose first words count.

    When one process fails, the others fail for its sake a moment later.
    """
    rank = os.environ.get("SLURM_PROCID", "0")
    text = f"Process {rank} on {os.environ.get('SLURMD_NODENAME', 'this machine')}: {words}\n"
    print(text, file=sys.stderr, flush=True)
    try:
        with (results / "error.txt").open("x") as file:
            file.write(text)
    except OSError:
        pass  # another process was first, or there is no place to write
