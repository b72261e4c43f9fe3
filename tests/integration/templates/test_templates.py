"""Templates become the user's own files."""

import json
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.instance import USERS, Instance
from tests.visitor import Visitor

Visit = Callable[[str], Visitor]
USER = USERS[0]


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
