"""The hyper-parameter sweep: it finds, ends early, begins again what was interrupted."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instance import ROOT
from tests.notebooks.running import printed_by
from tests.training.trials import WAITING
from tests.waiting import until

SWEEPS = ROOT / "notebook_templates" / "sweeps"
# One value tells how the others come out.
OBJECTIVE = f"""
{WAITING}
import optuna

def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    for step in range(5):
        trial.report(-abs(x), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return -abs(x)

def broken(trial):
    trial.suggest_float("x", -1, 1)
    raise ValueError("no such data")
"""
COUNT = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import studies
study = studies.opened(Path(sys.argv[2]), "maximize", 1, 2)
counted = studies.counted(study)
print(json.dumps([[t.number, t.state.name, t.params["x"]] for t in counted]))
"""
CURVE = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
drawn = EventAccumulator(sys.argv[1]).Reload().Scalars("accuracy")
print(json.dumps([[point.step, point.value] for point in drawn]))
"""


TWICE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import objective, optuna
trial = optuna.trial.FixedTrial({"rate": 0.01, "width": 32, "dropout": 0.1})
trial.set_user_attr("folder", sys.argv[2])
print(json.dumps([objective.objective(trial) for _ in range(2)]))
"""


@pytest.fixture
def objective(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(OBJECTIVE)
    return file


def started(
    python: Path, results: Path, objective: str, trials: int, seed: int = 1, *more: str
) -> subprocess.Popen[str]:
    argv = [str(python), "-B", str(SWEEPS / "try_all.py"), "--results", str(results), *more]
    argv += ["--objective", objective, "--trials", str(trials), "--seed", str(seed)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def counted(python: Path, results: Path) -> list[tuple[int, str, float]]:
    argv = [str(python), "-B", "-c", COUNT, str(SWEEPS), str(results)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    return [tuple(one) for one in json.loads(done.stdout)]


def test_the_notebook_finds_a_network_that_reads_digits(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    python = python_of("pytorch")
    printed = printed_by(SWEEPS / "sweep.ipynb", python, tmp_path, {"trials": 9})
    _, _, best = printed.rpartition("best: trial ")
    assert float(best.split()[1]) > 0.9
    assert printed.count("\ntrial ") + printed.startswith("trial ") == 9
    notebook = json.loads((tmp_path / "done.ipynb").read_text())
    outputs = [one for cell in notebook["cells"] for one in cell.get("outputs", [])]
    kinds = {kind for one in outputs for kind in one.get("data", {})}
    assert {"image/png", "text/html"} <= kinds
    # What was drawn while it went on, as it was at the end.
    widgets = notebook["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]
    told = [one["state"].get("value", "") for one in widgets["state"].values()]
    bar = '<progress max="9" value="9" aria-label="Trials"></progress>'
    assert f"{bar} <b>9 of 9 trials done</b>" in told
    assert any(text.startswith("<table") for text in told)
    # Each trial has a curve, those too that ended early; the first is never pruned.
    trials = sorted((tmp_path / "logs/sweeps/sweep/trials").iterdir())
    assert len(trials) == 9
    assert all(list((trial / "tensorboard").glob("events.*")) for trial in trials)
    argv = [str(python), "-c", CURVE, str(trials[0] / "tensorboard")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    curve = json.loads(done.stdout)
    assert [step for step, _ in curve] == list(range(12))
    value = re.search(r"^trial 0: ([0-9.]+)", printed, re.MULTILINE)
    assert value
    assert curve[-1][1] == pytest.approx(float(value[1]), abs=1e-6)


def test_processes_side_by_side_try_as_many_as_were_asked_for(
    python_of: Callable[[str], Path], tmp_path: Path, objective: Path
) -> None:
    python, results = python_of("pytorch"), tmp_path / "study"
    workers = [started(python, results, f"{objective}:objective", 30, seed) for seed in (1, 2026)]
    for worker in workers:
        said, _ = worker.communicate(timeout=200)
        assert worker.returncode == 0, said
    found = counted(python, results)
    assert [number for number, _, _ in found] == list(range(30))
    states = [state for _, state, _ in found]
    assert states.count("PRUNED") >= 3
    assert states.count("COMPLETE") + states.count("PRUNED") == 30
    assert min(abs(x) for _, state, x in found if state == "COMPLETE") < 0.1


def test_a_trial_that_is_interrupted_after_its_last_epoch_counts_as_what_it_reached(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", TWICE, str(SWEEPS), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    reached, again = json.loads(done.stdout)
    assert reached > 0.8
    assert again == reached


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_trial_that_is_interrupted_is_begun_again_as_it_was(
    python_of: Callable[[str], Path], tmp_path: Path, objective: Path, number: signal.Signals
) -> None:
    python, results = python_of("pytorch"), tmp_path / "study"
    first = started(python, results, f"{objective}:waiting", 2)
    begun = results / "trials" / "0000" / "begun"
    until(begun.exists, seconds=120, what="a trial is begun")
    first.send_signal(number)
    said, _ = first.communicate(timeout=60)
    assert first.returncode == 0
    assert f"interrupted by {number.name}" in said
    (results / "go").touch()
    said, _ = started(python, results, f"{objective}:waiting", 2).communicate(timeout=120)
    attempts = begun.read_text().split()
    assert len(attempts) == 2
    assert attempts[0] == attempts[1]
    found = counted(python, results)
    assert [state for _, state, _ in found] == ["COMPLETE", "COMPLETE"]
    # A process that comes later does not propose what an earlier one did.
    assert [x for _, _, x in found].count(float(attempts[0])) == 1


def test_a_study_does_not_go_on_in_the_other_direction(
    python_of: Callable[[str], Path], tmp_path: Path, objective: Path
) -> None:
    python, results, function = python_of("pytorch"), tmp_path / "study", f"{objective}:objective"
    first = started(python, results, function, 2, 1, "--direction", "maximize")
    said, _ = first.communicate(timeout=120)
    assert first.returncode == 0, said
    second = started(python, results, function, 3, 1, "--direction", "minimize")
    said, _ = second.communicate(timeout=120)
    assert second.returncode == 1
    assert "has a study with direction = 'maximize', not 'minimize'" in said
    assert "Traceback" not in said
    assert not (results / "trials/0002").exists()


def test_a_function_that_fails_says_why_and_ends(
    python_of: Callable[[str], Path], tmp_path: Path, objective: Path
) -> None:
    python, results = python_of("pytorch"), tmp_path / "study"
    said, _ = started(python, results, f"{objective}:broken", 2).communicate(timeout=120)
    assert said.count("ValueError: no such data") == 2
    assert "no such data" in (results / "trials/0001/error.txt").read_text()
    said, _ = started(python, results, f"{objective}:gone", 2).communicate(timeout=120)
    assert "has no attribute 'gone'" in said
    assert "Traceback" not in said


HERE = """
import sys
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/{place}" for place in ("sweeps", "distributed")]
import plans, sweep

folder = Path(sys.argv[2])

class View:
    def __init__(self, trials):
        assert trials == 3

    def show(self, study, words):
        print("shown:", words)
        (folder / f"shown-{words.split()[0]}").touch()

sweep.SweepView, sweep.DRAW_SECONDS = View, 0
settings = {"trials": 3, "direction": "maximize", "seed": 1, "unpruned_steps": 2}
settings["objective"] = sys.argv[3]
program = Path(sys.argv[1]) / "sweeps/try_all.py"
plan = plans.Plan(nodes=1, gpus_per_node=0, settings=settings, launch="once", program=program)
sweep.Sweep(folder, plan).search_here()
"""
# Each trial but the first ends when the one before was shown.
SHOWN_FIRST = """
import time
from pathlib import Path

def objective(trial):
    while trial.number and not Path(f"{folder}/shown-{trial.number}").exists():
        time.sleep(0.05)
    return -abs(trial.suggest_float("x", -1, 1))
"""


def test_a_search_in_this_session_is_drawn_as_it_goes_on(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, file = tmp_path / "here", tmp_path / "mine.py"
    file.write_text(f"folder = {str(folder)!r}\n{SHOWN_FIRST}")
    here = [str(python_of("pytorch")), "-B", "-c", HERE, str(SWEEPS.parent)]

    def searched(folder: Path, function: str) -> subprocess.CompletedProcess[str]:
        argv = [*here, str(folder), f"{file}:{function}"]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)

    done = searched(folder, "objective")
    assert done.returncode == 0, done.stderr
    shown = [line for line in done.stdout.splitlines() if line.startswith("shown:")]
    assert list(dict.fromkeys(shown)) == [f"shown: {n} of 3 trials done" for n in range(4)]
    failed = searched(tmp_path / "other", "gone")
    assert "has no attribute 'gone'" in failed.stdout
    assert "The program failed: see above" in failed.stderr


# A study whose only trial runs: nothing has a duration or a value yet.
RUNNING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import board, studies
folder = Path(sys.argv[2])
study = studies.opened(folder, "minimize", 1, 2)
trial = studies.begun(study, folder, 3)
trial.suggest_float("rate", 0, 1), trial.suggest_int("seconds", 1, 3)
trial.suggest_categorical("value", ["a", "b"])
print(board.curves(study)[:4], *board.table(study), list(board.table(study)["state"]))
study.tell(trial, 0.5)
print(list(board.table(study)["value"]), list(board.table(study)["seconds"] >= 0))
"""


def test_a_study_is_shown_while_its_first_trial_runs(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", RUNNING, str(SWEEPS), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    # A parameter that is called as another column keeps its longer name.
    columns = {"number", "state", "value", "seconds", "rate", "params_seconds", "params_value"}
    assert first.startswith("b'\\x89PNG' ")
    assert first.endswith(" ['RUNNING']")
    assert set(first.split()[1:-1]) == columns
    assert second == "[0.5] [True]"


# In the place of Slurm: an account that may submit three tasks, of which one runs for a moment.
ARRAY = """
import asyncio, re, sys
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/{place}" for place in ("sweeps", "distributed", "slurm")]
import jobs, plans, studies, sweep
from runs import job_array

folder, asked = Path(sys.argv[2]), []
queue = ["41 PENDING\\n41 RUNNING\\n40 RUNNING", "41 RUNNING", ""]

def slurm(program, *arguments, folder=None):
    if program == "squeue":
        return queue.pop(0) if len(queue) > 1 else queue[0]
    tasks = int(re.search("--array=1-([0-9]+)", Path(arguments[-1]).read_text())[1])
    asked.append(-tasks if arguments[0] == "--test-only" else tasks)
    if tasks > 3:
        raise jobs.SlurmCommandError(
            "sbatch: error: AssocMaxSubmitJobLimit\\nsbatch: error: Batch job submission failed: "
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
        )
    return "41"

jobs._slurm = slurm
settings = {"trials": 9, "direction": "maximize", "seed": 1, "unpruned_steps": 2}
plan = plans.Plan(nodes=1, gpus_per_node=0, settings=settings, launch="once", array=9)
search = sweep.Sweep(folder, plan)
left = studies.begun(search.study, folder, 9)
left.suggest_float("x", -1, 1)
print("submitted", search.submit(), asked)

async def watched():
    await search.watch()

job_array.LOOK_SECONDS = 0.01
print("found again", search.submit(), asked)
(folder / "error.txt").write_text("Process 0 on n1: <no> such module")
show = sweep.SweepView.show

def seen(view, *told):
    show(view, *told)
    print(view._state.value)

sweep.SweepView.show = seen
asyncio.run(watched())
print(search.is_done(), [trial.state.name for trial in search.study.get_trials()])
queue[:] = ["41 RUNNING"]
try:
    search.search_here()
except plans.PlanError as error:
    print(error, [trial.state.name for trial in search.study.get_trials()])
print(sweep.best_of(search.study) == "")
"""


def test_fewer_tasks_are_submitted_where_a_user_may_not_have_all(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    argv = [str(python_of("pytorch")), "-B", "-c", ARRAY, str(SWEEPS.parent), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    # What is below 0 was only asked, not submitted.
    assert "submitted 41 [9, -4, -2, -3, 3]" in done.stdout
    # The array is there: it is not submitted once more.
    assert "found again 41 [9, -4, -2, -3, 3]" in done.stdout
    # What an earlier process had left unfinished waits to be begun again.
    assert "False ['FAIL', 'WAITING']" in done.stdout
    assert "job array 41: over</b><pre>Process 0 on n1: &lt;no&gt; such" in done.stdout
    # What its tasks try is not begun once more in the session.
    assert "job array 41: 1 running, and works in " in done.stdout
