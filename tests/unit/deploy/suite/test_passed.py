"""What has passed for files need not run again for the same."""

from pathlib import Path

import pytest
from affected import imported
from passed import NOTEBOOKS, ROLES, Proof, proof

from tests.instance import ROOT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Files that are looked at, and one that is not."""
    for name in ("roles/a.yml", "roles/b.yml", ".lint", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def of(root: Path) -> Proof:
    return proof("lint", root, "roles", ".lint", reports=root / "reports")


def test_what_has_passed_is_known_for_the_same_files(root: Path) -> None:
    assert not of(root).is_known()
    of(root).remember()
    (root / "README.md").write_text("else")
    assert of(root).is_known()


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename", "setting"])
def test_it_is_not_known_for_others(root: Path, change: str) -> None:
    of(root).remember()
    one = root / "roles/a.yml"
    match change:
        case "edit":
            one.write_text("else")
        case "add":
            (root / "roles/deep").mkdir()
            (root / "roles/deep/c.yml").touch()
        case "remove":
            one.unlink()
        case "rename":
            one.rename(root / "roles/aa.yml")
        case "setting":
            (root / ".lint").write_text("profile: min")
    assert not of(root).is_known()


def test_what_tests_of_notebooks_share_is_theirs_or_the_portals() -> None:
    of_a_portal = {"__init__", "instance", "visitor", "waiting"}
    shared: set[str] = set()
    for file in (ROOT / "tests/notebooks").rglob("*.py"):
        shared.update(
            name.removeprefix("tests.").partition(".")[0]
            for name in imported(file)
            if name.startswith("tests.") and not name.startswith("tests.notebooks")
        )
    theirs = {Path(place).stem for place in NOTEBOOKS if place.startswith("tests/")}
    assert shared - of_a_portal <= theirs


@pytest.mark.parametrize("place", [*NOTEBOOKS, *ROLES])
def test_what_is_looked_at_is_there(place: str) -> None:
    assert (ROOT / place).exists()
