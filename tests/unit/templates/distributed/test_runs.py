"""A training's job script and its table: nothing but what was meant reaches the script."""

import json
import shlex
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import ranks
from hypothesis import given
from hypothesis import strategies as st
from plans import PROGRAM, Plan, PlanError, script
from runs.speedups import markdown, table
from runs.submitted import Submitted
from runs.views import Reached, curves, figures, reached, reports_of, tensorboard_link

FOLDER = Path("/home/you/logs/resnet/it's a run")
PLAN: dict[str, Any] = {
    "nodes": 2,
    "gpus_per_node": 4,
    "settings": {"model": "50", "report_every": 20, "data": "/nas/my images"},
    "partition": "sxm2",
}


def command(text: str) -> list[str]:
    """Return the words of the line that starts the processes."""
    (line,) = [line for line in text.splitlines() if line.startswith("srun ")]
    return shlex.split(line)


def test_the_script_asks_for_what_was_planned() -> None:
    lines = script(Plan(**PLAN), FOLDER).splitlines()
    for directive in (
        "--partition=sxm2",
        "--nodes=2",
        "--ntasks-per-node=4",
        "--cpus-per-task=8",
        "--mem=196608M",
        "--gres=gpu:4",
        "--time=60",
    ):
        assert f"#SBATCH {directive}" in lines
    assert "module load pytorch || exit" in lines


def test_the_script_names_an_account_and_a_qos_only_if_they_are_given() -> None:
    usual = script(Plan(**PLAN), FOLDER).splitlines()
    named = script(Plan(**PLAN, account="project-42", qos="high"), FOLDER).splitlines()
    more = ["#SBATCH --account=project-42", "#SBATCH --qos=high"]
    assert [line for line in named if line not in more] == usual
    assert [line for line in named if line in more] == more
    # Whoever pays for it, it is the same run.
    assert Plan(**PLAN, account="project-42", qos="high").asked == Plan(**PLAN).asked


def test_without_gpus_there_are_processes() -> None:
    plan = Plan(**{**PLAN, "gpus_per_node": 0, "processes_per_node": 2})
    text = script(plan, FOLDER)
    assert "--gres" not in text
    assert "#SBATCH --ntasks-per-node=2" in text
    assert plan.processes == 4


def test_another_program_gets_the_same_job() -> None:
    usual = command(script(Plan(**PLAN), FOLDER))
    program = Path("/home/you/train_other.py")
    words = command(script(Plan(**PLAN, program=program), FOLDER))
    at = words.index(str(program))
    assert usual[at].endswith("/train_resnet.py")
    assert words[:at] + words[at + 1 :] == usual[:at] + usual[at + 1 :]


def test_each_process_gets_the_cores_that_were_asked_for() -> None:
    assert "--cpus-per-task=8" in command(script(Plan(**PLAN), FOLDER))


def test_a_program_that_starts_its_own_steps_is_the_batch_script() -> None:
    program = Path("/opt/templates/benchmarks/training.py")
    text = script(Plan(**PLAN, program=program, launch="once"), FOLDER)
    (line,) = [line for line in text.splitlines() if line.startswith("exec ")]
    assert shlex.split(line)[1:5] == ["python", str(program), "--results", str(FOLDER)]
    assert "srun" not in text
    # The signal before the end reaches the program, not its steps alone.
    assert "#SBATCH --signal=B:USR1@120" in text.splitlines()
    subprocess.run(["/bin/bash", "-n"], input=text, text=True, check=True, timeout=10)


def test_a_program_that_starts_its_own_steps_stays_outside_an_image(image: Path) -> None:
    with pytest.raises(PlanError, match="runs outside"):
        script(Plan(**PLAN, launch="once", image=str(image)), FOLDER)


