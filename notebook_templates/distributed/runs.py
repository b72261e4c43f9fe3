"""A training as a Slurm job: its script, its folder, and how it goes, live.

What a run leaves is in one folder: the job script, the settings, the log, the lines of progress,
the checkpoint, the curves for TensorBoard and the summary.
"""

import asyncio
import html
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

# jobs.py is among the templates for Slurm; a copy of a notebook finds it there too.
sys.path += [str(Path(__file__).resolve().parent.parent / "slurm")]
import jobs

PROGRAM = Path(__file__).with_name("train_resnet.py")

# The papers' images/s of ResNet-50 in mixed precision, by the number of V100 GPUs.
PAPERS = {
    "TensorFlow, V100-PCIe": {1: 819, 8: 6142, 10: 7333},
    "MXNet, V100-PCIe": {1: 1318, 8: 9155, 10: 11151},
    "PyTorch, V100-PCIe": {1: 740, 8: 5844, 10: 7251},
    "TensorFlow, V100-SXM2": {4: 2940, 8: 5590},
}


class PlanError(ValueError):
    """A parameter cannot be; the message names it, its value and the rule."""


@dataclass(frozen=True)
class Plan:
    """What is asked of Slurm, and what is trained."""

    nodes: int
    gpus_per_node: int
    """0: processes on the CPU, ``processes_per_node`` of them."""
    settings: Mapping[str, Any]
    """The program's, without ``results``: name -> value."""
    partition: str = ""
    minutes: int = 60
    processes_per_node: int = 1
    cores_per_process: int = 8
    memory_mb_per_process: int = 49152
    modules: tuple[str, ...] = ("pytorch",)
    image: str = ""
    """A container image in which each process runs, in the place of modules."""
    name: str = "resnet"
    program: Path = field(default=PROGRAM)
    """What each process runs: any with the options and files of train_resnet.py."""

    @property
    def tasks_per_node(self) -> int:
        """A process for each GPU."""
        return self.gpus_per_node or self.processes_per_node

    @property
    def processes(self) -> int:
        """On all nodes together."""
        return self.nodes * self.tasks_per_node


def script(plan: Plan, folder: Path) -> str:
    """Write the job script.

    Raises `PlanError` for a value that would be more than the one thing that it is meant to be.
    """
    for name in ("nodes", "minutes", "cores_per_process", "memory_mb_per_process"):
        _whole(name, getattr(plan, name), 1)
    _whole("gpus_per_node", plan.gpus_per_node, 0)
    _whole("processes_per_node", plan.processes_per_node, 1)
    gpus = [f"--gres=gpu:{plan.gpus_per_node}"] if plan.gpus_per_node else []
    partition = [f"--partition={_word('partition', plan.partition)}"] if plan.partition else []
    directives = [
        f"--job-name={_word('name', plan.name)}",
        *partition,
        f"--nodes={plan.nodes}",
        f"--ntasks-per-node={plan.tasks_per_node}",
        f"--cpus-per-task={plan.cores_per_process}",
        f"--mem={plan.memory_mb_per_process * plan.tasks_per_node}M",
        *gpus,
        f"--time={plan.minutes}",
        # Two minutes before the time is up the training writes a checkpoint and ends in order.
        "--signal=USR1@120",
        "--requeue",
    ]
    options = [f"--{name.replace('_', '-')}" for name in plan.settings]
    # In an image a link may lead through a place that is not there.
    place = _resolved if plan.image else str
    command = ["python", place(plan.program), "--results", place(folder)]
    for name, option, value in zip(plan.settings, options, plan.settings.values(), strict=True):
        text = place(value) if name == "data" and value != "synthetic" else str(value)
        command += [_word("settings", option), text]
    quoted = " ".join(_quoted(word) for word in command)
    around = _in_image(plan, folder) if plan.image else ""
    files = ("error.txt", "processes.log", "launcher.log")
    error, log, launcher = (_quoted(str(folder / name)) for name in files)
    lines = [
        "#!/bin/bash",
        "# Written by resnet.ipynb; submit it again to go on where it stopped.",
        *(f"#SBATCH {directive}" for directive in directives),
        "",
        f"rm -f {error}",
        *(_IMAGE_LINES if plan.image else _module_lines(plan)),
        f"export OMP_NUM_THREADS={plan.cores_per_process}",
        f"srun --kill-on-bad-exit=1 --output={log} {around}{quoted} 2> {launcher}",
        "status=$?",
        "# The error of the process that failed first, before what the others say of it.",
        f"[ $status -eq 0 ] || cat {error} 2>/dev/null",
        f"cat {log} {launcher}",
        "exit $status",
        "",
    ]
    return "\n".join(lines)


# What the notebook's own kernel has loaded is not the image's.
_IMAGE_LINES = (
    "module load apptainer || exit",
    "unset PYTHONPATH PYTHONHOME PYTHONSTARTUP LD_PRELOAD VIRTUAL_ENV CONDA_PREFIX",
    "# Nor are packages in the home, which the image sees.",
    "export PYTHONNOUSERSITE=1",
    "nv=()",
    "[ -e /dev/nvidiactl ] && nv=(--nv)",
)


