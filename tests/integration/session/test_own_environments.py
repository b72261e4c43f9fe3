"""An environment of one's own: made in a terminal or by the page; a kernel, a module for jobs."""

import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsportal.session.own_environments.sizes import size_words
from tests.instance import PREFIX, USERS, Instance
from tests.packages import wheel
from tests.pages import how_to
from tests.visitor import Visitor, session_of
from tests.waiting import until

USER = USERS[3]
COMMAND = f"portal-{PREFIX}"
SCRIPT = """\
#!/bin/bash
#SBATCH --ntasks=1 --mem=300 --output=own.out
module load {name}
python -c 'import mine_tool, sys; print("job", mine_tool.version, sys.prefix)'
"""
SUBMIT = """\
import pathlib, subprocess
pathlib.Path('own.job').write_text({script!r})
subprocess.run(['/usr/bin/sbatch', '--wait', 'own.job'], check=True)
print(pathlib.Path('own.out').read_text())
"""
ALL_IN_ONE = (
    "import mine_tool, torch, sys; print('kernel', mine_tool.version, torch.__version__)\n"
    "!command -v pip"
)


# No registry has conda or micromamba. This stand-in takes `create --yes --prefix=PREFIX WHEEL
# ipykernel`, and has the session's ipykernel where the others would fetch one.
MICROMAMBA = """\
#!/bin/sh
set -e
prefix=${3#--prefix=}
python3 -m venv --without-pip "$prefix"
packages=$(echo "$prefix"/lib/python3*/site-packages)
python3 -m zipfile -e "$4" "$packages"
"$PORTAL_SESSION_PYTHON" -Ic 'import site; print(site.getsitepackages()[0])' >"$packages/others.pth"
"""


@pytest.fixture(scope="module")
def on_nas(portal: Instance) -> Path:
    """The folder of the user's environments on the NAS."""
    folders = portal.settings["session"]["environments_folders"]
    return Path(folders["isilon"].replace("{user}", USER))


@pytest.fixture(scope="module")
def user(portal: Instance, on_nas: Path) -> Iterator[Visitor]:
    """A user with a session, and with no environments before and after."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    for folder in (home / "environments", on_nas):
        shutil.rmtree(folder, ignore_errors=True)
    with session_of(portal, USER) as user:
        yield user
    for folder in (home / "environments", on_nas):
        shutil.rmtree(folder, ignore_errors=True)
    for name in ("own.job", "own.out"):
        (home / name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package where its user can read it."""
    folder = Path("/tmp", f"portal-{PREFIX}-packages")  # noqa: S108 - other users read it
    folder.mkdir(mode=0o755, exist_ok=True)
    yield wheel(folder, "mine_tool")
    shutil.rmtree(folder)


def typed(package: Path) -> list[str]:
    """Return the page's commands: one to make it, one to list it, one to remove it."""
    words = {
        "portal env": f"{COMMAND} env",
        "nlp": "mine",
        'einops "transformers>=5"': str(package),
    }
    return how_to("install-your-own-packages.md", 0, words).splitlines()


@pytest.fixture
def mine(user: Visitor, package: Path) -> Iterator[str]:
    """One that was made in a terminal, on PyTorch."""
    create, _, remove = typed(package)
    screen = user.type_in_terminal(f"{create}; echo do''ne", "done", seconds=180)
    assert "mine (pytorch/2.13)" in screen
    yield "mine"
    user.type_in_terminal(f"{remove}; echo do''ne", "done", seconds=60)
    assert told(user)["environments"] == []


def told(user: Visitor) -> dict[str, Any]:
    answer = user.session("GET", "/portal/environments")
    answer.raise_for_status()
    return dict(answer.json())


def submit(name: str) -> str:
    """Return a cell that runs a job with an environment loaded, and shows what it says."""
    return SUBMIT.format(script=SCRIPT.format(name=name))


def order_of(name: str, package: Path, folder: str = "home") -> dict[str, Any]:
    """Return what the page asks for, with one package on JAX."""
    packages = [str(package)]
    return {"name": name, "on": ["jax/0.10"], "packages": packages, "in": folder, "conda": False}


def kernels(user: Visitor) -> dict[str, Any]:
    return dict(user.session("GET", "/api/kernelspecs").json()["kernelspecs"])


def finished(user: Visitor) -> dict[str, Any]:
    """Wait until nothing is being done; return what was."""
    until(lambda: told(user)["task"]["state"] != "running", seconds=180, what="it is done")
    return dict(told(user)["task"])


def test_it_is_a_kernel_and_a_module_of_the_same_name(
    user: Visitor, mine: str, package: Path
) -> None:
    until(lambda: f"env-{mine}" in kernels(user), seconds=30, what="it is a kernel")
    said = user.run(ALL_IN_ONE, kernel=f"env-{mine}", seconds=120)
    assert "kernel 1.0 2.13.0" in said
    assert f"/environments/{mine}/bin/pip" in said
    said = user.run(submit(mine), kernel="jax", seconds=120)
    assert "job 1.0" in said
    assert said.strip().endswith(f"/environments/{mine}")
    (listed,) = told(user)["environments"]
    assert (listed["name"], listed["on"], listed["trouble"]) == (mine, "pytorch/2.13", "")
    assert listed["size"] > 1_000_000
    _, show, _ = typed(package)
    screen = user.type_in_terminal(f"{show}; echo do''ne", "done")
    assert "pytorch/2.13" in screen


