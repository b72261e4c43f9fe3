"""A folder of images with their records."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dsportal.images.errors import ImageError
from dsportal.images.image_folder import ImageFolder, ImageRecord

DIGEST = f"sha256:{'ab' * 32}"
RECORD = ImageRecord(
    "x-1-abababababab.sif", "r.example/x:1", DIGEST, 5, "2026-11-21T00:00:00+00:00"
)


def put(image_folder: ImageFolder, record: ImageRecord = RECORD) -> None:
    made = image_folder.workplace(record.digest) / "image.sif"
    made.write_bytes(b"image")
    image_folder.put(made, record)


def test_what_was_put_is_found_and_its_parts_are_gone(tmp_path: Path) -> None:
    image_folder = ImageFolder(tmp_path)
    assert image_folder.find(DIGEST, RECORD.file) is None
    put(image_folder)
    assert image_folder.records() == [RECORD]
    assert image_folder.find(DIGEST, RECORD.file) == RECORD
    assert list((tmp_path / ".partial").iterdir()) == []
    assert (tmp_path / RECORD.file).read_bytes() == b"image"


def test_a_record_without_its_image_counts_for_nothing(tmp_path: Path) -> None:
    image_folder = ImageFolder(tmp_path)
    put(image_folder)
    (tmp_path / "y.sif.json").write_text((tmp_path / f"{RECORD.file}.json").read_text())
    (tmp_path / "z.sif.json").write_text("{")
    (tmp_path / "a.sif.json").write_text('{"file": 1}')
    (tmp_path / "a.sif").write_text("")
    assert image_folder.records() == [RECORD]
    (tmp_path / RECORD.file).unlink()
    assert image_folder.records() == []


def test_an_images_lock_is_held_by_one_and_waited_for(tmp_path: Path) -> None:
    image_folder, waited = ImageFolder(tmp_path), []
    with image_folder.only_one(DIGEST, minutes=1, wait=lambda: waited.append("first")):
        assert waited == []
        with pytest.raises(ImageError, match="Somebody else"):  # noqa: SIM117
            with image_folder.only_one(DIGEST, minutes=0, wait=lambda: waited.append("second")):
                pass
    assert waited == ["second"]
    with image_folder.only_one(DIGEST, minutes=0, wait=lambda: waited.append("third")):
        assert waited == ["second"]


def test_a_name_leads_to_what_it_was_last_pulled_as(tmp_path: Path) -> None:
    image_folder = ImageFolder(tmp_path)
    link = "by-name/r.example/x@1.sif"
    for file in ("x-1-aaaaaaaaaaaa.sif", "x-1-bbbbbbbbbbbb.sif"):
        record = ImageRecord(file, "r.example/x:1", DIGEST, 5, "2026-11-21T00:00:00+00:00")
        put(image_folder, record)
        image_folder.lead(link, record)
        assert (tmp_path / link).resolve() == tmp_path / file
    assert not (tmp_path / link).readlink().is_absolute()
    assert [path.name for path in (tmp_path / link).parent.iterdir()] == ["x@1.sif"]


def with_version(folder: Path, version: object) -> None:
    file = folder / f"{RECORD.file}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": version}))


def test_a_record_with_or_without_its_version_is_the_same(tmp_path: Path) -> None:
    image_folder = ImageFolder(tmp_path)
    put(image_folder)
    assert "version" not in json.loads((tmp_path / f"{RECORD.file}.json").read_text())
    with_version(tmp_path, 1)
    assert image_folder.records() == [RECORD]


def test_a_record_of_a_newer_release_is_not_taken_for_none(tmp_path: Path) -> None:
    image_folder = ImageFolder(tmp_path)
    put(image_folder)
    with_version(tmp_path, 2)
    with pytest.raises(
        ImageError, match=r"has version 2, .* reads up to 1: this host has an older"
    ):
        image_folder.find(DIGEST, RECORD.file)


def test_the_size_is_told_while_somebody_else_removes_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apptainer unpacks, and removes, a whole system in the folder of another image."""
    put(ImageFolder(tmp_path))
    gone = tmp_path / ".partial/other/rootfs"
    gone.mkdir(parents=True)
    scan = os.scandir

    def scan_late(folder: str | Path = ".") -> Any:
        if Path(folder) == gone and gone.exists():
            gone.rmdir()
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scan_late)
    record = (tmp_path / f"{RECORD.file}.json").stat().st_size
    assert ImageFolder(tmp_path).used() == record + len(b"image")
    assert not gone.exists()