def _module_lines(plan: Plan) -> list[str]:
    modules = [_word("modules", module) for module in plan.modules]
    return [f"module load {' '.join(modules)} || exit"] if modules else []


def _resolved(path: str | Path) -> str:
    return str(Path(path).expanduser().resolve())


def _in_image(plan: Plan, folder: Path) -> str:
    """Say how a process comes into the image: Slurm starts it on each node, as it does without.

    What it reads and writes is where it is outside. The home is there, by Apptainer's own rule.
    """
    image = Path(plan.image).expanduser()
    if not image.exists():
        raise PlanError(f"image is {plan.image!r}; there is no such file or folder")
    seen = [plan.program.resolve().parents[1], plan.program.parent, folder]
    if str(plan.settings.get("data", "synthetic")) != "synthetic":
        seen.append(Path(plan.settings["data"]))
    seen += [Path(mount) for mount in str(plan.settings.get("mounts", "")).split(",") if mount]
    places = sorted({_resolved(each) for each in seen})
    if wrong := [place for place in places if set(place) & set(",:")]:
        raise PlanError(f"{wrong[0]} cannot be shown to an image: it has a comma or a colon")
    binds = " ".join(f"--bind {_quoted(place)}" for place in places)
    return f'apptainer exec "${{nv[@]}}" {binds} {_quoted(str(image.resolve()))} '


def _whole(name: str, value: object, least: int) -> None:
    if type(value) is not int or value < least:
        raise PlanError(f"{name} is {value!r}; it must be a whole number from {least} on")


def _word(name: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_./,+-]+", value):
        raise PlanError(
            f"{name} is {value!r}; it must be one word of letters, digits and _ . / , + -"
        )
    return value


def _quoted(word: str) -> str:
    if not word.isprintable():
        raise PlanError(f"{word!r} has control characters")
    return shlex.quote(word)


class Run:
    """A training and its folder."""

    def __init__(self, folder: Path) -> None:
        """Find the run of a folder; `start` makes one."""
        self.folder = folder

    @property
    def job(self) -> jobs.Job | None:
        """The job that was submitted last."""
        try:
            return jobs.Job(int((self.folder / "job.txt").read_text()))
        except (OSError, ValueError):
            return None

    def submit(self) -> jobs.Job:
        """Submit the script, once more if need be: the training goes on from its checkpoint.

        Where the last job still waits or runs, that is it.
        """
        running = self.job
        if running is not None and not running.state().is_over:
            return running
        job = jobs.submit(self.folder / "job.sh", folder=self.folder)
        (self.folder / "job.txt").write_text(f"{job.number}\n")
        return job

    def progress(self) -> list[dict[str, Any]]:
        """Return the lines of progress so far."""
        try:
            lines = (self.folder / "progress.jsonl").read_text().splitlines(keepends=True)
        except OSError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def summary(self) -> dict[str, Any] | None:
        """Return what came out, ``None`` before the end."""
        try:
            return dict(json.loads((self.folder / "summary.json").read_text()))
        except OSError:
            return None

    def watch(self) -> "asyncio.Task[jobs.State]":
        """Show how it goes, live; the kernel stays free for other cells."""
        view = View(self)
        return view.watch()


def start(plan: Plan, base: Path) -> Run:
    """Submit a training whose folder is below ``base``, or find the one that runs already.

    A run of the same name that waits or runs is this one: the kernel was restarted meanwhile. One
    that is over stays as it is, and the new one gets a number.
    """
    base.mkdir(parents=True, exist_ok=True)
    for folder in (_numbered(base, plan.name, number) for number in range(1, 10_000)):
        run = Run(folder)
        if run.job is not None:
            # Slurm is not asked for a run that came to its end.
            if run.summary() is None and not run.job.state().is_over:
                return run
            continue
        folder.mkdir(exist_ok=True)
        (folder / "job.sh").write_text(script(plan, folder))
        run.submit()
        return run
    raise PlanError(f"{base} has thousands of runs named {plan.name}")


def _numbered(base: Path, name: str, number: int) -> Path:
    return base / (name if number == 1 else f"{name}-{number}")