def test_pip_in_a_shipped_kernel_says_what_to_do(user: Visitor) -> None:
    said = user.run("%pip install mine_tool", kernel="pytorch", seconds=120)
    assert "!portal env create my-pytorch --on pytorch/2.13 mine_tool" in said
    assert "Permission denied" not in said
    assert "usage" in user.run("!portal env create", kernel="pytorch", seconds=120)


def test_the_page_makes_and_removes_one(user: Visitor, package: Path) -> None:
    order = order_of("paged", package)
    assert {"on": ["jax/0.10"], "title": "JAX 0.10"} in told(user)["bases"]
    assert user.session("POST", "/portal/environments", json=order).status_code == 202
    assert user.session("POST", "/portal/environments", json=order).status_code == 400, "busy"
    task = finished(user)
    assert task["state"] == "done", task["said"]
    assert "env-paged" in kernels(user)
    assert user.session("DELETE", "/portal/environments/of/paged").status_code == 202
    assert finished(user)["state"] == "done"
    assert told(user)["environments"] == []
    assert "env-paged" not in kernels(user)


def test_one_on_the_nas_is_a_kernel_and_a_module_just_the_same(
    user: Visitor, package: Path, on_nas: Path
) -> None:
    order = order_of("far", package, "isilon")
    user.session("POST", "/portal/environments", json=order).raise_for_status()
    task = finished(user)
    assert task["state"] == "done", task["said"]
    (listed,) = told(user)["environments"]
    assert (listed["in"], listed["path"]) == ("isilon", str(on_nas / "far"))
    said = user.run(submit("far"), kernel="env-far", seconds=120)
    assert "job 1.0" in said
    assert said.strip().endswith(str(on_nas / "far"))
    # As on a node that does not have the folder.
    (on_nas / "far").rename(on_nas / "away")
    said = user.run("!bash -c 'module load far' 2>&1")
    assert f"far is stored in {on_nas}/far" in " ".join(said.split())
    (on_nas / "away").rename(on_nas / "far")
    assert user.session("DELETE", "/portal/environments/of/far").status_code == 202
    assert finished(user)["state"] == "done"
    assert told(user)["environments"] == []
    assert not (on_nas / "far").exists()


def test_one_that_conda_makes_is_a_kernel_and_a_module_just_the_same(
    user: Visitor, package: Path
) -> None:
    program = package.with_name("micromamba")
    program.write_text(MICROMAMBA)
    program.chmod(0o755)
    words = {"portal env": f"{COMMAND} env", "python=3.11 scanpy": str(package)}
    line = how_to("install-your-own-packages.md", 1, words).strip()
    line = f"PATH={package.parent}:$PATH; {line}; echo do''ne"
    screen = user.type_in_terminal(line, "done", seconds=180)
    assert "bio (conda)" in screen
    until(lambda: "env-bio" in kernels(user), seconds=30, what="it is a kernel")
    said = user.run(submit("bio"), kernel="env-bio", seconds=120)
    assert "job 1.0" in said
    assert said.strip().endswith("/environments/bio/conda")
    user.session("DELETE", "/portal/environments/of/bio").raise_for_status()
    assert finished(user)["state"] == "done"
    assert told(user)["environments"] == []


def test_how_full_each_place_is_stands_beside_the_sizes(user: Visitor, on_nas: Path) -> None:
    folders = {folder["name"]: folder for folder in told(user)["folders"]}
    assert list(folders) == ["home", "isilon"]
    disk = shutil.disk_usage(on_nas.parent)
    assert folders["isilon"]["storage"]["size"] == disk.total
    screen = user.type_in_terminal(f"{COMMAND} env list; echo do''ne", "done")
    (line,) = [line for line in screen.splitlines() if line.startswith("isilon: ")]
    assert line.rstrip().endswith(f" of {size_words(disk.used + disk.free)} used")


def test_what_fails_or_is_stopped_leaves_nothing(user: Visitor, package: Path) -> None:
    order = order_of("broken", Path("/nowhere/x-1.0-py3-none-any.whl"))
    user.session("POST", "/portal/environments", json=order).raise_for_status()
    task = finished(user)
    assert task["state"] == "failed"
    assert "x-1.0-py3-none-any.whl" in task["said"]
    assert told(user)["environments"] == []
    order = order_of("stopped", package)
    user.session("POST", "/portal/environments", json=order).raise_for_status()
    user.session("POST", "/portal/environments/stop").raise_for_status()
    assert finished(user)["state"] == "failed"
    assert told(user)["environments"] == []


@pytest.mark.parametrize(
    "order",
    [
        {"name": "../x", "on": [], "packages": [], "in": "", "conda": False},
        {"name": "x", "on": ["--help"], "packages": [], "in": "", "conda": False},
        {
            "name": "x",
            "on": [],
            "packages": ["--index-url=http://evil.example"],
            "in": "",
            "conda": False,
        },
        {"name": "x", "on": "pytorch", "packages": [], "in": "", "conda": False},
        {"name": "x", "on": [], "packages": [], "in": ["home"], "conda": False},
        {"name": "x", "on": []},
        [],
    ],
)
def test_an_order_that_is_none_is_refused(user: Visitor, order: object) -> None:
    assert user.session("POST", "/portal/environments", json=order).status_code == 400


def test_a_name_that_leads_elsewhere_removes_nothing(user: Visitor) -> None:
    for name in ("..%2fx", ".modulefiles", "-x"):
        answer = user.session("DELETE", f"/portal/environments/of/{name}")
        assert answer.status_code in (400, 404), name
