"""Looks at a job, and at the programs about it, every few milliseconds while something is done."""

import os
import pwd
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.portal.harness.phases import JobSample
from tests.instance import Instance

T = TypeVar("T")
_BETWEEN_SECONDS = 0.002
_MOST_SECONDS = 60


@dataclass(frozen=True)
class Program:
    """What a program's command line has, and whose process it is."""

    words: str
    uid: int | None = None
    """``None``: anybody's."""


def programs(portal: Instance, user: str) -> dict[str, Program]:
    """Return what starts and ends a user's jobs, and what runs in them."""
    configured = portal.slurm("scontrol", "show", "config").splitlines()
    (epilog,) = (line.split("=")[1].strip() for line in configured if line.startswith("Epilog "))
    uid = pwd.getpwnam(user).pw_uid
    return {
        # The files of this instance. The launcher is sudo's child, and not its user's to look into.
        "launcher": Program(portal.settings["slurm"]["launcher"]),
        "epilog": Program(epilog),
        "sbatch": Program(f"--comment={portal.mark}:", uid),
        "session": Program("dsportal.session", uid),
        "kernel": Program("/kernel-", uid),
        "sleep": Program("sleep", uid),
    }


def running(wanted: Mapping[str, Program]) -> frozenset[str]:
    """Return those of which there is a process now."""
    return frozenset(name for name, _ in _processes(wanted))


def started_at(program: Program) -> float:
    """Return when the newest of its processes was made, in seconds since 1970 (to a hundredth).

    Raises `ValueError` where there is none.
    """
    # proc_pid_stat(5): in ticks since the machine was booted.
    ticks = max(_start_ticks(process) for _, process in _processes({"": program}))
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def _start_ticks(process: Path) -> int:
    after_name = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(after_name[22 - 3])


def _processes(wanted: Mapping[str, Program]) -> Iterator[tuple[str, Path]]:
    for number in filter(str.isdecimal, os.listdir("/proc")):
        process = Path("/proc", number)
        try:
            line = (process / "cmdline").read_bytes()
            for name, program in wanted.items():
                is_named = program.words.encode() in line
                if is_named and program.uid in (None, process.stat().st_uid):
                    yield name, process
        except OSError:  # it has ended meanwhile
            continue


def state_of(portal: Instance, *jobs: str) -> str:
    """Return the state of the one job that squeue finds so; empty for none."""
    return portal.slurm("squeue", "--noheader", *jobs, "-o", "%T").strip()


def while_doing(
    action: Callable[[], T],
    look: Callable[[], JobSample],
    is_over: Callable[[JobSample], bool] | None = None,
) -> tuple[list[JobSample], T]:
    """Do it beside, and look until all is over, or else until it is done.

    Returns what was seen, and what the action returned.
    """
    samples: list[JobSample] = []
    deadline = time.monotonic() + _MOST_SECONDS
    with ThreadPoolExecutor(1) as beside:
        doing = beside.submit(action)
        while True:
            samples.append(look())
            if doing.done():
                doing.result()  # of one that failed, nothing more will come
            if is_over(samples[-1]) if is_over else doing.done():
                return samples, doing.result()
            if time.monotonic() > deadline:
                raise AssertionError(f"not over within {_MOST_SECONDS} s: {samples[-1]}")
            time.sleep(_BETWEEN_SECONDS)
