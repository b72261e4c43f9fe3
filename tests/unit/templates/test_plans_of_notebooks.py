"""The plans that notebooks make of their parameters."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.unit.templates.notebook_code import code_of, handed_to_plan, parameters_of

TEMPLATES = ROOT / "notebook_templates"
PROGRAMS = {
    "distributed/resnet": "distributed/train_resnet.py",
    "distributed/resnet_tensorflow": "distributed/train_resnet_tensorflow.py",
    "jax/keras_distribution": "jax/train_keras.py",
    "jax/sharding": "jax/train_sharded.py",
    "language/language": "language/finetune.py",
    "lightning/lightning": "lightning/train_lightning.py",
    "vision/vision": "vision/train_vit.py",
}


def planned(
    notebook: str, home: Path, asked: str, **parameters: object
) -> "subprocess.CompletedProcess[str]":
    """Run the cell that makes the plan with other parameters; print what is asked of it."""
    (home / "templates").symlink_to(TEMPLATES)
    cells = json.loads((TEMPLATES / f"{notebook}.ipynb").read_text())["cells"]
    usual, plan = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][:2]
    others = [f"{name} = {value!r}" for name, value in parameters.items()]
    return subprocess.run(
        [sys.executable, "-B", "-c", "\n".join([usual, *others, plan, f"print({asked})"])],
        cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("notebook", sorted(PROGRAMS))
def test_without_a_program_it_is_the_one_among_the_templates(notebook: str, tmp_path: Path) -> None:
    done = planned(notebook, tmp_path, "plan.program")
    wanted = tmp_path / "templates" / PROGRAMS[notebook]
    assert done.stdout.splitlines()[-1] == str(wanted), done.stderr


@pytest.mark.parametrize("notebook", sorted(PROGRAMS))
def test_a_copy_is_run_and_one_that_is_missing_is_named(notebook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    # "mine.py" is what a copy of the notebook has for the program beside it.
    done = planned(notebook, tmp_path, "plan.program", program="mine.py")
    assert done.stdout.splitlines()[-1] == str(tmp_path / "mine.py"), done.stderr
    (tmp_path / "templates").unlink()
    gone = planned(notebook, tmp_path, "plan.program", program="~/gone.py")
    assert gone.stderr == f"program is '~/gone.py'; there is no file {tmp_path / 'gone.py'}\n"


WITH_A_PLAN = sorted(file for file in TEMPLATES.glob("*/*.ipynb") if ".Plan(" in file.read_text())


@pytest.mark.parametrize("notebook", WITH_A_PLAN, ids=lambda file: file.stem)
def test_each_notebook_with_a_job_hands_on_its_account_and_qos(notebook: Path) -> None:
    lines = code_of(notebook)
    for name in ("partition", "account", "qos"):
        assert parameters_of(lines)[name] == "''"
        assert handed_to_plan(lines)[name] == name


@pytest.mark.parametrize("notebook", ["cluster", "data_sources"])
def test_a_notebook_that_runs_others_hands_on_its_account_and_qos(notebook: str) -> None:
    lines = code_of(TEMPLATES / "benchmarks" / f"{notebook}.ipynb")
    (settings,) = (
        node
        for line in lines
        for node in ast.walk(line)
        if isinstance(node, ast.Dict) and "'partition': partition" in ast.unparse(node)
    )
    for name in ("partition", "account", "qos"):
        assert parameters_of(lines)[name] == "''"
        assert f"'{name}': {name}," in ast.unparse(settings)


@pytest.mark.parametrize(
    ("pairs", "nodes", "of_nas", "links"),
    [
        ("all", 3, "", 6),
        ("ring", 3, "nas1,", 6),
        ("none", 3, "nas1, nas2:5202", 6),
        ("all", 1, "nas1", 1),
    ],
)
def test_the_networks_links_are_counted_with_those_to_the_nas(
    pairs: str, nodes: int, of_nas: str, links: int, tmp_path: Path
) -> None:
    told = {"pairs": pairs, "nodes": nodes, "nas_addresses": of_nas, "nas_server": "/opt/serve"}
    asked = "links, plan.settings['nas_addresses'], plan.settings['nas_server']"
    done = planned("benchmarks/network", tmp_path, asked, **told)
    assert done.stdout.splitlines()[-1] == f"{links} {of_nas} /opt/serve", done.stderr


def test_a_source_is_measured_again_with_another_nas_or_transport(tmp_path: Path) -> None:
    folder = tmp_path / "logs/data-sources/NAS-JPEG/1"
    folder.mkdir(parents=True)
    kept = {"models": "tiny", "precisions": "fp32", "nodes": 1, "batch": 8, "runs": 1, "steps": 2}
    configuration = {
        **kept,
        "processes_per_node": 4,
        "data": "/jpeg",
        "nas_api": "https://nas",
        "transport": {"UCX_TLS": "x"},
    }
    one = {"benchmark": "training", "date": "2026", "configuration": configuration}
    (folder / "summary.json").write_text(json.dumps(one))
    told: dict[str, object] = {**kept, "runs_of_each": kept["runs"]}
    told["data_sets"] = {"NAS": {"JPEG": "/jpeg"}, "local disk": {"JPEG": "/jpeg"}}
    for more, left in (
        ({}, 1),
        ({"nas_api": {"NAS": "https://nas"}, "transport": {"UCX_TLS": "x"}}, 1),
        ({"nas_api": {"NAS": "https://other"}}, 2),
        ({"transport": {"UCX_TLS": "y"}}, 2),
        ({"gpus_per_node": 8}, 2),
    ):
        done = planned("benchmarks/data_sources", tmp_path, "len(todo)", **{**told, **more})
        assert done.stdout.splitlines()[-1] == str(left), done.stderr
        (tmp_path / "templates").unlink()


@pytest.mark.parametrize(
    ("schedule", "nodes", "ends"), [("constant", 0, None), ("cosine", 0, 70), ("cosine", 2, None)]
)
def test_a_cosine_in_the_session_ends_where_the_steps_do(
    schedule: str, nodes: int, ends: int | None, tmp_path: Path
) -> None:
    # There more steps continue a run; a job's are part of what it was asked for.
    asked = "plan.settings.get('schedule_steps')"
    told = {"schedule": schedule, "nodes": nodes, "steps": 70}
    done = planned("language/language", tmp_path, asked, **told)
    assert done.stdout.splitlines()[-1] == str(ends), done.stderr
