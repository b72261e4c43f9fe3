from pathlib import Path
from xml.etree import ElementTree

import pytest

from dsportal.session.kernels.icons import folder_with_tile, letters_for, tile


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("TensorFlow 2.21", "TF"),
        ("PyTorch 2.13", "PT"),
        ("MXNet 1.9.1", "MX"),
        ("JAX 0.10", "JAX"),
        ("Keras 3", "Ke"),
        ("Python 2.7", "Py"),
        ("CUDA", "CU"),
        ("x", "x"),
        ("<&> 1", "<&"),
    ],
)
def test_the_letters_are_those_by_which_a_name_is_known(name: str, letters: str) -> None:
    assert letters_for(name) == letters
    drawn = ElementTree.fromstring(tile(name, 0))  # noqa: S314 - ours
    assert "".join(drawn.itertext()).strip() == letters


def test_neighbours_have_other_colours() -> None:
    assert len({tile("Keras 3", place) for place in range(8)}) == 8


def test_jupyter_finds_the_picture(tmp_path: Path) -> None:
    folder = folder_with_tile(tmp_path / "pictures/keras", "Keras 3", 1)
    assert folder_with_tile(tmp_path / "pictures/keras", "Keras 3", 1) == folder
    assert [file.name for file in Path(folder).iterdir()] == ["logo-svg.svg"]
