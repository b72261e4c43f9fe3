"""What a notebook makes of a batch of files: its paths, its table, and how its array ends."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.notebooks.model_serving import SERVING

# In the place of Slurm: an array that runs, and is over later.
BATCH = """
import asyncio, os, sys
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/{place}" for place in ("serving", "distributed", "slurm")]
import file_batch, jobs, plans
from runs import job_array

queue = ""
jobs._slurm = lambda program, *_, **__: queue if program == "squeue" else "41"
settings = {"model": Path("model"), "data": Path("data"), "batch": 2, "max_tokens": 4}
plan = plans.Plan(nodes=1, gpus_per_node=0, settings=settings, launch="once", array=2)
batch = file_batch.FileBatch(Path("run"), plan)
batch.submit()
(words,) = [line for line in Path("run/job.sh").read_text().splitlines() if "python" in line]
print(words)

queue = "41 RUNNING"
try:
    batch.list_here()
except plans.PlanError as error:
    print(error)
queue = ""

Path("run/parts").mkdir()
Path("run/parts/00000000.jsonl").write_text(
    '{"file": "caf\\\\udce9.png", "classes": [{"name": "cup", "probability": 0.5}]}\\n'
)
print(batch.table().to_dict("records"))

Path("run/error.txt").write_text("Process 0 on n1: <no> such module")

class View(file_batch.BatchView):
    def enable(self, **_):
        print(self._failure.value)

file_batch.BatchView = View
async def watched():
    await batch.watch()

asyncio.run(watched())
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the paths begin."""
    return tmp_path_factory.mktemp("here")


@pytest.fixture(scope="module")
def said(python_of: Callable[[str], Path], here: Path) -> list[str]:
    """What a batch says of itself."""
    (here / "model").mkdir()
    config = {"architectures": ["ViTForImageClassification"]}
    (here / "model/config.json").write_text(json.dumps(config))
    (here / "model/model.safetensors").touch()
    (here / "data").mkdir()
    for name in (b"caf\xe9.png", b"tea.png"):
        (here / "data" / name.decode(errors="surrogateescape")).touch()
    argv = [str(python_of("pytorch")), "-B", "-c", BATCH, str(SERVING.parent)]
    done = subprocess.run(argv, cwd=here, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_job_finds_what_is_named_from_here(said: list[str], here: Path) -> None:
    # It starts in the run's folder.
    assert f"--results {here}/run --model {here}/model --data {here}/data " in said[0]


def test_a_batch_is_not_run_here_while_its_array_works(said: list[str]) -> None:
    assert said[1].startswith("job array 41: 1 running, and works in ")


def test_a_file_whose_name_is_not_utf_8_has_its_row(said: list[str]) -> None:
    assert said[2] == str([{"file": "caf\\xe9.png", "class": "cup", "probability": 0.5}])


def test_the_notebook_says_why_an_array_ended(said: list[str]) -> None:
    assert said[-1] == "<pre>Process 0 on n1: &lt;no&gt; such module</pre>"
