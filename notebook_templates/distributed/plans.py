"""What a run asks of Slurm, as a job script: nothing but what was meant reaches it."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import process_shell
import transport

# srun: error: node001: task 3: Killed
_ENDED = r"^srun: error: [^ ]+: tasks? [0-9,-]+: "

_NOT_ASKED = ("recompute", "evaluate_every", "mlflow")
PROGRAM = Path(__file__).with_name("train_resnet.py")


class PlanError(ValueError):
    """A parameter cannot be; the message names it, its value and the rule."""


@dataclass(frozen=True)
class Plan:
    """What is asked of Slurm, and what runs."""

    nodes: int
    gpus_per_node: int
    """0: processes on the CPU, ``processes_per_node`` of them."""
    settings: Mapping[str, Any]
    """The program's, without ``results``: name -> value."""
    partition: str = ""
    account: str = ""
    """Slurm's, which pays for the job; empty: the user's default, as for `qos`."""
    qos: str = ""
    minutes: int = 60
    continues: int = 0
    """How many times the job goes on by itself when its time is up, each with the same limit.

    Slurm counts what it puts back for other reasons, too. A program of the user's (``words``) has
    to go on from what it wrote; it has ended for want of time if it gets Slurm's signal and ends
    with 0, or by that signal.
    """
    processes_per_node: int = 1
    cores_per_process: int = 8
    memory_mb_per_process: int = 49152
    modules: tuple[str, ...] = ("pytorch",)
    image: str = ""
    """A container image in which each process runs, in the place of modules."""
    name: str = "resnet"
    program: Path = field(default=PROGRAM)
    """What runs: any that takes ``--results FOLDER`` and leaves the files of train_resnet.py."""
    words: tuple[str, ...] = ()
    """A program of the user's and its arguments, in the place of ``program`` and ``settings``."""
    launch: Literal["each", "once"] = "each"
    """``each``: every process is the program. ``once``: the batch script is; it starts its own."""
    transport: Mapping[str, Any] = field(default_factory=dict)
    """What the libraries that carry gradients are told: ``{"NCCL_ALGO": "Ring"}``."""

    is_elastic: bool = False
    """Whether it may go on on another number of processes; a ``batch``, of each, in proportion."""

    array: int = 0
    """Tasks of a job array, each of which is the whole of this; 0: one job."""

    @property
    def tasks_per_node(self) -> int:
        """A process for each GPU."""
        return self.gpus_per_node or self.processes_per_node

    @property
    def processes(self) -> int:
        """On all nodes together."""
        return self.nodes * self.tasks_per_node

    @property
    def asked(self) -> dict[str, Any]:
        """What makes the run what it is: another learning rate is another run, more time is not.

        Nor is computing layers again, for which a run that was out of memory is begun once more,
        nor evaluating more often, nor whether MLflow keeps it, too.
        """
        settings = {
            name: str(value) for name, value in self.settings.items() if name not in _NOT_ASKED
        }
        if self.is_elastic and "batch" in settings:
            parts = self.processes * int(settings.pop("accumulate", 1))
            settings["batch"] = str(int(settings["batch"]) * parts)
        said: dict[str, object] = {
            "settings": settings,
            "processes": [self.nodes, self.tasks_per_node, bool(self.gpus_per_node)],
            "program": list(self.words) or str(self.program),
            "modules": list(self.modules),
            "image": self.image,
        }
        if self.is_elastic:
            del said["processes"]
        if self.transport:
            said["transport"] = {name: str(value) for name, value in self.transport.items()}
        return dict(json.loads(json.dumps(said)))


def script(plan: Plan, folder: Path) -> str:
    """Write the job script.

    Raises `PlanError` for a value that would be more than the one thing that it is meant to be.
    """
    lines = [
        "#!/bin/bash",
        "# Written by a notebook; submit it again to continue where it stopped.",
        *(f"#SBATCH {directive}" for directive in _directives(plan)),
        "",
        # A task of an array would remove another's.
        *([] if plan.array else [f"rm -f {_quoted(str(folder / 'error.txt'))}"]),
        *([f"rm -f {_time_is_up(plan, folder)}"] if _time_is_up(plan, folder) else []),
        *(_IMAGE_LINES if plan.image else _module_lines(plan)),
        f"export OMP_NUM_THREADS={plan.cores_per_process}",
        *_transport_lines(plan),
        *(_once(plan, folder) if plan.launch == "once" else _each(plan, folder)),
        "",
    ]
    return "\n".join(lines)