class View:
    """A run on the screen: state, progress bar, curves, and the buttons Cancel and Resume."""

    def __init__(self, run: Run) -> None:
        """Show it below the cell."""
        from IPython.display import display
        from ipywidgets import HTML, Button, HBox, Image, IntProgress, VBox

        self._run = run
        self._state, self._figures = HTML(), HTML()
        self._bar = IntProgress(min=0, max=1, description="steps")
        self._curves = Image(format="png", layout={"width": "720px", "display": "none"})
        self._cancel = Button(description="Cancel", icon="stop")
        self._resume = Button(description="Resume", icon="play", disabled=True)
        self._cancel.on_click(lambda _: self._run.job.cancel() if self._run.job else None)
        self._resume.on_click(lambda _: self._go_on())
        self._drawn_lines = -1
        buttons = HBox([self._cancel, self._resume, HTML(tensorboard_link(run.folder))])
        display(VBox([self._state, self._bar, self._figures, self._curves, buttons]))

    def watch(self) -> "asyncio.Task[jobs.State]":
        """Follow the run's job."""
        job = self._run.job
        if job is None:
            raise PlanError(f"{self._run.folder} has no job: start one")
        return jobs.watch(job, self._show)

    def _go_on(self) -> None:
        self._run.submit()
        self.watch()

    def _show(self, state: jobs.State) -> None:
        job = self._run.job
        text = f"Job {job.number if job else ''} {state.words()}"
        is_done = self._run.summary() is not None and state.is_over
        error = self._run.folder / "error.txt"
        if state.is_over and not is_done and error.exists():
            text += f"\n{jobs.tail(error)}"
        self._state.value = f"<pre><b>{html.escape(text)}</b></pre>"
        self._cancel.disabled, self._resume.disabled = state.is_over, not state.is_over or is_done
        lines = [line for line in self._run.progress() if "loss" in line]
        if not lines or len(lines) == self._drawn_lines:
            return
        self._drawn_lines = len(lines)
        last = lines[-1]
        self._bar.max, self._bar.value = last["steps"], last["step"]
        self._figures.value = html.escape(figures(last))
        self._curves.value = curves(lines)
        self._curves.layout.display = "block"


def tensorboard_link(folder: Path) -> str:
    """Return a link, in HTML, to the session's TensorBoard for a folder below the home.

    Empty for a folder elsewhere, and outside a session of the portal.
    """
    session = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
    home = Path.home()
    if not session or not folder.is_relative_to(home):
        return ""
    address = f"{session}tensorboard/?folder={quote(str(folder.relative_to(home)))}"
    return f'<a href="{html.escape(address)}" target="_blank">TensorBoard</a>'


def figures(line: Mapping[str, Any]) -> str:
    """Say the last line of progress in words."""
    return (
        f"epoch {line['epoch']}, step {line['step']:,} of {line['steps']:,}: "
        f"{line['images_per_second']:,.0f} images/s, loss {line['loss']:.4f}, "
        f"accuracy {line['accuracy']:.4f}"
    )


def curves(lines: list[dict[str, Any]]) -> bytes:
    """Draw loss, accuracy and speed over the steps; returns a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.4), layout="constrained")
    FigureCanvasAgg(figure)
    names = {"loss": "loss", "accuracy": "accuracy", "images_per_second": "images/s"}
    steps = [line["step"] for line in lines]
    for axis, (name, title) in zip(figure.subplots(1, len(names)), names.items(), strict=True):
        axis.plot(steps, [line[name] for line in lines])
        axis.set_title(title)
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80)
    return picture.getvalue()


def table(base: Path) -> list[dict[str, Any]]:
    """Compare all finished runs below ``base``.

    Speed-up is the throughput over that of one process with the same model, batch and precision;
    efficiency is the speed-up over the number of processes. ``None`` where there is no such run.
    """
    found = [
        (path.parent.name, json.loads(path.read_text())) for path in base.glob("*/summary.json")
    ]
    alone = {_kind(one): one["images_per_second"] for _, one in found if one["processes"] == 1}
    rows = []
    for name, one in sorted(found, key=lambda pair: (_kind(pair[1]), pair[1]["processes"])):
        single = alone.get(_kind(one))
        speed_up = one["images_per_second"] / single if single else None
        rows.append(
            {
                "run": name,
                "processes": one["processes"],
                "device": one["device"],
                "images_per_second": one["images_per_second"],
                "speed_up": speed_up,
                "efficiency": speed_up / one["processes"] if speed_up else None,
            }
        )
    return rows


def _kind(summary: Mapping[str, Any]) -> tuple[str, ...]:
    settings = summary["settings"]
    return tuple(str(settings[name]) for name in ("model", "batch", "precision", "data", "size"))


def markdown(rows: list[dict[str, Any]]) -> str:
    """Show the runs as a table, and the papers' below it."""
    lines = [
        "| run | processes | on | images/s | speed-up | efficiency |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        speed_up = "" if row["speed_up"] is None else f"{row['speed_up']:.2f}"
        efficiency = "" if row["efficiency"] is None else f"{row['efficiency']:.0%}"
        lines.append(
            f"| {row['run']} | {row['processes']} | {row['device']} | "
            f"{row['images_per_second']:,.0f} | {speed_up} | {efficiency} |"
        )
    for name, speeds in PAPERS.items():
        for gpus, speed in speeds.items():
            speed_up = f"{speed / speeds[1]:.2f}" if 1 in speeds else ""
            efficiency = f"{speed / speeds[1] / gpus:.0%}" if 1 in speeds else ""
            lines.append(
                f"| papers: {name} | {gpus} | ResNet-50, mixed precision | {speed:,} | "
                f"{speed_up} | {efficiency} |"
            )
    return "\n".join(lines)
