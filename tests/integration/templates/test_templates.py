"""Templates become the user's own files, notebooks with the programs that they run."""

import json
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor

Visit = Callable[[str], Visitor]
USER = USERS[0]
RESNET = "templates/distributed/resnet.ipynb"
SMALL: dict[str, Any] = {
    "nodes": 1,
    "gpus_per_node": 0,
    "model": "tiny",
    "batch": 8,
    "precision": "fp32",
    "cores_per_process": 1,
    "memory_mb_per_process": 2500,
    "minutes": 5,
    "more": {"steps": 2, "size": 32},
    "wait": True,
}
STORY = '    """Train: the story from top to bottom."""\n'


@pytest.fixture
def folder(portal: Instance) -> Iterator[Path]:
    """An empty folder in the user's home."""
    folder = Path(pwd.getpwnam(USER).pw_dir, "copies-test")
    portal.slurm("/bin/mkdir", str(folder), user=USER)
    yield folder
    copies = [str(path) for path in folder.parent.glob("pytorch-mnist*.ipynb")]
    portal.slurm("/bin/rm", "-rf", str(folder), *copies, user=USER)


@pytest.fixture
def user(visit: Visit) -> Visitor:
    """A user with a session."""
    user = visit(USER)
    user.start_and_wait(gpus=0)
    return user


def copied(user: Visitor, path: str, folder: str) -> tuple[int, str]:
    """Ask for a copy; return status, and the copy's path or the words."""
    answer = user.session("POST", "/portal/templates/copy", json={"path": path, "folder": folder})
    body = answer.json()
    return answer.status_code, body.get("path") or body["message"]


def test_a_copy_is_the_users_own_and_nothing_is_overwritten(user: Visitor, folder: Path) -> None:
    listed = user.session("GET", "/portal/templates").json()
    assert listed["link"] == "templates"
    paths = {template["path"] for template in listed["templates"]}
    assert {f"templates/{name}/mnist.ipynb" for name in ("tensorflow", "pytorch", "r")} <= paths
    assert all(template["title"] and template["about"] for template in listed["templates"])

    path = "templates/pytorch/mnist.ipynb"
    assert copied(user, path, folder.name) == (201, f"{folder.name}/pytorch-mnist.ipynb")
    copy = folder / "pytorch-mnist.ipynb"
    original = folder.parent / path
    assert json.loads(copy.read_text())["cells"] == json.loads(original.read_text())["cells"]
    assert copy.owner() == USER
    assert copy.stat().st_mode & 0o200
    assert original.owner() == "root"

    model = user.session("GET", f"/api/contents/{folder.name}/{copy.name}").json()
    assert model["writable"]
    model["content"]["cells"] = []
    assert user.session("PUT", f"/api/contents/{folder.name}/{copy.name}", json=model).is_success
    assert copied(user, path, folder.name) == (201, f"{folder.name}/pytorch-mnist-1.ipynb")
    assert json.loads(copy.read_text())["cells"] == []


def run_all(user: Visitor, path: str, **parameters: object) -> str:
    """Run a notebook's cells in a kernel that is started for it; return all that they wrote."""
    cells = user.session("GET", f"/api/contents/{path}").json()["content"]["cells"]
    codes = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    codes[0] += "".join(f"\n{name} = {value!r}" for name, value in parameters.items())
    asked = {"path": path, "type": "notebook", "name": "", "kernel": {"name": "pytorch"}}
    kernel = user.session("POST", "/api/sessions", json=asked).json()["kernel"]["id"]
    return "".join(user.run_in(kernel, code, seconds=200) for code in codes)


def test_a_notebooks_program_is_copied_with_it_and_is_what_it_runs(
    user: Visitor, folder: Path
) -> None:
    asked = {"path": RESNET, "folder": folder.name}
    notebook, program = (
        f"{folder.name}/{name}" for name in ("distributed-resnet.ipynb", "train_resnet.py")
    )
    copies = user.session("POST", "/portal/templates/copy", json=asked).json()
    assert copies == {"path": notebook, "companions": [program]}

    model = user.session("GET", f"/api/contents/{program}").json()
    assert model["content"].count(STORY) == 1
    changed = f'{STORY}    print("as its user wants it")\n'
    model["content"] = model["content"].replace(STORY, changed)
    assert user.session("PUT", f"/api/contents/{program}", json=model).is_success
    printed = run_all(user, notebook, **SMALL, runs_dir=str(folder / "runs"))
    assert str(folder / "train_resnet.py") in printed
    assert "The job completed" in printed
    (run,) = (folder / "runs").iterdir()
    assert "as its user wants it" in (run / "processes.log").read_text()

    # Another copy has a program of its own, and the user's stays as it is.
    again = user.session("POST", "/portal/templates/copy", json=asked).json()
    names = ("distributed-resnet-1.ipynb", "train_resnet_1.py")
    assert again == {
        "path": f"{folder.name}/{names[0]}",
        "companions": [f"{folder.name}/{names[1]}"],
    }
    assert 'program = "train_resnet_1.py"' in "".join(
        json.loads((folder / names[0]).read_text())["cells"][1]["source"]
    )
    assert "as its user wants it" in (folder / "train_resnet.py").read_text()
    shipped = (folder.parent / "templates/distributed/train_resnet.py").read_text()
    assert (folder / names[1]).read_text() == shipped


def test_where_the_user_cannot_write_the_copy_is_in_the_home(user: Visitor, folder: Path) -> None:
    for place in ("templates/pytorch", "no-such-folder"):
        status, path = copied(user, "templates/pytorch/mnist.ipynb", place)
        assert (status, "/" in path) == (201, False)
        assert (folder.parent / path).owner() == USER


def test_what_is_no_template_is_not_copied(user: Visitor, folder: Path) -> None:
    (status, words) = copied(user, ".bashrc", folder.name)
    assert status == 404
    assert ".bashrc" in words
    assert "templates" in words
    assert copied(user, "templates/../.bashrc", folder.name)[0] == 400
    assert copied(user, "templates/pytorch/mnist.ipynb", "../..")[0] in (400, 404)
    assert not list(folder.iterdir())