def _directives(plan: Plan) -> list[str]:
    for name in ("nodes", "minutes", "cores_per_process", "memory_mb_per_process"):
        _whole(name, getattr(plan, name), 1)
    _whole("gpus_per_node", plan.gpus_per_node, 0)
    _whole("processes_per_node", plan.processes_per_node, 1)
    _whole("array", plan.array, 0)
    _whole("continues", plan.continues, 0)
    if plan.continues and (plan.array or plan.launch == "once"):
        raise PlanError(
            f"continues is {plan.continues}; it is for a single job, not for an array, nor for a "
            "program that starts its own steps"
        )
    gpus = [f"--gres=gpu:{plan.gpus_per_node}"] if plan.gpus_per_node else []
    where = {name: getattr(plan, name) for name in ("partition", "account", "qos")}
    return [
        f"--job-name={_word('name', plan.name)}",
        *(f"--{name}={_word(name, value)}" for name, value in where.items() if value),
        *([f"--array=1-{plan.array}"] if plan.array else []),
        f"--nodes={plan.nodes}",
        f"--ntasks-per-node={plan.tasks_per_node}",
        f"--cpus-per-task={plan.cores_per_process}",
        f"--mem={plan.memory_mb_per_process * plan.tasks_per_node}M",
        *gpus,
        f"--time={plan.minutes}",
        # Two minutes before the time is up the program puts away what it has and ends in order.
        # Slurm tells the steps, unless the batch script itself is asked for ("B:", sbatch(1)).
        f"--signal={'B:' if plan.launch == 'once' else ''}USR1@120",
        "--requeue",
        # What the job said before it went on stays.
        *(["--open-mode=append"] if plan.continues else []),
    ]


def _command(plan: Plan, folder: Path) -> str:
    # In an image a link may lead through a place that is not there.
    place = _resolved if plan.image else str
    if plan.words:
        return " ".join(_quoted(word) for word in plan.words)
    command = ["python", place(plan.program), "--results", place(folder)]
    for name, value in plan.settings.items():
        is_path = name == "data" and value != "synthetic" and not _is_below_mounts(plan.settings)
        text = place(value) if is_path else str(value)
        command += [_word("settings", f"--{name.replace('_', '-')}"), text]
    return " ".join(_quoted(word) for word in command)


def _each(plan: Plan, folder: Path) -> list[str]:
    around = _in_image(plan, folder) if plan.image else ""
    files = ("error.txt", "processes.log", "launcher.log", "summary.json")
    error, log, launcher, summary = (_quoted(str(folder / name)) for name in files)
    # What sbatch was told of cores is not what srun takes them from (srun(1), since Slurm 22.05).
    step = f"srun --kill-on-bad-exit=1 --cpus-per-task={plan.cores_per_process} --output={log}"
    step += " --open-mode=truncate" if plan.continues else ""
    is_own, time_is_up = bool(plan.words), _time_is_up(plan, folder)
    told = process_shell.around(time_is_up) if is_own else ""
    return [
        *(["export PYTHONUNBUFFERED=1"] if is_own else []),
        f"{step} {told}{around}{_command(plan, folder)} 2> {launcher}",
        "status=$?",
        # A program of ours writes one itself, with more in it.
        *([process_shell.finishing(summary, time_is_up)] if is_own else []),
        "# The process that a signal ended says nothing itself: srun does, before the others fail.",
        f"died=$(grep -m1 -E {_quoted(_ENDED)} {launcher})",
        'case "$died" in',
        '"" | *"Exited with exit code"*) ;;',
        f'*) {{ echo "${{died#srun: error: }}"; cat {error} 2>/dev/null; }} > {error}.new',
        f"   mv {error}.new {error} ;;",
        "esac",
        "# The error of the process that failed first, before what the others say of it.",
        f"[ $status -eq 0 ] || cat {error} 2>/dev/null",
        f"cat {log} {launcher}",
        *(_continuing(plan, folder) if plan.continues else []),
        "exit $status",
    ]


