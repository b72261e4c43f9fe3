"""A folder of images with their records."""

from pathlib import Path

import pytest

from dsportal.images.errors import ImageError
from dsportal.images.image_folder import ImageFolder, ImageRecord

DIGEST = f"sha256:{'ab' * 32}"
RECORD = ImageRecord(
    "x-1-abababababab.sif", "r.example/x:1", DIGEST, 5, "2026-11-21T00:00:00+00:00"
)


def put(shelf: ImageFolder, record: ImageRecord = RECORD) -> None:
    made = shelf.workplace(record.digest) / "image.sif"
    made.write_bytes(b"image")
    shelf.put(made, record)


def test_what_was_put_is_found_and_its_parts_are_gone(tmp_path: Path) -> None:
    shelf = ImageFolder(tmp_path)
    assert shelf.find(DIGEST, RECORD.file) is None
    put(shelf)
    assert shelf.records() == [RECORD]
    assert shelf.find(DIGEST, RECORD.file) == RECORD
    assert list((tmp_path / ".partial").iterdir()) == []
    assert (tmp_path / RECORD.file).read_bytes() == b"image"


def test_a_record_without_its_image_counts_for_nothing(tmp_path: Path) -> None:
    shelf = ImageFolder(tmp_path)
    put(shelf)
    (tmp_path / "y.sif.json").write_text((tmp_path / f"{RECORD.file}.json").read_text())
    (tmp_path / "z.sif.json").write_text("{")
    (tmp_path / "a.sif.json").write_text('{"file": 1}')
    (tmp_path / "a.sif").write_text("")
    assert shelf.records() == [RECORD]
    (tmp_path / RECORD.file).unlink()
    assert shelf.records() == []


def test_an_images_lock_is_held_by_one_and_waited_for(tmp_path: Path) -> None:
    shelf, waited = ImageFolder(tmp_path), []
    with shelf.only_one(DIGEST, minutes=1, wait=lambda: waited.append("first")):
        assert waited == []
        with pytest.raises(ImageError, match="Somebody else"):  # noqa: SIM117
            with shelf.only_one(DIGEST, minutes=0, wait=lambda: waited.append("second")):
                pass
    assert waited == ["second"]
    with shelf.only_one(DIGEST, minutes=0, wait=lambda: waited.append("third")):
        assert waited == ["second"]


def test_a_name_leads_to_what_it_was_last_pulled_as(tmp_path: Path) -> None:
    shelf = ImageFolder(tmp_path)
    link = "by-name/r.example/x@1.sif"
    for file in ("x-1-aaaaaaaaaaaa.sif", "x-1-bbbbbbbbbbbb.sif"):
        record = ImageRecord(file, "r.example/x:1", DIGEST, 5, "2026-11-21T00:00:00+00:00")
        put(shelf, record)
        shelf.lead(link, record)
        assert (tmp_path / link).resolve() == tmp_path / file
    assert not (tmp_path / link).readlink().is_absolute()
    assert [path.name for path in (tmp_path / link).parent.iterdir()] == ["x@1.sif"]
