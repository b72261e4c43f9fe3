"""A batch of files as a job array: cancelled, resumed, and each file done once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.desk import PATIENCE, Desk
from tests.notebooks.model_serving import SERVING
from tests.notebooks.running import framework_python
from tests.notebooks.serving.test_serving import CLASSIFY, output_of
from tests.waiting import until

NOTEBOOK = "serving/serving.ipynb"
JOB = {"tasks": 2, "gpus": 0, "cores": 1, "memory_mb": 1500, "minutes": 10, "requests": 16}
COPIES = 4
MANY = """
import shutil
from pathlib import Path
shutil.rmtree("many", ignore_errors=True)
for number in range({copies}):
    shutil.copytree({source!r}, Path("many") / str(number), dirs_exist_ok=True)
"""


def parts_of(run: Path) -> dict[str, int]:
    """Return the parts that are written, and when they were."""
    return {part.name: part.stat().st_mtime_ns for part in (run / "parts").glob("*.jsonl")}


def lines_of(run: Path) -> list[dict[str, Any]]:
    texts = [(run / "parts" / name).read_text() for name in sorted(parts_of(run))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.mark.timeout(900)
def test_an_array_is_cancelled_and_resumed_and_its_answers_are_the_models_own(
    desk: Desk, kernel: Callable[..., str]
) -> None:
    name = kernel()
    # The notebook as a user runs it first: it makes the model, and divides its images.
    where = {"runs_dir": "~/logs/runs/serving"}
    printed = desk.run_all(name, NOTEBOOK, **JOB, **where, wait=True)
    assert "200 of 200 files done" in printed, printed
    runs = desk.home / "logs/runs/serving"
    shapes, best = runs / "tiny/shapes/val", runs / "tiny/best"
    lines = lines_of(runs / "batch")
    files = json.dumps([str(shapes / line["file"]) for line in lines])
    python = framework_python("pytorch")
    wanted = json.loads(output_of(python, CLASSIFY, SERVING.parent, best, files))
    assert [line["classes"][0]["name"] for line in lines] == [name for name, _ in wanted]
    right = sum(Path(line["file"]).parent.name == line["classes"][0]["name"] for line in lines)
    assert right / len(lines) > 0.5  # of eight classes
    for task in (1, 2):
        (log,) = (runs / "batch").glob(f"slurm-*_{task}.out")
        assert "100 files to do" in log.read_text()

    # Many more, a part for each file; cancelled while both tasks work.
    desk.user.run_in(name, MANY.format(copies=COPIES, source=str(shapes)), seconds=PATIENCE)
    many = desk.user.run_in(name, "print(Path('many').resolve())").strip()
    given = {**JOB, **where, "model": str(best), "data": many, "name": "many"}
    assert "Folder" in desk.run_all(name, NOTEBOOK, **given, batch=1)
    run = runs / "many"
    until(lambda: len(parts_of(run)) > 20, seconds=PATIENCE, every=0.02, what="some are done")
    desk.user.run_in(name, "files.cancel(); await watching", seconds=PATIENCE)
    written = parts_of(run)
    assert 20 < len(written) < 200 * COPIES
    assert "False" in desk.user.run_in(name, "print(files.is_done())")

    # Resumed as the button does, by fewer tasks in larger parts.
    printed = desk.run_all(name, NOTEBOOK, **{**given, "tasks": 1}, batch=64, wait=True)
    assert f"{200 * COPIES} of {200 * COPIES} files done" in printed, printed
    done = [line["file"] for line in lines_of(run)]
    assert len(done) == len(set(done)) == 200 * COPIES
    after = parts_of(run)
    assert {part: after[part] for part in written} == written
    # Nothing is left: no job is submitted.
    number = (run / "job.txt").read_text()
    desk.user.run_in(name, "files.submit()", seconds=PATIENCE)
    assert (run / "job.txt").read_text() == number
    other = {**given, "data": str(shapes)}
    assert "set another name for this run" in desk.run_all(name, NOTEBOOK, **other)
