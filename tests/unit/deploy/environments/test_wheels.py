from pathlib import Path

import bootstrap
import pytest
import wheels
from wheels import sources_hash


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a module in each distribution."""
    for name in bootstrap.DISTRIBUTIONS:
        folder = tmp_path / name / "package"
        folder.mkdir(parents=True)
        (folder / "one.py").write_text("1\n")
    return tmp_path


@pytest.mark.parametrize("name", bootstrap.DISTRIBUTIONS)
def test_a_change_in_any_source_makes_other_wheels(root: Path, name: str) -> None:
    file = root / name / "package/one.py"
    hashes = {sources_hash(root)}
    file.write_text("2\n")
    hashes.add(sources_hash(root))
    file.rename(file.with_name("two.py"))
    hashes.add(sources_hash(root))
    (root / name / "package/empty.py").touch()
    hashes.add(sources_hash(root))
    assert len(hashes) == 4


def test_what_was_made_in_a_clone_makes_no_other_wheels(root: Path) -> None:
    before = sources_hash(root)
    for folder in ("package/__pycache__", "package/lab/node_modules/some/part"):
        made = root / bootstrap.DISTRIBUTIONS[0] / folder
        made.mkdir(parents=True)
        (made / "file").touch()
    assert sources_hash(root) == before


def test_the_extension_is_the_same_in_whatever_folder(tmp_path: Path) -> None:
    """Its builder lists what is shared by folder: of six, two would differ."""
    built = set()
    for name in ("a", "another", "one/below", "x1", "x2", "x3"):
        folder = tmp_path / name
        wheels.copy_sources(Path("portal"), folder)
        wheels.build_extension(folder / wheels.LAB)
        made = folder / "portal/dsportal/labextension"
        files = sorted(file for file in made.rglob("*") if file.is_file())
        assert len(files) > 3
        built.add(tuple((str(file.relative_to(made)), file.read_bytes()) for file in files))
    assert len(built) == 1
