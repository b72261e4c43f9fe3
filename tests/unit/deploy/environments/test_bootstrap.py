"""What makes environments starts with an older Python, and says which one it needs for them."""

import subprocess
import sys
from pathlib import Path

import bootstrap
import jinja2
import pytest
import yaml

ROLES = bootstrap.DEPLOY / "ansible/roles"
PROGRAMS = sorted(
    path.name
    for path in bootstrap.DEPLOY.iterdir()
    if path.is_file() and path.read_bytes().startswith(b"#!")
)
# 3.11 has it, and no version before.
WITHOUT_TOMLLIB = """
import runpy, sys
sys.modules["tomllib"] = None
sys.version_info = tuple(map(int, sys.argv.pop(1).split(".")))
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name=sys.argv[1] if sys.argv[1:] else "__main__")
"""
# The two programs of developers that read TOML.
OF_DEVELOPERS = ("mutants", "release")


def started(program: str, version: str, *name: str) -> subprocess.CompletedProcess[str]:
    """Run a program as on an older Python; with a NAME only what comes before its main part."""
    argv = [sys.executable, "-c", WITHOUT_TOMLLIB, version, str(bootstrap.DEPLOY / program), *name]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted({*PROGRAMS} - {*OF_DEVELOPERS}))
def test_a_program_starts_without_what_is_newer_than_3_9(name: str) -> None:
    assert started(name, "3.9.18", "imported").stderr == ""


@pytest.mark.parametrize("name", OF_DEVELOPERS)
def test_a_program_that_reads_toml_says_which_python_it_takes(name: str) -> None:
    done = started(name, "3.9.18")
    assert (done.returncode, done.stderr) == (
        1,
        f"portal: deploy/{name} takes Python 3.11 or later\n",
    )


def test_a_python_that_is_too_old_to_start_is_told_so() -> None:
    done = started("venv", "3.8.18")
    assert (done.returncode, done.stderr) == (1, "portal: this program takes Python 3.9 or later\n")


@pytest.mark.parametrize(
    ("file", "is_right"),
    [
        ("deploy/one.py", False),
        ("deploy/venv", False),
        # A host's own python3 runs them; EL 9 has 3.9.
        ("deploy/ansible/roles/service/files/one.py", False),
        ("deploy/ansible/roles/environments/files/uses.py", True),
        ("portal/dsportal/one.py", True),
    ],
)
def test_an_annotation_that_3_9_cannot_evaluate_is_found(file: str, is_right: bool) -> None:
    ruff = str(Path(sys.executable).with_name("ruff"))
    argv = [ruff, "check", "--quiet", "--no-cache", "--select=FA102", f"--stdin-filename={file}"]
    text = "def one(two: int | None) -> None: ...\n"
    done = subprocess.run(
        [*argv, "-"],
        input=text,
        text=True,
        cwd=bootstrap.REPOSITORY,
        capture_output=True,
        check=False,
    )
    assert (done.returncode == 0) == is_right
    assert ("FA102" in done.stdout) != is_right


@pytest.mark.parametrize(("given", "expected"), [("/opt/python", "/opt/python"), ("", None)])
def test_the_environment_says_which_python_is_taken(given: str, expected: str | None) -> None:
    argv = [sys.executable, "-c", "import bootstrap; print(bootstrap.PYTHON)"]
    variables = {"PORTAL_PYTHON": given, "PYTHONPATH": str(bootstrap.DEPLOY), "HOME": "/"}
    done = subprocess.run(argv, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == (expected or bootstrap.SYSTEM_PYTHON)


def test_another_python_makes_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names() -> set[Path]:
        return {bootstrap.recipe("docs", tmp_path)[0]}

    monkeypatch.setattr(bootstrap, "PYTHON", bootstrap.SYSTEM_PYTHON)
    before = names()
    assert names() == before
    monkeypatch.setattr(bootstrap, "PYTHON", "/opt/python")
    assert not names() & before


def interpreter(folder: Path, version: str, modules_status: int = 0) -> Path:
    """Write a stand-in that answers as an interpreter: which version, and whether it has venv."""
    file = folder / "python"
    answer = f"case $2 in *venv*) exit {modules_status};; *) echo {version};; esac"
    file.write_text(f"#!/bin/sh\n{answer}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("version", "modules_status", "said"),
    [
        (
            "3 10 13",
            0,
            r"is Python 3\.10\.13: install Python 3\.11 or later, and set PORTAL_PYTHON",
        ),
        ("3 11 2", 1, "lacks the module venv or ensurepip"),
        ("", 0, "is not Python"),
    ],
)
def test_a_python_that_makes_no_environments_is_named_with_what_to_set(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    modules_status: int,
    said: str,
) -> None:
    python = interpreter(tmp_path, version, modules_status)
    monkeypatch.setattr(bootstrap, "PYTHON", str(python))
    with pytest.raises(bootstrap.DeploymentError, match=f"^{python} {said}"):
        bootstrap.check_python()


def test_a_python_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "PYTHON", f"{tmp_path}/python")
    with pytest.raises(bootstrap.DeploymentError, match=r"there is no program .*set PORTAL_PYTHON"):
        bootstrap.check_python()


def test_a_python_that_makes_environments_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "PYTHON", bootstrap.SYSTEM_PYTHON)
    bootstrap.check_python()


def test_a_system_without_apt_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "APT", tmp_path / "apt-get")
    with pytest.raises(bootstrap.DeploymentError, match=r"^install first what has /nowhere/git$"):
        bootstrap.ensure_packages({"git": "/nowhere/git"})


@pytest.mark.parametrize(
    ("file", "task"),
    [
        ("environments/tasks/main.yml", "The environments are made"),
        ("portal/tasks/hub.yml", "The documentation is a site"),
    ],
)
def test_the_roles_make_environments_with_the_inventorys_python(file: str, task: str) -> None:
    tasks = {each["name"]: each for each in yaml.safe_load((ROLES / file).read_text())}
    assert tasks[task]["environment"] == {"PORTAL_PYTHON": "{{ instance_python }}"}


@pytest.mark.parametrize("given", [{}, {"PORTAL_PYTHON": "/opt/python"}])
def test_the_inventorys_python_is_the_deployments_unless_it_says_another(
    given: dict[str, str],
) -> None:
    defaults = yaml.safe_load((ROLES / "instance/defaults/main.yml").read_text())

    def lookup(_: str, name: str, default: str) -> str:
        return given.get(name, default)

    template = jinja2.Environment(autoescape=True).from_string(defaults["instance_python"])
    expected = given.get("PORTAL_PYTHON", bootstrap.SYSTEM_PYTHON)
    assert template.render(lookup=lookup) == expected