def _time_is_up(plan: Plan, folder: Path) -> str:
    """Name the file that says that a program of the user's had to stop; empty if nobody asks."""
    asked = plan.words and plan.continues
    return _quoted(str(folder / process_shell.TIME_IS_UP)) if asked else ""


def _continuing(plan: Plan, folder: Path) -> list[str]:
    """Say when the job waits for its turn once more: its time was up, and there is work left."""
    ended = process_shell.has_stopped() if plan.words else "[ $status -eq 0 ]"
    return [
        "# Two minutes before the end the program has stopped. Nobody has cancelled it.",
        f"if {ended} && [ ! -e {_quoted(str(folder / 'summary.json'))} ] &&",
        f'   [ "${{SLURM_RESTART_COUNT:-0}}" -lt {plan.continues} ]; then',
        "   read -r state end < <(SLURM_TIME_FORMAT=standard squeue --noheader --format='%T %e'"
        ' --jobs="$SLURM_JOB_ID")',
        '   [ "$state" = RUNNING ] && end=$(date --date="$end" +%s) &&',
        '      [ $(($(date +%s) + 180)) -ge "$end" ] && scontrol requeue "$SLURM_JOB_ID"',
        "fi",
    ]


def _once(plan: Plan, folder: Path) -> list[str]:
    if plan.image:
        raise PlanError(
            "image applies to each process: a program that starts steps runs outside it"
        )
    # In the place of the shell, which would keep Slurm's signals to itself.
    return [f"exec {_command(plan, folder)}"]


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


def _transport_lines(plan: Plan) -> list[str]:
    # After modules, which may set them, too: what the notebook says counts.
    try:
        wanted = transport.checked(plan.transport)
    except transport.TransportError as error:
        raise PlanError(f"transport: {error}") from error
    return [f"export {name}={_quoted(value)}" for name, value in wanted.items()]


def _resolved(path: str | Path) -> str:
    return str(Path(path).expanduser().resolve())


def _in_image(plan: Plan, folder: Path) -> str:
    """Say how a process comes into the image: Slurm starts it on each node, as it does without.

    What it reads and writes is where it is outside. The home is there, by Apptainer's own rule.
    """
    image = image_file(plan.image)
    places = shown_to_image(plan.program, folder, plan.settings)
    binds = " ".join(f"--bind {_quoted(place)}" for place in places)
    return f'apptainer exec "${{nv[@]}}" {binds} {_quoted(image)} '


def image_file(name: str) -> str:
    """Return an image's whole path; raises `PlanError` where there is none."""
    image = Path(name).expanduser()
    if not image.exists():
        raise PlanError(f"image is {name!r}; there is no such file or folder")
    return str(image.resolve())


def shown_to_image(program: Path, folder: Path, settings: Mapping[str, Any]) -> list[str]:
    """Return the places that a process in an image must have under the path that they have outside.

    Raises `PlanError` for one that Apptainer would take for two.
    """
    # A copy of a program has its modules among the templates.
    seen = [PROGRAM.resolve().parents[1], program.resolve().parents[1], program.parent, folder]
    if settings.get("data", "synthetic") != "synthetic" and not _is_below_mounts(settings):
        seen.append(Path(settings["data"]))
    seen += [Path(mount) for mount in str(settings.get("mounts", "")).split(",") if mount]
    places = sorted({_resolved(each) for each in seen})
    if wrong := [place for place in places if set(place) & set(",:")]:
        raise PlanError(f"{wrong[0]} cannot be mounted in an image: it has a comma or a colon")
    return places


def _is_below_mounts(settings: Mapping[str, Any]) -> bool:
    """Say whether ``data`` is a path below each of the mounts, and no place of its own."""
    data = str(settings.get("data", ""))
    return bool(settings.get("mounts")) and not data.startswith(("/", "~"))


def _whole(name: str, value: object, least: int) -> None:
    if type(value) is not int or value < least:
        raise PlanError(f"{name} is {value!r}; it must be a whole number, at least {least}")


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
