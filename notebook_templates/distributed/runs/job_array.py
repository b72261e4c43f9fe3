"""A folder's job array: submitted, followed, cancelled, and found again after a restart."""

import asyncio
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[2] / "slurm")]
import jobs
from plans import Plan, PlanError, script

LOOK_SECONDS = 3.0
# sbatch's words for more tasks than a user may submit, or than any array may have (MaxArraySize).
TOO_MANY = re.compile("job submit limit|Invalid job array specification|MaxSubmit")


class JobArray:
    """The array that was submitted last for a folder, if there was one."""

    def __init__(self, folder: Path) -> None:
        """Find it again, or wait for `submit`."""
        self._folder = folder
        self._following: asyncio.Task[None] | None = None

    @property
    def number(self) -> int | None:
        """Its job's number."""
        try:
            return int((self._folder / "job.txt").read_text())
        except (OSError, ValueError):
            return None

    def tasks(self) -> dict[str, int]:
        """Count the tasks that wait and run, by Slurm's word; empty: it is over."""
        return jobs.array_tasks(self.number) if self.number else {}

    def submit(self, plan: Plan) -> int:
        """Submit an array; return its number.

        Where a user may not have so many tasks, there are as many as Slurm accepts: each must be
        ready to do the work of others.
        """
        (self._folder / "error.txt").unlink(missing_ok=True)
        while True:
            try:
                number = jobs.submit(self._script(plan), folder=self._folder).number
                break
            except jobs.SlurmCommandError as error:
                if plan.array == 1 or not TOO_MANY.search(str(error)):
                    raise
                plan = replace(plan, array=max(1, self._most_below(plan)))
        (self._folder / "job.txt").write_text(f"{number}\n")
        return number

    def _most_below(self, refused: Plan) -> int:
        """Find the most tasks that Slurm would accept now, by bisection; 0: not even one."""
        most, too_many = 0, refused.array
        while too_many - most > 1:
            tasks = (most + too_many) // 2
            if self._is_too_many(replace(refused, array=tasks)):
                too_many = tasks
            else:
                most = tasks
        return most

    def _is_too_many(self, plan: Plan) -> bool:
        try:
            jobs.validate(self._script(plan), folder=self._folder)
        except jobs.SlurmCommandError as error:
            return TOO_MANY.search(str(error)) is not None
        return False

    def _script(self, plan: Plan) -> Path:
        file = self._folder / "job.sh"
        file.write_text(script(plan, self._folder))
        return file

    def cancel(self) -> None:
        """End all its tasks."""
        if self.number:
            jobs.BatchJob(self.number).cancel()

    def follow(self, show: Callable[[Mapping[str, int]], object]) -> "asyncio.Task[None]":
        """Call ``show`` with its tasks until it is over, beside what the notebook does.

        A question to Slurm that fails changes nothing and is asked again.
        """

        async def look() -> None:
            while True:
                try:
                    tasks = await asyncio.to_thread(self.tasks)
                except jobs.SlurmCommandError:
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
                show(tasks)
                if not tasks:
                    return
                await asyncio.sleep(LOOK_SECONDS)

        self._following = asyncio.get_running_loop().create_task(look())
        return self._following

    def failure(self, tasks: Mapping[str, int]) -> str:
        """Return why the first task failed that did; once all are over, else the end of a log.

        A program that was never begun, or was killed, leaves its words in Slurm's log alone.
        """
        said = jobs.tail(self._folder / "error.txt")
        if said or tasks:
            return said
        logs = sorted(self._folder.glob(f"slurm-{self.number}_*.out"), key=_written)
        return jobs.tail(logs[-1], jobs.LOG_LINES) if logs else ""

    def refuse_beside(self) -> None:
        """Raise `PlanError` where the array is not over: two would do the same work."""
        if tasks := self.tasks():
            raise PlanError(
                f"{self.words(tasks)}, and works in {self._folder}: wait for its end, or cancel it "
                f"with scancel {self.number}"
            )

    def words(self, tasks: Mapping[str, int]) -> str:
        """Say how its tasks are."""
        said = ", ".join(f"{count} {word.lower()}" for word, count in sorted(tasks.items()))
        return f"job array {self.number}: {said or 'over'}"


def _written(file: Path) -> float:
    return file.stat().st_mtime
