"""What is unpacked on a machine is there as a whole, or is unpacked again."""

import tarfile
from pathlib import Path

import pytest
import yaml

from tests import roles

EARLY, LATE = "usr/lib/starter", "usr/bin/apptainer"
"""What tar has no room for, and what it puts there all the same."""


def first_of(tasks: list[dict[str, object]]) -> int:
    """Return where unpacking begins: it may look first whether that was done."""
    makes_folder = [number for number, task in enumerate(tasks) if "ansible.builtin.file" in task]
    return makes_folder[-1] + 1


@pytest.mark.parametrize("file", ["apptainer/tasks/unpack.yml", "instance/tasks/sources.yml"])
def test_what_was_unpacked_by_half_is_unpacked_again(file: str, tmp_path: Path) -> None:
    """A file in the place of a folder stands for the full disk: tar goes on after it."""
    with tarfile.open(tmp_path / "packed.tar", "w") as archive:
        for name in (EARLY, LATE, "pyproject.toml"):
            archive.add(__file__, name)
    folder = tmp_path / "unpacked"
    (folder / "usr").mkdir(parents=True)
    (folder / "usr/lib").touch()
    packed = {"stdout": str(tmp_path / "packed.tar")}
    given = {
        "apptainer_folder": str(folder),
        "apptainer_program": str(folder / LATE),
        "apptainer_packed": packed,
        "instance_sources": str(folder),
        "instance_sources_packed": packed,
    }
    tasks = yaml.safe_load((roles.ROLES / file).read_text())
    first = first_of(tasks)
    room = [
        {"assert": {"that": f"'{folder / LATE}' is exists"}},
        {"file": {"path": str(folder / "usr/lib"), "state": "absent"}},
    ]
    said = roles.played(
        tmp_path,
        {"here": {}},
        given,
        [{"block": tasks[first:], "rescue": room}, *tasks[first:], *tasks[first:]],
    )
    assert (folder / EARLY).exists(), said
    # Once to make room, once to unpack and once to note it.
    assert "changed=3 " in said, said


def test_an_apptainer_of_another_lock_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    tasks = yaml.safe_load((roles.ROLES / "apptainer/tasks/unpack.yml").read_text())
    every: list[object] = []
    for name in ("first", "second", "second"):
        (tmp_path / name).write_text(name)
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            archive.add(tmp_path / name, LATE)
        packed = {"stdout": str(tmp_path / f"{name}.tar")}
        every += [{"block": tasks[first_of(tasks) :], "vars": {"apptainer_packed": packed}}]
    said = roles.played(tmp_path, {"here": {}}, {"apptainer_folder": str(folder)}, every)
    assert (folder / LATE).read_text() == "second"
    # Each once unpacked and once noted.
    assert "changed=4 " in said, said
