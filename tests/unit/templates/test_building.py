"""Building images from a notebook: what is looked at before Apptainer runs."""

import os
import pwd
from pathlib import Path

import building
import pytest

ME = pwd.getpwuid(os.getuid())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a definition and a base; the user has numbers."""
    subuid = tmp_path / "subuid"
    subuid.write_text(f"{ME.pw_name}:2147483648:65536\n")
    monkeypatch.setattr(building, "SUBUID", subuid)
    for name in ("own.def", "base.sif"):
        (tmp_path / name).touch()
    return tmp_path


def build(folder: Path, *, base: str = "base.sif") -> Path:
    image, first = folder / "images/own.sif", folder / base
    return building.build(str(folder / "own.def"), str(image), base=str(first))


def test_what_is_no_text_does_not_end_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(building, "_WITH_APPTAINER", "printf 'caf\\351\\ndone\\n'")
    building.apptainer("build")
    assert capsys.readouterr().out == "caf\N{REPLACEMENT CHARACTER}\ndone\n"


def test_an_image_that_is_there_is_left_alone(folder: Path) -> None:
    image = folder / "images/own.sif"
    image.parent.mkdir()
    image.write_text("the old one")
    with pytest.raises(building.BuildError, match="already exists"):
        build(folder)
    assert image.read_text() == "the old one"


def test_a_base_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(building.BuildError, match=r"none\.sif does not exist"):
        build(folder, base="none.sif")


@pytest.mark.parametrize(
    ("line", "has"),
    [("me:1:2", True), ("4321:1:2", True), ("menot:1:2", False), ("# me:1:2", False), ("", False)],
)
def test_numbers_are_a_users_by_name_or_number(line: str, has: bool) -> None:
    user = pwd.struct_passwd(("me", "x", 4321, 4321, "", "/home/me", "/bin/bash"))
    assert building.has_numbers(f"other:5:6\n{line}\n", user) == has


def test_who_has_no_numbers_is_told_before_the_build(folder: Path) -> None:
    building.SUBUID.write_text("other:2147483648:65536\n")
    with pytest.raises(building.BuildError, match="no user IDs for you"):
        build(folder)


def test_a_node_without_the_file_has_no_numbers_either(folder: Path) -> None:
    building.SUBUID.unlink()
    with pytest.raises(building.BuildError, match="no user IDs for you"):
        build(folder)