def test_names_with_blanks_and_quotes_stay_whole() -> None:
    words = command(script(Plan(**PLAN), FOLDER))
    assert words[words.index("--results") + 1] == str(FOLDER)
    assert words[words.index("--data") + 1] == "/nas/my images"
    assert words[words.index("--report-every") + 1] == "20"


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("partition", "sxm2\n#SBATCH --gres=gpu:8"),
        ("partition", "a b"),
        ("account", "physics --partition=sxm2"),
        ("account", "physics\n#SBATCH --gres=gpu:8"),
        ("qos", "high;id"),
        ("name", "x; id"),
        ("modules", ("pytorch && id",)),
        ("nodes", 0),
        ("nodes", True),
        ("gpus_per_node", -1),
        ("minutes", "60"),
        ("settings", {"model": "50\nid"}),
        ("settings", {"model\nid": "50"}),
    ],
)
def test_what_could_be_more_than_one_value_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(PlanError):
        script(Plan(**{**PLAN, parameter: value}), FOLDER)


@given(st.text(max_size=40))
def test_no_value_puts_a_line_or_a_command_into_the_script(value: str) -> None:
    plan = Plan(**{**PLAN, "settings": {"data": value}})
    usual = script(Plan(**{**PLAN, "settings": {"data": "x"}}), FOLDER)
    try:
        text = script(plan, FOLDER)
    except PlanError:
        assert not value.isprintable()
        return
    assert len(text.splitlines()) == len(usual.splitlines())
    words = command(text)
    assert words[words.index("--data") + 1] == value
    assert len(words) == len(command(usual))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "my image.sif"
    path.touch()
    return path


def test_in_an_image_slurm_still_starts_each_process(image: Path) -> None:
    program = Path("/opt/templates/distributed/train.py")
    settings = {"data": "/nas/my images", "mounts": "/mnt/a,/mnt/b"}
    plan = Plan(**{**PLAN, "settings": settings}, program=program, image=str(image))
    text = script(plan, FOLDER)
    words = command(text)
    at = words.index("apptainer")
    assert words[0] == "srun"
    assert words[at : at + 2] == ["apptainer", "exec"]
    seen = {words[place + 1] for place, word in enumerate(words) if word == "--bind"}
    assert seen == {
        str(FOLDER),
        "/mnt/a",
        "/mnt/b",
        "/nas/my images",
        "/opt/templates",
        "/opt/templates/distributed",
        # A copy of a program has its modules there.
        str(PROGRAM.resolve().parents[1]),
    }
    assert words[words.index(str(image)) + 1 :][:2] == ["python", str(program)]
    assert "module load apptainer || exit" in text.splitlines()
    assert "module load pytorch || exit" not in text.splitlines()
    subprocess.run(["/bin/bash", "-n"], input=text, text=True, check=True, timeout=10)


def test_in_an_image_data_below_the_mounts_is_no_place_of_its_own(image: Path) -> None:
    settings = {"data": "imagenet", "mounts": "/mnt/a,/mnt/b"}
    words = command(script(Plan(**{**PLAN, "settings": settings}, image=str(image)), FOLDER))
    seen = {words[place + 1] for place, word in enumerate(words) if word == "--bind"}
    assert {"/mnt/a", "/mnt/b"} <= seen
    assert not any("imagenet" in place for place in seen)
    assert words[words.index("--data") + 1] == "imagenet"


def test_in_an_image_no_link_has_to_be_followed(image: Path, tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "newest").symlink_to(tmp_path / "release")
    (tmp_path / "templates").symlink_to(tmp_path / "newest")
    settings = {"data": str(tmp_path / "templates/data"), "model": "50"}
    program = tmp_path / "templates/distributed/train.py"
    plan = Plan(**{**PLAN, "settings": settings}, program=program, image=str(image))
    words = command(script(plan, tmp_path / "newest/run"))
    assert words[words.index("--data") + 1] == str(tmp_path / "release/data")
    assert words[words.index("--results") + 1] == str(tmp_path / "release/run")
    assert str(tmp_path / "release/distributed/train.py") in words


def test_nvidias_libraries_come_in_where_its_devices_are(image: Path) -> None:
    text = script(Plan(**PLAN, image=str(image)), FOLDER)
    lines = text.splitlines()
    asks = lines.index("[ -e /dev/nvidiactl ] && nv=(--nv)")
    assert 'apptainer exec "${nv[@]}"' in lines[asks + 2]


