"""A program on some of the nodes that a measurement has: as a step of its Slurm job, or here.

A measurement over many nodes runs in the job's batch script, and starts its steps with srun. The
same program in a shell has this machine alone.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SRUN = "srun"
_SECONDS_TO_LOOK = 120
_GRACE_SECONDS = 15


class StepError(RuntimeError):
    """A step ended badly; the message is the end of what it said."""


@dataclass(frozen=True)
class Nodes:
    """What there is to measure on."""

    count: int
    in_job: bool
    """Whether srun reaches them; otherwise it is this machine."""
    cores: int = 1
    """Of the job, on each of them."""
    tasks: int = 1
    """Processes that the job asked for, on each of them: one for each GPU, as a rule."""


def nodes(variables: Mapping[str, str] = os.environ) -> Nodes:
    """Say which nodes there are: those of the job whose batch script this is, or this machine."""
    # A batch script has its own SLURM_PROCID. A session knows its job but not that: it is one task,
    # and measures what it has, without srun.
    is_batch = "SLURM_PROCID" in variables and "SLURM_STEP_ID" not in variables
    if not is_batch:
        return Nodes(1, in_job=False)
    names = ("SLURM_JOB_NUM_NODES", "SLURM_CPUS_ON_NODE", "SLURM_NTASKS_PER_NODE")
    count, cores, tasks = (int(variables.get(name, "1")) for name in names)
    return Nodes(count, in_job=True, cores=cores, tasks=tasks)


def argv(
    there: Nodes, command: Sequence[str], *, on: int = 1, each: int = 1, options: Sequence[str] = ()
) -> list[str]:
    """Return what runs ``command`` ``each`` times on ``on`` of the nodes.

    Raises `StepError` for more than there is. Without a job there is one process. The processes of
    a node share the job's cores there.
    """
    if on > there.count or (not there.in_job and each > 1):
        raise StepError(
            f"{on} nodes with {each} processes each are needed, and there is only {there.count}: "
            "submit it to Slurm"
        )
    if not there.in_job:
        return list(command)
    sizes = [f"--nodes={on}", f"--ntasks={on * each}", f"--ntasks-per-node={each}"]
    # srun does not take them from what sbatch was told (srun(1), since Slurm 22.05).
    cores = f"--cpus-per-task={max(1, there.cores // each)}"
    return [SRUN, "--kill-on-bad-exit=1", *sizes, cores, *options, *command]


def hosts(there: Nodes) -> list[dict[str, Any]]:
    """Describe each of the nodes, as `machine.host` does."""
    command = [sys.executable, str(Path(__file__).with_name("machine.py"))]
    printed = run(argv(there, command, on=there.count), _SECONDS_TO_LOOK)
    return [json.loads(line) for line in sorted(printed.splitlines())]


def run(
    command: Sequence[str], seconds: float, more_variables: Mapping[str, str] | None = None
) -> str:
    """Run one to its end and return what it printed.

    Raises `StepError` where it fails, or takes longer.
    """
    with started(command, more_variables) as process:
        try:
            printed, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise StepError(f"{command[0]} did not end within {seconds:.0f} s") from error
    if process.returncode != 0:
        words = f"{said[-2000:]}\n{printed[-2000:]}".strip()
        raise StepError(f"{command[0]} ended with {process.returncode}: {words}")
    return printed


def answer(
    command: Sequence[str], seconds: float, more_variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run one to its end and return what the last of its lines in JSON says.

    A process that has told its figures may still crash while it ends, as libraries for GPUs and
    networks do: the figures count. Raises `StepError` where it fails before, or takes longer.
    """
    with started(command, more_variables) as process:
        try:
            printed, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise StepError(f"{command[0]} did not end within {seconds:.0f} s") from error
    found, others = _figures(printed)
    if found is None:
        words = f"{said[-2000:]}\n{printed[-2000:]}".strip()
        raise StepError(f"{command[0]} ended with {process.returncode}: {words}")
    if others:
        print(*others, sep="\n", file=sys.stderr, flush=True)
    if process.returncode != 0:
        text = f"{command[0]} ended with {process.returncode} after it had told its figures"
        print(f"{text}, which are kept: {said[-500:].strip()}", file=sys.stderr, flush=True)
    return found


def _figures(printed: str) -> tuple[dict[str, Any] | None, list[str]]:
    lines = printed.splitlines()
    # NCCL logs to the same stream (NCCL_DEBUG), also after the figures.
    for at in reversed(range(len(lines))):
        if lines[at].startswith("{"):
            with suppress(ValueError):
                return dict(json.loads(lines[at])), lines[:at] + lines[at + 1 :]
    return None, lines


@contextmanager
def started(
    command: Sequence[str], more_variables: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[str]]":
    """Start one that ends with the block at the latest, and is let tidy up. Raises `StepError`."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(more_variables or {})},
        )
    except OSError as error:
        raise StepError(f"{command[0]}: {error}") from error
    with process:
        try:
            yield process
        finally:
            _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
