import os
import struct
from pathlib import Path

import pytest

from dsportal.containers.images import ImageFileError, own_image, own_images, site_image

pytestmark = pytest.mark.root

ROOT = 0
SOMEBODY = 12345


def sif(data: bytes = b"x" * 100) -> bytes:
    """Return what Apptainer writes: the header, and data after it."""
    words = (b"#!/usr/bin/env run-singularity\n\0", b"SIF_MAGIC\0", b"01\0", b"02\0", b"n" * 16)
    numbers = (1700000000, 1700000000, 40, 48, 128, 0, 128, len(data))
    return struct.pack("<32s10s3s3s16s8q", *words, *numbers) + data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir(mode=0o755)
    return folder


@pytest.fixture
def image(folder: Path) -> Path:
    file = folder / "tools.sif"
    file.write_bytes(sif())
    file.chmod(0o644)
    return file


def refusal(path: Path, user: int = ROOT) -> str:
    with pytest.raises(ImageFileError) as caught:
        own_image(path, user)
    return str(caught.value)


def test_a_file_of_apptainers_is_an_image(image: Path) -> None:
    assert own_image(image, ROOT).path == site_image(image).path == image


def test_a_changed_file_is_another_one(image: Path) -> None:
    before = own_image(image, ROOT)
    os.utime(image, ns=(1, 1))
    assert own_image(image, ROOT) != before


def test_a_folder_with_a_system_is_an_image(folder: Path) -> None:
    shell = folder / "system/bin/sh"
    shell.parent.mkdir(parents=True)
    shell.symlink_to("/no/such/dash")
    assert own_image(folder / "system", ROOT).is_folder


def test_any_other_folder_is_none(folder: Path) -> None:
    (folder / "notes").mkdir()
    assert "notes is no image: a folder" in refusal(folder / "notes")


def test_any_other_file_is_none(folder: Path) -> None:
    for content in (b"", b"PK\3\4" * 100):
        (folder / "a.sif").write_bytes(content)
        assert "a.sif is no image: not a file" in refusal(folder / "a.sif")


def test_a_pipe_is_none_and_nobody_waits_for_it(folder: Path) -> None:
    os.mkfifo(folder / "a.sif", 0o600)
    assert "is no image: neither" in refusal(folder / "a.sif")


def test_an_image_that_is_cut_short_says_by_how_much(image: Path) -> None:
    image.write_bytes(sif()[:-60])
    assert "tools.sif is cut short: 168 of 228 bytes" in refusal(image)


def test_an_image_that_is_gone_is_named(folder: Path) -> None:
    with pytest.raises(ImageFileError, match=r"There is no image .*/gone.sif"):
        site_image(folder / "gone.sif")


def test_a_link_to_another_place_is_refused(image: Path, tmp_path: Path) -> None:
    image.rename(tmp_path / "elsewhere.sif")
    image.symlink_to(tmp_path / "elsewhere.sif")
    assert "tools.sif is a link." in refusal(image)
    assert site_image(image).path == image


def test_a_folder_of_images_that_is_a_link_is_refused(image: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(image.parent)
    assert "link is a link" in refusal(tmp_path / "link" / image.name)


def test_an_image_of_another_user_is_refused(image: Path) -> None:
    os.chown(image, SOMEBODY, -1)
    assert "tools.sif belongs to another user" in refusal(image)


def test_an_image_in_another_users_folder_is_refused(image: Path) -> None:
    os.chown(image.parent, SOMEBODY, -1)
    assert "images belongs to another user" in refusal(image)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_an_image_that_others_may_change_is_refused(image: Path, mode: int) -> None:
    image.chmod(mode)
    words = refusal(image)
    assert f"Others may change {image}." in words
    assert f": chmod go-w {image}" in words


def test_a_folder_into_which_others_may_put_images_is_refused(image: Path) -> None:
    image.parent.chmod(0o777)
    assert f"Others may change {image.parent}" in refusal(image)


def test_an_image_that_root_has_put_there_is_the_users(image: Path) -> None:
    os.chown(image.parent, SOMEBODY, -1)
    assert own_image(image, SOMEBODY).path == image


def test_what_may_be_images_is_found_and_nothing_else(image: Path) -> None:
    for name in ("notes.txt", "tools.def", ".half.sif"):
        (image.parent / name).touch()
    (image.parent / "system").mkdir()
    (image.parent / "lost.sif").symlink_to("/nowhere")
    names = [path.name for path in own_images(image.parent)]
    assert names == ["lost.sif", "system", "tools.sif"]
    assert own_images(image.parent / "nothing") == []