def test_an_image_that_is_not_there_is_said_before_anything_is_submitted(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no such file"):
        script(Plan(**PLAN, image=str(tmp_path / "gone.sif")), FOLDER)


def test_a_place_that_an_image_would_take_for_two_is_refused(image: Path) -> None:
    with pytest.raises(PlanError, match="comma or a colon"):
        script(Plan(**PLAN, image=str(image)), Path("/home/you/a:b"))


def test_bash_reads_the_script() -> None:
    text = script(Plan(**PLAN), FOLDER)
    subprocess.run(["/bin/bash", "-n"], input=text, text=True, check=True, timeout=10)


def finished(
    base: Path,
    name: str,
    processes: int,
    speed: float | None,
    device: str = "V100",
    **settings: str,
) -> None:
    chosen = {"model": "50", "batch": 64, "precision": "bf16", "data": "synthetic", "size": 224}
    one = {"processes": processes, "device": device, "images_per_second": speed}
    (base / name).mkdir()
    text = json.dumps({**one, "settings": {**chosen, **settings}})
    (base / name / "summary.json").write_text(text)


def test_a_speed_up_is_over_one_process_of_the_same_kind(tmp_path: Path) -> None:
    finished(tmp_path, "one", 1, 400.0)
    finished(tmp_path, "eight", 8, 2880.0)
    finished(tmp_path, "other", 8, 5000.0, precision="fp32")
    rows = {row["run"]: row for row in table(tmp_path)}
    assert rows["eight"]["speed_up"] == pytest.approx(7.2)
    assert rows["eight"]["efficiency"] == pytest.approx(0.9)
    assert rows["other"]["speed_up"] is None


def test_a_speed_up_is_over_the_fastest_process_on_the_same_device(tmp_path: Path) -> None:
    finished(tmp_path, "eight", 8, 2880.0)
    finished(tmp_path, "on the processor", 1, 30.0, device="CPU")
    rows = {row["run"]: row for row in table(tmp_path)}
    assert rows["eight"]["speed_up"] is None
    finished(tmp_path, "a first try", 1, 200.0)
    finished(tmp_path, "one", 1, 400.0)
    finished(tmp_path, "too short", 1, None)
    rows = {row["run"]: row for row in table(tmp_path)}
    assert rows["eight"]["speed_up"] == pytest.approx(7.2)
    assert rows["on the processor"]["speed_up"] == 1


def test_a_table_leaves_out_what_is_no_training_of_images(tmp_path: Path) -> None:
    finished(tmp_path, "one", 1, 400.0)
    for name, summary in {
        "own": {"exit_code": 0},
        "language": {"settings": {"model": "tiny", "batch": 8}, "processes": 1},
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    assert [row["run"] for row in table(tmp_path)] == ["one"]


def test_the_papers_figures_are_beside_ones_own(tmp_path: Path) -> None:
    finished(tmp_path, "one", 1, 400.0)
    lines = markdown(table(tmp_path)).splitlines()
    assert "| one | 1 | V100 | 400 | 1.00 | 100% |" in lines
    # 5,844 of 740 images/s for one.
    assert (
        "| papers: PyTorch v1.5, V100-PCIe | 8 | ResNet-50, mixed precision | 5,844 | 7.90 | 99% |"
        in lines
    )


def test_a_line_of_progress_is_said_in_words() -> None:
    line = {
        "epoch": 2, "step": 1500, "steps": 3000, "loss": 2.51236, "accuracy": 0.5,
        "images_per_second": 12345.6,
    }  # fmt: skip
    assert figures(line) == (
        "epoch 2, step 1,500 of 3,000: 12,346 images/s, loss 2.5124, accuracy 0.5000"
    )


def test_a_measurement_is_shown_by_its_parts() -> None:
    begun = {"time": 1.0, "parts": 3, "benchmark": "training", "configuration": {}}
    part = {"time": 2.0, "parts": 3, "part": "run 1", "values": {"images_per_second": 812.3}}
    assert reached([]) is None
    assert reached([begun]) == Reached(0, 3, "parts", ("0 of 3 parts",))
    words = ("1 of 3 parts", "run 1: images per second 812.3")
    assert reached([begun, part]) == Reached(1, 3, "parts", words)


def test_a_training_is_shown_by_its_last_report() -> None:
    line = {
        "epoch": 1, "step": 20, "steps": 40, "loss": 2.5, "accuracy": 0.5,
        "images_per_second": 12.0,
    }  # fmt: skip
    tested = {"epoch": 1, "step": 20, "test_accuracy": 0.1}
    seen = reached([{**line, "step": 10}, line, tested])
    assert seen == Reached(20, 40, "steps", (figures(line),))


def test_the_link_leads_to_the_sessions_own_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/you")
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/you/")
    link = "/user/you/tensorboard/?folder=logs/resnet/it%27s%20a%20run"
    assert f'href="{link}"' in tensorboard_link(FOLDER)
    assert 'folder=a%26b%20%22c%22"' in tensorboard_link(Path('/home/you/a&b "c"'))
    assert tensorboard_link(Path("/nas/run")) == ""
    monkeypatch.delenv("JUPYTERHUB_SERVICE_PREFIX")
    assert tensorboard_link(FOLDER) == ""


SRUN = """#!/bin/bash
echo "Process 1 on node002: connection closed by peer" > {error}
echo "srun: error: node001: task 0: {first}" >&2
echo "srun: error: node002: task 1: Exited with exit code 1" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("Killed", "node001: task 0: Killed"),
        ("Segmentation fault (core dumped)", "node001: task 0: Segmentation fault (core dumped)"),
        ("Exited with exit code 1", "Process 1 on node002: connection closed by peer"),
    ],
)
def test_a_process_that_a_signal_ended_is_told_first(first: str, told: str, tmp_path: Path) -> None:
    # Stands in for Slurm's own, which says no more than that.
    srun = tmp_path / "bin/srun"
    srun.parent.mkdir()
    srun.write_text(SRUN.format(error=shlex.quote(str(tmp_path / "error.txt")), first=first))
    srun.chmod(0o755)
    text = script(Plan(**{**PLAN, "modules": ()}), tmp_path)
    done = subprocess.run(
        ["/bin/bash"],
        input=text,
        env={"PATH": f"{srun.parent}:/usr/bin:/bin"},
        text=True,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1, done.stderr
    lines = (tmp_path / "error.txt").read_text().splitlines()
    assert lines[0] == told
    assert "Process 1 on node002: connection closed by peer" in lines
    assert done.stdout.splitlines()[0] == told


# Stand in for Slurm's own.
SLURM = {
    "srun": "exit {status}",
    "squeue": "echo {state} {end}",
    "scontrol": 'echo "$@" > {asked}',
}
# Starts what each process is: the shell, with the program.
SRUN_OF_ONE = 'while [ "$1" != bash ]; do shift; done; exec "$@"'


def run_script(
    plan: Plan, folder: Path, asked: Path, seconds_left: int = 100, **case: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a job script where stand-ins are Slurm; ``asked`` becomes what scontrol is asked for."""
    usual: dict[str, Any] = {"srun": SLURM["srun"], "status": 0, "state": "RUNNING", "restarts": 1}
    case = usual | case
    end = datetime.now() + timedelta(seconds=seconds_left)  # noqa: DTZ005  # as Slurm
    values = {**case, "end": end.isoformat(timespec="seconds"), "asked": shlex.quote(str(asked))}
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (SLURM | {"srun": case["srun"], "sleep": ""}).items():
        (programs / name).write_text(f"#!/bin/bash\n{text.format(**values)}\n")
        (programs / name).chmod(0o755)
    return subprocess.run(
        ["/bin/bash"],
        input=script(plan, folder),
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "SLURM_JOB_ID": "7",
            "SLURM_RESTART_COUNT": str(case["restarts"]),
        },
        text=True,
        capture_output=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("changed", "continues"),
    [
        ({}, True),
        ({"is_finished": True}, False),  # there is nothing left to do
        ({"status": 1}, False),  # it failed
        ({"state": "COMPLETING"}, False),  # somebody has cancelled it
        ({"seconds_left": 600}, False),  # it stopped for another reason
        ({"state": ""}, False),  # Slurm does not answer
        ({"restarts": "2"}, False),  # as often as was wanted
    ],
)
def test_a_job_goes_on_when_only_its_time_was_up(
    changed: dict[str, Any], continues: bool, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    if changed == {"is_finished": True}:
        (tmp_path / "summary.json").touch()
    plan = Plan(**{**PLAN, "modules": (), "continues": 2})
    done = run_script(plan, tmp_path, asked, **changed)
    assert done.returncode == changed.get("status", 0), done.stderr
    assert asked.exists() is continues
    if continues:
        assert asked.read_text() == "requeue 7\n"


TOLD = "kill -USR1 $PPID; while :; do :; done"
"""Tells the shell around a program what Slurm tells it: that the time is nearly up."""


@pytest.mark.parametrize(
    ("program", "changed", "continues", "is_finished"),
    [
        ("trap 'exit 0' USR1; " + TOLD, {}, True, False),  # it has handled the signal
        (TOLD, {}, True, False),  # it has not
        ("exit 0", {}, False, True),  # it had come to its end before
        ("trap 'exit 1' USR1; " + TOLD, {}, False, False),  # it failed
        (
            "trap 'exit 0' USR1; " + TOLD,
            {"seconds_left": 600},
            False,
            False,
        ),  # somebody else told it
        ("trap 'exit 0' USR1; " + TOLD, {"restarts": 2}, False, False),  # as often as was wanted
    ],
)
def test_a_program_of_ones_own_goes_on_when_its_time_was_up(
    program: str, changed: dict[str, Any], continues: bool, is_finished: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "it's a run"
    folder.mkdir()
    asked = tmp_path / "asked"
    more = {"words": ("/bin/sh", "-c", program), "modules": (), "continues": 2}
    # As an earlier start has left it.
    (folder / "time_is_up").touch()
    done = run_script(Plan(**{**PLAN, **more}), folder, asked, srun=SRUN_OF_ONE, **changed)
    assert asked.exists() is continues, done.stderr
    assert (folder / "summary.json").exists() is is_finished


def test_a_program_that_is_not_to_go_on_ends_as_it_says(tmp_path: Path) -> None:
    more = {"words": ("/bin/sh", "-c", "trap 'exit 0' USR1; " + TOLD), "modules": ()}
    asked = tmp_path / "asked"
    done = run_script(Plan(**{**PLAN, **more}), tmp_path, asked, srun=SRUN_OF_ONE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "summary.json").exists()
    assert not asked.exists()


@pytest.mark.parametrize(
    "other",
    [
        {"array": 2},
        {"array": 2, "words": ("./mine",)},
        {"launch": "once", "words": ("./mine",)},
        {"launch": "once"},
        {"continues": -1},
    ],
)
def test_what_cannot_go_on_by_itself_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="continues is"):
        script(Plan(**{**PLAN, "continues": 1, **other}), FOLDER)


HANDLES_ALL = """
for signal in USR1 TERM INT; do
    told=
    trap told=1 $signal
    kill -$signal $PPID
    while [ -z "$told" ]; do :; done
done
exit 3
"""


def test_a_program_of_ones_own_is_started_with_its_own_words() -> None:
    plan = Plan(**{**PLAN, "words": ("python", "/home/you/my train.py", "--epochs", "3; id")})
    text = script(plan, FOLDER)
    words = command(text)
    assert words[words.index("python") :][:4] == list(plan.words)
    assert "--results" not in words
    # What torchrun would tell it.
    told = words[words.index("-c") + 1]
    assert "RANK=$SLURM_PROCID" in told
    assert "MASTER_ADDR=$SLURM_LAUNCH_NODE_IPADDR" in told
    numbers = {"SLURM_JOB_ID": "1234567", "SLURM_STEP_ID": "64"}
    argv = ["/bin/bash", "-c", told, "bash", "/usr/bin/printenv", "MASTER_PORT"]
    port = subprocess.run(argv, env=numbers, check=True, stdout=subprocess.PIPE, timeout=10).stdout
    assert int(port) == ranks.port_of(1234567, 64), "as our own programs have it"
    # A signal is the program's to handle, and its exit status is the process's.
    argv[4:] = ["/bin/sh", "-c", HANDLES_ALL]
    without_sleep = {**numbers, "PATH": ""}
    assert subprocess.run(argv, env=without_sleep, check=False, timeout=10).returncode == 3
    # By this a run that came to its end is known.
    kept = shlex.quote(f"{FOLDER}/summary.json")
    assert f"""[ $status -ne 0 ] || echo '{{"exit_code": 0}}' > {kept}""" in text
    subprocess.run(["/bin/bash", "-n"], input=text, text=True, check=True, timeout=10)


def test_a_run_goes_on_with_layers_that_are_computed_again() -> None:
    again = {**PLAN, "settings": {**PLAN["settings"], "recompute": "yes", "evaluate_every": 50}}
    assert Plan(**again).asked == Plan(**PLAN).asked
    assert "--recompute yes --evaluate-every 50" in script(Plan(**again), FOLDER)


def test_a_run_that_mlflow_keeps_from_now_on_is_no_other() -> None:
    kept = {**PLAN, "settings": {**PLAN["settings"], "mlflow": "licences"}}
    assert Plan(**kept).asked == Plan(**PLAN).asked
    assert "--mlflow licences" in script(Plan(**kept), FOLDER)


def test_other_words_are_another_run() -> None:
    one, other = (Plan(**{**PLAN, "words": ("true", word)}) for word in "ab")
    assert one.asked != other.asked


def test_a_line_of_progress_is_said_with_what_it_has() -> None:
    line = {"step": 10, "steps": 500, "loss": 0.7, "tokens_per_second": 12_345.6}
    assert figures(line) == "step 10 of 500: 12,346 tokens/s, loss 0.7000"


def test_lines_of_another_form_do_not_end_the_view(tmp_path: Path) -> None:
    line = {"step": 10, "steps": 500, "loss": 0.7, "accuracy": None}
    others: list[object] = [
        {"step": 11, "loss": 0.6},
        {"steps": 500, "loss": 0.6},
        {"step": 12, "steps": 500, "loss": None},
        {"step": "13", "steps": 500, "loss": 0.6},
        [14, 0.6],
        0.6,
    ]
    written = "".join(f"{json.dumps(one)}\n" for one in (line, *others))
    (tmp_path / "progress.jsonl").write_text(written)
    lines = Submitted(tmp_path).progress()
    assert reached(lines) == Reached(10, 500, "steps", ("step 10 of 500: loss 0.7000",))
    assert curves(reports_of(lines)).startswith(b"\x89PNG")
    (tmp_path / "progress.jsonl").write_text("0.6\n")
    assert reached(Submitted(tmp_path).progress()) is None


def test_a_curve_is_drawn_of_the_lines_that_have_it() -> None:
    lines = [{"step": step, "steps": 4, "loss": 1.0 / step} for step in (1, 2, 3, 4)]
    without = curves(lines)
    with_some = curves([*lines[:-1], {**lines[-1], "perplexity": 2.0}])
    assert with_some.startswith(b"\x89PNG")
    assert with_some != without


def test_a_job_array_is_each_task_the_whole_of_the_plan() -> None:
    text = script(Plan(**PLAN, array=12, launch="once"), FOLDER)
    assert "#SBATCH --array=1-12" in text.splitlines()
    # A task that starts late would remove what another said of its failure.
    assert "rm -f" not in text
    assert "--array" not in script(Plan(**PLAN), FOLDER)
    with pytest.raises(PlanError, match="array"):
        script(Plan(**PLAN, array=-1), FOLDER)


def test_an_elastic_run_is_the_same_on_other_nodes_with_as_large_a_batch() -> None:
    def asked(nodes: int, batch: int, **more: Any) -> dict[str, Any]:
        settings = {"batch": batch, "rate": 0.1, **more.pop("settings", {})}
        return Plan(**PLAN | {"nodes": nodes, "settings": settings, **more}).asked

    assert asked(2, 4, is_elastic=True) == asked(4, 2, is_elastic=True)
    assert asked(2, 4, is_elastic=True) != asked(4, 4, is_elastic=True)
    in_parts = {"settings": {"accumulate": 2}, "is_elastic": True}
    assert asked(1, 4, **in_parts) == asked(2, 4, is_elastic=True)
    assert asked(2, 4, **in_parts) != asked(2, 4, is_elastic=True)
    assert asked(2, 4) != asked(4, 2)
