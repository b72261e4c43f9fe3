"""A run's folder, and the job that was submitted for it.

What a run leaves is in one folder: the job script, the settings, the log, the lines of progress,
the checkpoint, the curves for TensorBoard and the summary.
"""

import json
import sys
from pathlib import Path
from typing import Any

# jobs.py is among the templates for Slurm, result.py among the benchmarks; a copy of a notebook
# finds them there too.
sys.path += [str(Path(__file__).resolve().parents[2] / name) for name in ("slurm", "benchmarks")]
import jobs

from measurement.result import read_lines


class Submitted:
    """A run by its folder."""

    def __init__(self, folder: Path) -> None:
        """Find the run of a folder; `runs.start` makes one."""
        self.folder = folder

    @property
    def job(self) -> jobs.BatchJob | None:
        """The job that was submitted last."""
        try:
            return jobs.BatchJob(int((self.folder / "job.txt").read_text()))
        except (OSError, ValueError):
            return None

    def asked(self) -> dict[str, Any] | None:
        """Return what the run was asked for (`Plan.asked`), ``None`` where that is not kept."""
        return self._read("asked.json")

    def submit(self) -> jobs.BatchJob:
        """Submit the script, once more if need be: the run goes on from what it kept.

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
        return read_lines(self.folder / "progress.jsonl")

    def summary(self) -> dict[str, Any] | None:
        """Return the results, ``None`` before the end."""
        return self._read("summary.json")

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.folder / name).read_text()))
        except (OSError, ValueError):  # ValueError: the disk was full
            return None
