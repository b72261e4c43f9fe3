"""The stand-in for MNIST: its format, and that its test is a fair one."""

import gzip
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.instance import ROOT

PROGRAM = ROOT / "notebook_templates" / "data" / "make_mnist_stand_in.py"
COUNTS = {"train": 30_000, "t10k": 5_000}


def make(python: Path, destination: Path) -> str:
    argv = [str(python), str(PROGRAM), str(destination)]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(scope="module")
def stand_in(tensorflow_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    destination = tmp_path_factory.mktemp("nas") / "datasets" / "mnist"
    make(tensorflow_python, destination)
    return destination


@pytest.mark.parametrize("part", COUNTS)
def test_the_files_are_mnists_own_format(stand_in: Path, part: str) -> None:
    images = gzip.decompress((stand_in / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((stand_in / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    count = COUNTS[part]
    assert struct.unpack_from(">IIII", images) == (2051, count, 28, 28)
    assert len(images) == 16 + count * 28 * 28
    assert struct.unpack_from(">II", labels) == (2049, count)
    values = np.frombuffer(labels, np.uint8, offset=8)
    assert set(np.unique(values)) == set(range(10))


def test_it_is_the_same_each_time(stand_in: Path, tensorflow_python: Path, tmp_path: Path) -> None:
    make(tensorflow_python, tmp_path)
    assert names_and_bytes(tmp_path) == names_and_bytes(stand_in)


def names_and_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_no_original_is_both_trained_on_and_tested_with(tensorflow_python: Path) -> None:
    code = (
        "import make_mnist_stand_in as made\n"
        "parts = [{i.tobytes() for i in part.images} for part in made.divide_originals()]\n"
        "print(len(parts[0]), len(parts[1]), len(parts[0] & parts[1]))\n"
    )
    argv = [str(tensorflow_python), "-c", code]
    done = subprocess.run(
        argv, check=True, capture_output=True, text=True, cwd=PROGRAM.parent, timeout=60
    )
    trained, tested, both = map(int, done.stdout.split())
    assert both == 0
    assert trained + tested == 1797


def test_the_readme_says_that_it_is_a_stand_in(stand_in: Path) -> None:
    assert "NOT the images of MNIST" in (stand_in / "README.md").read_text()


def test_the_real_files_are_left_alone(tensorflow_python: Path, tmp_path: Path) -> None:
    real = tmp_path / "train-images-idx3-ubyte.gz"
    real.write_bytes(b"the real one")
    assert "left as it is" in make(tensorflow_python, tmp_path)
    assert names_and_bytes(tmp_path) == {real.name: b"the real one"}


DAMAGED = """
import gzip, sys
from pathlib import Path
import digits

whole = bytearray(gzip.compress(bytes(range(256)) * 64, mtime=0))
whole[30] ^= 255  # of what is compressed, not of the head or of the checksum behind it
file = Path(sys.argv[1], "t10k-labels-idx1-ubyte.gz")
for content in (whole, gzip.compress(b""), gzip.compress(bytes((0, 0, 8, 1))), b"", b"no gzip"):
    file.write_bytes(content)
    for read in (digits.read_images, digits.read_labels):
        try:
            read(file)
        except digits.DataError as error:
            print(error)
    digits.origin(file.parent)
"""


def test_a_damaged_file_is_named(tensorflow_python: Path, tmp_path: Path) -> None:
    argv = [str(tensorflow_python), "-B", "-c", DAMAGED, str(tmp_path)]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd=PROGRAM.parent, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    assert all(line.startswith(f"{tmp_path}/t10k-labels-idx1-ubyte.gz ") for line in lines)
