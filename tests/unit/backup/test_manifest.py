import pytest

from dsportal.backup.manifest import (
    FORMAT,
    BackupEntry,
    BackupError,
    Kind,
    Manifest,
    check_release,
    from_json,
    to_json,
)

PART = BackupEntry(Kind.SQLITE, "/s/hub.sqlite", "001.sqlite", "0" * 64, "hub", "hub", 0o600)
MANIFEST = Manifest(FORMAT, "1.2.0", "head", "2026-11-21T12:00:00+00:00", "", (PART,))


def test_what_was_written_is_read() -> None:
    assert from_json(to_json(MANIFEST)) == MANIFEST


def test_something_else_is_no_manifest() -> None:
    with pytest.raises(BackupError, match="no backup of the portal"):
        from_json(b'{"parts": []}')


def test_a_later_format_is_refused() -> None:
    later = to_json(MANIFEST).replace(b'"format": 1', b'"format": 2')
    with pytest.raises(BackupError, match="has format 2; this release reads 1"):
        from_json(later)


@pytest.mark.parametrize("installed", ["1.2.0", "1.2.1", "1.10.0", "2.0.0"])
def test_the_same_or_a_later_release_takes_it(installed: str) -> None:
    check_release(MANIFEST, installed)


@pytest.mark.parametrize("installed", ["1.1.9", "0.9.0"])
def test_an_earlier_release_does_not(installed: str) -> None:
    with pytest.raises(BackupError, match=r"made by release 1\.2\.0, and this is .*: deploy 1"):
        check_release(MANIFEST, installed)
